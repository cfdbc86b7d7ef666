package upstream

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// gitFetch fetches refspecs with the system's git, with filter without files.
func (c *cacheRepo) gitFetch(ctx context.Context, specs []string, filter bool) error {
	args := []string{"fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--depth=1", "--force", "--progress"}
	if filter {
		args = append(args, "--filter=blob:none")
	} else {
		args = append(args, "--no-filter")
	}
	opt := &runOptions{
		dir:    c.dir,
		stdin:  strings.NewReader(strings.Join(specs, "\n") + "\n"),
		status: func(s string) { c.progress.Status("fetch: %s", s) },
	}
	_, err := c.git.run(ctx, opt, append(args, "--stdin", "origin")...)
	return c.judge(err)
}

// goFetch does the same with go-git, which knows no filter: each commit comes
// with all its files.
func (c *cacheRepo) goFetch(ctx context.Context, specs []string, _ bool) error {
	st := filesystem.NewStorage(osfs.New(c.dir), cache.NewObjectLRUDefault())
	defer st.Close()
	rem := gogit.NewRemote(st, &config.RemoteConfig{Name: "origin", URLs: []string{c.loc.url}})
	opt := &gogit.FetchOptions{
		Depth: 1, Tags: gogit.NoTags, Force: true,
		Progress: &tailWriter{status: func(s string) { c.progress.Status("fetch: %s", s) }},
	}
	for _, s := range specs {
		opt.RefSpecs = append(opt.RefSpecs, config.RefSpec(s))
	}
	err := rem.FetchContext(ctx, opt)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, gogit.NoErrAlreadyUpToDate) {
		return nil
	}
	return c.judge(err)
}

// fetchObjects fetches objects by id in one request.
func (c *cacheRepo) fetchObjects(ctx context.Context, ids []string) error {
	c.progress.Status("fetch: %d files", len(ids))
	opt := &runOptions{
		dir:    c.dir,
		config: []string{"fetch.negotiationAlgorithm=noop"},
		stdin:  strings.NewReader(strings.Join(ids, "\n") + "\n"),
		status: func(s string) { c.progress.Status("fetch: %s", s) },
	}
	// The options git itself uses to complete a partial clone.
	_, err := c.git.run(ctx, opt, "fetch", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--filter=blob:none", "--progress", "--stdin", "origin")
	return c.judge(err)
}

// list returns all refs of the server; an annotated tag also with ^{}.
func (c *cacheRepo) list(ctx context.Context) ([]refLine, error) {
	if c.git != nil {
		refs, err := c.git.lsRemote(ctx, c.loc.url)
		return refs, c.judge(err)
	}
	rem := gogit.NewRemote(nil, &config.RemoteConfig{Name: "origin", URLs: []string{c.loc.url}})
	list, err := rem.ListContext(ctx, &gogit.ListOptions{PeelingOption: gogit.AppendPeeled})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.judge(err)
	}
	var out []refLine
	head := plumbing.ReferenceName("")
	for _, ref := range list {
		if ref.Type() == plumbing.SymbolicReference && ref.Name() == plumbing.HEAD {
			head = ref.Target()
		}
	}
	for _, ref := range list {
		if ref.Type() == plumbing.HashReference {
			out = append(out, refLine{ref.Name().String(), ref.Hash().String()})
			if ref.Name() == head {
				out = append(out, refLine{"HEAD", ref.Hash().String()})
			}
		}
	}
	return out, nil
}
