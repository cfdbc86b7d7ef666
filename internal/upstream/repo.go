package upstream

import (
	"context"
	"errors"
	"path"
	"sort"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
)

// Ref is a tag and its commit.
type Ref struct {
	Name   string
	Commit string
	Date   time.Time // the commit's; zero where only the server knows it
}

// Tags returns the tags whose name matches pattern (path.Match, as b10*),
// oldest commit first. Tags before since are left out. For a URL the dates are
// known, and since takes effect, only after the commits were fetched, which
// this does when since is not zero.
func (r *Repo) Tags(ctx context.Context, pattern string, since time.Time) ([]Ref, error) {
	if r.loc.kind == directory {
		return nil, r.noCommits()
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fault.New(fault.Usage, "bad tag pattern %q", pattern).Hintf("use * and ?, as in b10*")
	}
	refs, err := r.refs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for name, id := range refs {
		tag, ok := strings.CutPrefix(name, "refs/tags/")
		if match, _ := path.Match(pattern, tag); !ok || !match {
			continue
		}
		out = append(out, Ref{Name: tag, Commit: id})
	}
	if r.cache != nil && !since.IsZero() && len(out) > 0 {
		if err := r.fetchDates(ctx, out); err != nil {
			return nil, err
		}
	}
	kept := out[:0]
	for _, ref := range out {
		if r.cache == nil {
			c, err := r.store.ReadCommit(ctx, ref.Commit)
			switch {
			case err == nil:
				ref.Commit, ref.Date = c.ID, c.Date
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, gitobj.ErrDamaged):
				return nil, r.explain(err, ref.Commit)
			default:
				continue // a tag of something else than a commit
			}
		}
		if !since.IsZero() && ref.Date.Before(since) {
			continue
		}
		kept = append(kept, ref)
	}
	sort.Slice(kept, func(i, j int) bool {
		a, b := kept[i], kept[j]
		if !a.Date.Equal(b.Date) {
			return a.Date.Before(b.Date)
		}
		na, oka := releaseNumber(a.Name)
		nb, okb := releaseNumber(b.Name)
		if oka && okb && na != nb {
			return na < nb
		}
		return a.Name < b.Name
	})
	return kept, nil
}

// At returns upstream at a commit for reading single files: trees and files are
// read when they are asked for, and kept for the next commit. For a URL the
// commit is fetched, without its files; Prefetch brings the files of many
// commits in one go.
func (r *Repo) At(ctx context.Context, commit string) (*Snapshot, error) {
	if r.loc.kind == directory {
		return r.openDir(ctx)
	}
	if !gitobj.IsID(commit) {
		return nil, fault.New(fault.Usage, "%q is not a full commit id", commit).Hintf("resolve it first")
	}
	s, err := r.snapshot(ctx, commit)
	if r.cache != nil && errors.Is(err, gitobj.ErrMissing) {
		if err = r.Prefetch(ctx, []string{commit}, nil); err == nil {
			s, err = r.snapshot(ctx, commit)
		}
	}
	return s, r.explain(err, commit)
}

// Prefetch makes sure that the files at paths are at hand for all commits, with
// two requests to the server whatever their number. Without a system git each
// commit comes as a whole. For a local repository there is nothing to do.
func (r *Repo) Prefetch(ctx context.Context, commits, paths []string) error {
	if r.cache == nil || len(commits) == 0 {
		return nil
	}
	var need []string
	for _, id := range commits {
		if _, err := r.snapshot(ctx, id); err != nil {
			need = append(need, id)
		}
	}
	if len(need) > 0 {
		if r.cache.git == nil {
			return r.fetch(ctx, need, errNoCache)
		}
		if err := r.fetchTrees(ctx, need); err != nil {
			return err
		}
	}
	var ids []string
	seen := map[string]bool{}
	for _, id := range commits {
		s, err := r.snapshot(ctx, id)
		if err != nil {
			return r.explain(err, id)
		}
		for _, p := range paths {
			f, err := s.find(ctx, p)
			if err == nil && !seen[f.ID] && !r.store.Has(f.ID) {
				seen[f.ID] = true
				ids = append(ids, f.ID)
			}
		}
	}
	return r.fetchBlobs(ctx, ids)
}

// fetchTrees fetches commits without files.
func (r *Repo) fetchTrees(ctx context.Context, commits []string) error {
	unlock, err := r.cache.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.cache.prepare(); err != nil {
		return err
	}
	r.progress.Say("fetching %d commits from %s", len(commits), r.loc.text)
	if err := r.fetchCommits(ctx, commits, true); err != nil {
		return r.fetched(err, commits)
	}
	return r.reopen()
}
