package upstream

import (
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/shell"
	"dot4fa/internal/upstream/gitobj"
)

// CommitInfo is what a commit says about itself.
type CommitInfo = gitobj.CommitInfo

// Commit returns what a commit says about itself.
func (r *Repo) Commit(ctx context.Context, id string) (CommitInfo, error) {
	if r.loc.kind == directory {
		return CommitInfo{}, r.noCommits()
	}
	if _, err := r.At(ctx, id); err != nil {
		return CommitInfo{}, err
	}
	c, err := r.store.ReadCommit(ctx, id)
	return c, r.explain(err, id)
}

// IsAncestor reports whether commit a is commit b or one of its ancestors. It
// needs history, which a URL's cache does not have.
func (r *Repo) IsAncestor(ctx context.Context, a, b string) (bool, error) {
	if err := r.needHistory(); err != nil {
		return false, err
	}
	first, err := r.store.ReadCommit(ctx, a)
	if err != nil {
		return false, r.explain(err, a)
	}
	// Newest first, so that the search ends soon after passing a's date. The
	// day of slack is for committers whose clocks were wrong.
	cut := first.Date.AddDate(0, 0, -1)
	queue := &byDate{}
	seen := map[string]bool{}
	push := func(id string) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		c, err := r.store.ReadCommit(ctx, id)
		if err == nil {
			heap.Push(queue, c)
		}
		return err
	}
	if err := push(b); err != nil {
		return false, r.explain(err, b)
	}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(CommitInfo)
		if c.ID == first.ID {
			return true, nil
		}
		if c.Date.Before(cut) {
			continue
		}
		for _, p := range c.Parents {
			if err := push(p); err != nil {
				return false, r.shallow(err)
			}
		}
	}
	return false, nil
}

// Below returns the first of the commits for which want holds that a walk from
// the commit id meets, going from newer to older ones; "" when there is none. It
// needs history.
func (r *Repo) Below(ctx context.Context, id string, want func(id string) bool) (string, error) {
	if err := r.needHistory(); err != nil {
		return "", err
	}
	first, err := r.store.ReadCommit(ctx, id)
	if err != nil {
		return "", r.explain(err, id)
	}
	queue, seen := &byDate{first}, map[string]bool{first.ID: true}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(CommitInfo)
		if want(c.ID) {
			return c.ID, nil
		}
		for _, p := range c.Parents {
			if seen[p] {
				continue
			}
			seen[p] = true
			info, err := r.store.ReadCommit(ctx, p)
			if err != nil {
				return "", r.shallow(err)
			}
			heap.Push(queue, info)
		}
	}
	return "", nil
}

// byDate is a heap of commits, the newest first.
type byDate []CommitInfo

func (h byDate) Len() int           { return len(h) }
func (h byDate) Less(i, j int) bool { return h[i].Date.After(h[j].Date) }
func (h byDate) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDate) Push(x any)        { *h = append(*h, x.(CommitInfo)) }
func (h *byDate) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}

// Touching returns the commits after from, up to and including to, that changed
// the file or directory name, newest first, at most limit (0: all). It follows
// first parents, as upstream merges one commit for each change; from need not
// be an ancestor, then it goes to the beginning. It needs history.
func (r *Repo) Touching(ctx context.Context, name, from, to string, limit int) ([]CommitInfo, error) {
	if err := r.needHistory(); err != nil {
		return nil, err
	}
	c, err := r.store.ReadCommit(ctx, to)
	if err != nil {
		return nil, r.explain(err, to)
	}
	id, err := r.idAt(ctx, c, name)
	if err != nil {
		return nil, r.explain(err, to)
	}
	var out []CommitInfo
	for c.ID != from {
		if len(c.Parents) == 0 {
			if id != "" {
				out = append(out, c)
			}
			break
		}
		p, err := r.store.ReadCommit(ctx, c.Parents[0])
		if err != nil {
			return out, r.shallow(err)
		}
		before, err := r.idAt(ctx, p, name)
		if err != nil {
			return out, r.explain(err, p.ID)
		}
		if before != id {
			out = append(out, c)
			if limit > 0 && len(out) == limit {
				break
			}
		}
		c, id = p, before
	}
	return out, nil
}

// idAt returns the object a path is at a commit, "" for none.
func (r *Repo) idAt(ctx context.Context, c CommitInfo, name string) (string, error) {
	id := c.Tree
	for part := range strings.SplitSeq(name, "/") {
		entries, err := r.tree(ctx, c.ID, id)
		if err != nil {
			return "", err
		}
		id = ""
		for _, e := range entries {
			if e.Name == part {
				id = e.ID
			}
		}
		if id == "" {
			return "", nil
		}
	}
	return id, nil
}

func (r *Repo) needHistory() error {
	switch r.loc.kind {
	case directory:
		return r.noCommits()
	case remote:
		return fault.New(fault.Environment, "this needs upstream's history, which is not fetched from a URL").At("%s", r.loc.text).
			Hintf("clone it (git clone --filter=blob:none --no-checkout %s llama.cpp) and give --upstream llama.cpp", r.loc.text)
	}
	return nil
}

// shallow explains a history that ends early.
func (r *Repo) shallow(err error) error {
	if errors.Is(err, gitobj.ErrMissing) {
		return fault.New(fault.Environment, "the repository's history is not complete: %w", err).At("%s", r.loc.text).
			Hintf("run git -C %s fetch --unshallow, or give a full clone", shell.Quote(r.loc.text))
	}
	return r.explain(err, "")
}

// IsNotExist reports whether an error of ReadFile or BlobID means that the
// commit does not have the path.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
