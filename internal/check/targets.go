package check

import (
	"context"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/upstream"
)

// Which says which commits to check. With nothing set it is the pin.
type Which struct {
	Refs  []string
	Range string    // "A..B": the commits after A up to B, along first parents
	Tags  string    // pattern of tag names
	Since time.Time // for Tags: not those before
	Pin   Target    // the recipe's
}

// Targets resolves w in repo.
func (w Which) Targets(ctx context.Context, repo *upstream.Repo) ([]Target, error) {
	if repo.IsDirectory() {
		if len(w.Refs) > 0 || w.Range != "" || w.Tags != "" {
			return nil, fault.New(fault.Usage, "a directory without a repository has no commits to choose from").
				Hintf("leave the refs out to check the files as they are, or give a clone or a URL with --upstream")
		}
		return []Target{{Ref: "directory"}}, nil
	}
	var out []Target
	for _, ref := range w.Refs {
		id, err := repo.ResolveRef(ctx, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, Target{ref, id})
	}
	if w.Range != "" {
		list, err := w.between(ctx, repo)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if w.Tags != "" {
		tags, err := repo.Tags(ctx, w.Tags, w.Since)
		if err != nil {
			return nil, err
		}
		if len(tags) == 0 {
			return nil, fault.New(fault.Usage, "no tag matches %s", w.since()).Hintf("release tags are called b10573; quote the pattern: --tags 'b105*'")
		}
		for _, t := range tags {
			out = append(out, Target{t.Name, t.Commit})
		}
	}
	if out == nil {
		out = []Target{w.Pin}
	}
	return out, nil
}

func (w Which) since() string {
	if w.Since.IsZero() {
		return w.Tags
	}
	return w.Tags + " since " + w.Since.Format(time.DateOnly)
}

// between lists the commits of a range, oldest first.
func (w Which) between(ctx context.Context, repo *upstream.Repo) ([]Target, error) {
	a, b, ok := strings.Cut(w.Range, "..")
	if !ok || a == "" || b == "" || strings.HasPrefix(b, ".") {
		return nil, fault.New(fault.Usage, "%q is not a range", w.Range).Hintf("write it as b10326..b10573")
	}
	if repo.Remote() {
		return nil, fault.New(fault.Environment, "a range needs upstream's history, which is not fetched from a URL").
			Hintf("give a clone with --upstream, or check tags: --tags 'b105*'")
	}
	from, err := repo.ResolveRef(ctx, a)
	if err != nil {
		return nil, err
	}
	to, err := repo.ResolveRef(ctx, b)
	if err != nil {
		return nil, err
	}
	inside, err := repo.IsAncestor(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if !inside {
		return nil, fault.New(fault.Usage, "%s is not an ancestor of %s", a, b).Hintf("give the older commit first")
	}
	first, err := repo.Commit(ctx, from)
	if err != nil {
		return nil, err
	}
	var out []Target
	for id := to; id != from; {
		c, err := repo.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		if c.Date.Before(first.Date) {
			break // from came in through a merge: the first parents pass it by
		}
		out = append(out, Target{c.ID[:10], c.ID})
		if len(c.Parents) == 0 {
			break
		}
		id = c.Parents[0]
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Usage, "the range %s holds no commit", w.Range).Hintf("give two different commits, the older one first")
	}
	return out, nil
}
