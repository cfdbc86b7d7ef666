package pipeline

import (
	"context"

	"dot4fa/internal/build"
	"dot4fa/internal/fault"
	"dot4fa/internal/isa"
	"dot4fa/internal/render"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
	"dot4fa/internal/upstream"
)

// Units compiles, without making code, the units that the series edits and adds
// on a commit of repo. Every edit must hold there.
func (r *Run) Units(ctx context.Context, repo *upstream.Repo, commit string) ([]syntax.Unit, error) {
	snap, err := repo.At(ctx, commit)
	if err != nil {
		return nil, err
	}
	edits, err := series.Load(r.Assets)
	if err != nil {
		return nil, err
	}
	edits.Hooks.Contains = func(id string) (bool, error) { return repo.IsAncestor(ctx, id, snap.Commit) }
	plan, err := edits.Plan(snap.ReadFile, r.Recipe)
	if err != nil {
		return nil, err
	}
	added, err := render.Render(r.Recipe, r.Assets)
	if err != nil {
		return nil, err
	}
	files, err := snap.Files()
	if err != nil {
		return nil, err
	}
	tree := syntax.Tree{Read: snap.ReadFile, Plan: plan, Added: asRendered(added)}
	for _, f := range files {
		tree.Paths = append(tree.Paths, f.Path)
	}
	set := r.Tools(ctx)
	if !set.CC.Found() || !set.CXX.Found() {
		return nil, fault.New(fault.Environment, "no C and C++ compiler found").Hintf("install gcc and g++, or name them with CC and CXX")
	}
	tools := syntax.Tools{CC: set.CC.Path, CXX: set.CXX.Path}
	if c, err := isa.FindCompiler(ctx, ""); err == nil {
		tools.Device = c
	}
	return syntax.Check(ctx, tree, tools, build.ChooseJobs(r.Recipe.Backend, 0).N)
}
