package upstream

import (
	"context"
	"errors"
	"fmt"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream/gitobj"
)

// fetch brings commits into the cache, with every file that is not excluded.
// why is what reading the cache said before, nil when there was no cache: it
// decides between adding to the cache and making a new one.
func (r *Repo) fetch(ctx context.Context, commits []string, why error) error {
	c := r.cache
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// Another run may have fetched it while this one waited.
	if err := r.reopen(); err == nil && !errors.Is(why, gitobj.ErrDamaged) && r.all(ctx, commits) == nil {
		return nil
	}
	var no *refusedError
	if !errors.Is(why, gitobj.ErrDamaged) {
		err := r.fetchInto(ctx, commits, true)
		if err == nil || ctx.Err() != nil || hopeless(err) {
			return r.fetched(err, commits)
		}
		why = err
	}
	if errors.As(why, &no) {
		c.progress.Say("%s does not give single files: fetching everything", c.loc.text)
	} else {
		c.progress.Say("the cache of %s is damaged or cannot be added to (%v): fetching it again", c.loc.text, why)
	}
	restore, drop, err := c.aside()
	if err != nil {
		return err
	}
	if err = r.fetchInto(ctx, commits, no == nil); err != nil && no == nil && errors.As(err, &no) {
		// A commit that is there is not sent again with its files: start over.
		if err = c.remove(); err == nil {
			err = r.fetchInto(ctx, commits, false)
		}
	}
	if err == nil {
		drop()
		return nil
	}
	restore()
	r.reopen()
	err = r.fetched(err, commits)
	if hint := fault.Hint(err); hint != "" && ctx.Err() == nil && errors.Is(why, gitobj.ErrDamaged) {
		return fault.New(fault.Code(err), "the cached repository is damaged (%v), and fetching it again failed: %w", why, err).
			At("%s", c.dir).Hintf("%s", hint)
	}
	return err
}

// hopeless reports whether another way of fetching the same cannot help.
func hopeless(err error) bool {
	var known *fault.Error
	var doubt *doubtError
	return errors.As(err, &known) && !errors.As(err, &doubt)
}

// fetched turns a refusal that is left in the end into an unknown commit.
func (r *Repo) fetched(err error, commits []string) error {
	var no *refusedError
	if errors.As(err, &no) {
		return fault.New(fault.Usage, "upstream does not have commit %s, or does not give it: %v", commits[0], no.err).At("%s", r.loc.text).
			Hintf("check upstream.commit and upstream.url in the recipe: the commit may be another fork's")
	}
	return r.explain(err, commits[0])
}

// reopen looks at the cache anew.
func (r *Repo) reopen() error {
	if r.store != nil {
		r.store.Close()
		r.store = nil
	}
	if !r.cache.exists() {
		return errNoCache
	}
	store, err := gitobj.Open(r.cache.dir)
	r.store = store
	if err != nil {
		r.store = nil
	}
	return err
}

var errNoCache = errors.New("nothing was fetched yet")

// all checks that commits are in the cache as a whole.
func (r *Repo) all(ctx context.Context, commits []string) error {
	for _, id := range commits {
		if _, err := r.whole(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// fetchInto fetches commits into the cache; the lock is held. With filter the
// files come separately, only those that are needed and not there yet.
func (r *Repo) fetchInto(ctx context.Context, commits []string, filter bool) error {
	c := r.cache
	if err := c.prepare(); err != nil {
		return err
	}
	defer r.reopen()
	what := short(commits[0])
	if r.tag != "" && len(commits) == 1 {
		what = r.tag + " (" + what + ")"
	}
	c.progress.Say("fetching %s from %s", what, c.loc.text)
	if err := r.fetchCommits(ctx, commits, filter); err != nil {
		return r.fetched(err, commits)
	}
	if err := r.reopen(); err != nil {
		return err
	}
	var ids []string
	seen := map[string]bool{}
	for _, id := range commits {
		_, err := r.whole(ctx, id)
		var lack *lackError
		if errors.As(err, &lack) {
			for _, f := range lack.files {
				if !seen[f.ID] {
					seen[f.ID] = true
					ids = append(ids, f.ID)
				}
			}
		} else if errors.Is(err, gitobj.ErrType) {
			return r.explain(err, id)
		} else if err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if !filter {
		return fmt.Errorf("%w: the server sent a commit without its files", gitobj.ErrMissing)
	}
	if err := c.fetchObjects(ctx, ids); err != nil {
		return err
	}
	if err := r.reopen(); err != nil {
		return err
	}
	return r.all(ctx, commits)
}

// fetchCommits fetches commits without their history. The refs it makes keep
// the objects from being taken for garbage. Some servers give nothing by id:
// then the tag is asked for, if it is that commit.
func (r *Repo) fetchCommits(ctx context.Context, commits []string, filter bool) error {
	var specs []string
	for _, id := range commits {
		specs = append(specs, "+"+id+":refs/dot4fa/"+id)
	}
	get := r.cache.goFetch
	if r.cache.git != nil {
		get = r.cache.gitFetch
	}
	err := get(ctx, specs, filter)
	var no *refusedError
	if errors.As(err, &no) && r.tag != "" && len(commits) == 1 {
		if id, lsErr := r.lsTag(ctx, r.tag); lsErr == nil && id == commits[0] {
			err = get(ctx, []string{"+refs/tags/" + r.tag + ":refs/dot4fa/" + id}, filter)
		}
	}
	return err
}

// fetchBlobs fetches single files of a commit that Repo.At opened.
func (r *Repo) fetchBlobs(ctx context.Context, ids []string) error {
	c := r.cache
	if c.git == nil || len(ids) == 0 {
		return nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.fetchObjects(ctx, ids); err != nil {
		return err
	}
	return r.reopen()
}

// lsTag asks the server which commit a tag is.
func (r *Repo) lsTag(ctx context.Context, tag string) (string, error) {
	refs, err := r.cache.list(ctx)
	if err != nil {
		return "", err
	}
	id := ""
	for _, ref := range refs {
		switch ref.name {
		case "refs/tags/" + tag + "^{}":
			return ref.id, nil
		case "refs/tags/" + tag:
			id = ref.id
		}
	}
	return id, nil
}
