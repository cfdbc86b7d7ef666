package upstream

import (
	"context"

	"dot4fa/internal/upstream/gitobj"
)

// Has reports whether the commit can be read here and now, with the files that a
// build needs, without fetching anything. A plain directory has no commits and
// counts as having the one that is asked for.
func (r *Repo) Has(ctx context.Context, commit string) bool {
	switch {
	case r.loc.kind == directory:
		return true
	case r.store == nil || !gitobj.IsID(commit):
		return false
	}
	s, err := r.snapshot(ctx, commit)
	if err != nil {
		return false
	}
	files, err := s.Files()
	if err != nil {
		return false
	}
	for _, f := range files {
		if !r.store.Has(f.ID) {
			return false
		}
	}
	return true
}

// Reach asks the server of a URL for its refs. It is nil for what is on this
// machine.
func (r *Repo) Reach(ctx context.Context) error {
	if r.cache == nil {
		return nil
	}
	_, err := r.cache.list(ctx)
	return err
}

// CacheDir is where a URL's commits are kept, "" for what is on this machine.
func (r *Repo) CacheDir() string {
	if r.cache == nil {
		return ""
	}
	return r.cache.dir
}
