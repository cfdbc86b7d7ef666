package pipeline

import (
	"context"

	"dot4fa/internal/fault"
	"dot4fa/internal/release"
	"dot4fa/internal/upstream"
	"dot4fa/internal/upstream/gitobj"
)

// Export makes the release of the recipe's series and writes it to dir.
func (r *Run) Export(ctx context.Context, dir string) (*release.Info, error) {
	made, err := r.release(ctx)
	if err != nil {
		return nil, err
	}
	if err := made.Write(dir); err != nil {
		return nil, err
	}
	return &made.Info, nil
}

func (r *Run) release(ctx context.Context) (*release.Release, error) {
	s, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if s.Commit == "" {
		return nil, fault.New(fault.Usage, "a series needs a commit to be based on, and a plain directory has none").At("%s", r.location()).
			Hintf("give a clone of llama.cpp or a URL with --upstream")
	}
	plan, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	files, err := r.Files(ctx)
	if err != nil {
		return nil, err
	}
	base, err := r.wholeTree(ctx, s.Commit)
	if err != nil {
		return nil, err
	}
	up := r.Recipe.Upstream
	return release.New(release.Source{
		Info: release.Info{
			Tool: r.Version, Upstream: up.URL,
			Recipe: release.Recipe{Name: r.Recipe.Name, Hash: r.Recipe.Hash()},
			Base:   release.Base{Commit: s.Commit, Tag: up.Tag, Tree: s.Tree},
		},
		Date: s.Date, Files: base.Files, Plan: plan, Added: asRendered(files),
	})
}

// wholeTree lists every file of a commit, those that the recipe excludes too:
// their ids are known from the trees, their content is not read.
func (r *Run) wholeTree(ctx context.Context, commit string) (*release.Tree, error) {
	repo, err := upstream.OpenRepo(ctx, upstream.Options{Location: r.location(), Progress: r.Report})
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	all, err := repo.At(ctx, commit)
	if err != nil {
		return nil, err
	}
	list, err := all.Files()
	if err != nil {
		return nil, err
	}
	t := &release.Tree{Tree: all.Tree, Files: make(map[string]gitobj.Entry, len(list))}
	for _, f := range list {
		t.Files[f.Path] = gitobj.Entry{Mode: f.Mode, ID: f.ID}
	}
	return t, nil
}

// ReleaseCheck is what VerifyExport found of a release that is sound.
type ReleaseCheck struct {
	*release.Verified
	Ours bool `json:"ours"` // it is, file for file, what this dot4fa exports
}

// VerifyExport checks the release in dir, on the commit it names.
func (r *Run) VerifyExport(ctx context.Context, dir string) (*ReleaseCheck, error) {
	info, err := release.ReadInfo(dir)
	if err != nil {
		return nil, err
	}
	base, err := r.wholeTree(ctx, info.Base.Commit)
	if err != nil {
		return nil, err
	}
	repo, err := r.Repo(ctx)
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	at, err := repo.At(ctx, info.Base.Commit)
	if err != nil {
		return nil, err
	}
	base.Read = at.ReadFile
	v, err := release.Verify(ctx, dir, info, *base)
	if err != nil {
		return nil, err
	}
	c := &ReleaseCheck{Verified: v}
	if info.Base.Commit == r.Recipe.Upstream.Commit {
		if own, err := r.release(ctx); err == nil {
			c.Ours = own.Info.Tip == info.Tip && samePatches(own.Info.Patches, info.Patches)
		}
	}
	return c, nil
}

func samePatches(a, b []release.Record) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
