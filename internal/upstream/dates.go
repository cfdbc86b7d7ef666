package upstream

import (
	"context"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
)

// fetchDates fills in the dates of a server's tags. Only the commits themselves
// are fetched, into a repository of their own: in the one that is built from,
// git would take a commit it has for one whose trees it has.
func (r *Repo) fetchDates(ctx context.Context, tags []Ref) error {
	c := *r.cache
	if c.git == nil {
		return fault.New(fault.Environment, "the dates of a server's tags need git 2.30 or newer").At("%s", r.loc.text).
			Hintf("install git, or give a local clone with --upstream")
	}
	c.dir = strings.TrimSuffix(c.dir, ".git") + "-dates.git"
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.prepare(); err != nil {
		return err
	}
	missing, err := c.fillDates(ctx, tags)
	if err != nil || len(missing) == 0 {
		return err
	}
	c.progress.Status("fetch: the dates of %d tags", len(missing))
	opt := &runOptions{dir: c.dir, stdin: strings.NewReader(strings.Join(missing, "\n") + "\n")}
	_, err = c.git.run(ctx, opt, "fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--depth=1",
		"--filter=tree:0", "--stdin", "origin")
	if err = c.judge(err); err != nil {
		return r.fetched(err, missing[:1])
	}
	_, err = c.fillDates(ctx, tags)
	return err
}

// fillDates sets the dates that are at hand and returns the other commits.
func (c *cacheRepo) fillDates(ctx context.Context, tags []Ref) (missing []string, err error) {
	store, err := gitobj.Open(c.dir)
	if err != nil {
		return nil, c.cannotWrite(err)
	}
	defer store.Close()
	for i := range tags {
		info, err := store.ReadCommit(ctx, tags[i].Commit)
		switch {
		case err == nil:
			tags[i].Date = info.Date
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			missing = append(missing, tags[i].Commit)
		}
	}
	return missing, nil
}
