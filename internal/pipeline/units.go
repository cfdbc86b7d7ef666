package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/isa"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
	"dot4fa/internal/toolchain"
	"dot4fa/internal/upstream"
)

// Units compiles, without making code, the units that the series edits, adds or
// touches on commits of one repository.
type Units struct {
	run     *Run
	repo    *upstream.Repo
	edits   *series.Series
	added   []series.Rendered
	checker *syntax.Checker
}

var errNoCompiler = errors.New("no C and C++ compiler found")

// Units prepares the compilers. Close the result.
func (r *Run) Units(ctx context.Context, repo *upstream.Repo) (*Units, error) {
	edits, err := series.Load(r.Assets)
	if err != nil {
		return nil, err
	}
	added, err := render.Render(r.Recipe, r.Assets)
	if err != nil {
		return nil, err
	}
	set := r.Tools(ctx)
	if !set.CC.Found() || !set.CXX.Found() {
		return nil, fault.New(fault.Environment, "%w", errNoCompiler).Hintf("install gcc and g++, or name them with CC and CXX")
	}
	tools := syntax.Tools{CC: set.CC.Path, CXX: set.CXX.Path, HIP: hipHeaders(set.ROCm)}
	if c, err := isa.FindCompiler(ctx, r.Machine, ""); err == nil {
		tools.Device = c
	}
	cache, err := upstream.DefaultCacheDir()
	if err != nil {
		return nil, err
	}
	jobs := min(build.ChooseJobs(r.Recipe.Backend, 0).N, runtime.GOMAXPROCS(0))
	checker, err := syntax.New(tools, filepath.Join(cache, "syntax"), jobs)
	if err != nil {
		return nil, err
	}
	return &Units{r, repo, edits, asRendered(added), checker}, nil
}

// Close removes what was laid out for the compilers.
func (u *Units) Close() error { return u.checker.Close() }

// Check compiles the units of a commit. Every edit must hold there.
func (u *Units) Check(ctx context.Context, commit string) ([]syntax.Unit, error) {
	snap, err := u.repo.At(ctx, commit)
	if err != nil {
		return nil, err
	}
	u.edits.Hooks.Contains = func(id string) (bool, error) { return u.repo.IsAncestor(ctx, id, snap.Commit) }
	plan, err := u.edits.Plan(snap.ReadFile, u.run.Recipe)
	if err != nil {
		return nil, err
	}
	files, err := snap.Files()
	if err != nil {
		return nil, err
	}
	tree := syntax.Tree{Read: snap.ReadFile, Plan: plan, Added: u.added}
	var needed []string
	for _, f := range files {
		tree.Files = append(tree.Files, syntax.File{Path: f.Path, ID: f.ID})
		if syntax.Reads(f.Path) {
			needed = append(needed, f.Path)
		}
	}
	if u.repo.Remote() { // in one request instead of one for each
		if err := u.repo.Prefetch(ctx, []string{snap.Commit}, needed); err != nil {
			return nil, err
		}
	}
	return u.checker.Check(ctx, tree)
}

// hipHeaders is the root of r when it has HIP's headers, or "".
func hipHeaders(r toolchain.ROCm) string {
	if r.Root != "" && isFile(filepath.Join(r.Root, "include", "hip", "hip_runtime.h")) {
		return r.Root
	}
	return ""
}
