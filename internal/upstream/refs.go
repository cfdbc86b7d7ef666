package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/shell"
	"dot4fa/internal/upstream/gitobj"
)

// refs returns the repository's refs by full name, an annotated tag's commit
// under its own name.
func (r *Repo) refs(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	if r.cache != nil {
		list, err := r.cache.list(ctx)
		if err != nil {
			return nil, err
		}
		for _, ref := range list {
			name, peeled := strings.CutSuffix(ref.name, "^{}")
			if _, have := out[name]; !have || peeled {
				out[name] = ref.id
			}
		}
		return out, nil
	}
	if _, err := os.Stat(filepath.Join(r.loc.common, "reftable")); err == nil {
		return nil, fault.New(fault.Environment, "the repository keeps its refs in a reftable").At("%s", r.loc.text).
			Hintf("give a full commit id, or run git -C %s refs migrate --ref-format=files", shell.Quote(r.loc.text))
	}
	list, err := r.store.Refs()
	if err != nil {
		return nil, r.explain(err, "")
	}
	if head, err := os.ReadFile(filepath.Join(r.loc.gitDir, "HEAD")); err == nil { // a linked worktree has its own
		to := strings.TrimSpace(string(head))
		if name, sym := strings.CutPrefix(to, "ref: "); sym {
			to = list[name]
		}
		if gitobj.IsID(to) {
			list["HEAD"] = to
		}
	}
	return list, nil
}

// ResolveRef returns the commit a ref means: a full id, the start of one (at
// least 4 digits), a tag, a branch, a remote branch or HEAD. A tag wins over a branch. For
// a URL the server is asked, and the start of an id can only be that of a tag
// or branch.
func (r *Repo) ResolveRef(ctx context.Context, ref string) (string, error) {
	if r.loc.kind == directory {
		return "", r.noCommits()
	}
	if gitobj.IsID(ref) && (r.cache != nil || r.store.Has(ref)) {
		if r.cache != nil {
			return ref, nil
		}
		c, err := r.store.ReadCommit(ctx, ref)
		return c.ID, r.explain(err, ref)
	}
	if ref == "" || strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, " \t\n~^:?*[\\\x00") {
		return "", fault.New(fault.Usage, "%q is not a ref", ref).Hintf("give a tag, a branch or a commit id, as b10573")
	}
	refs, err := r.refs(ctx)
	if err != nil {
		return "", err
	}
	for _, pattern := range []string{"%s", "refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s", "refs/remotes/%s/HEAD"} {
		if id, ok := refs[fmt.Sprintf(pattern, ref)]; ok {
			return r.commitOf(ctx, id)
		}
	}
	low := strings.ToLower(ref)
	if len(low) >= 4 && len(low) <= 40 && strings.Trim(low, "0123456789abcdef") == "" {
		id, err := r.resolveShort(ctx, low, refs)
		if id != "" || err != nil {
			return id, err
		}
		// b99999 could be the start of an id too, but is meant as a release.
	}
	e := fault.New(fault.Usage, "unknown ref %s", ref).At("%s", r.loc.text)
	var names []string
	for name := range refs {
		for _, p := range []string{"refs/tags/", "refs/heads/", "refs/remotes/"} {
			if s, ok := strings.CutPrefix(name, p); ok {
				names = append(names, s)
			}
		}
	}
	sort.Strings(names)
	if near := nearestRef(ref, names); near != "" {
		return "", e.Hintf("did you mean %s? otherwise fetch it there first, or give a commit id", near)
	}
	return "", e.Hintf("give a tag, a branch or a commit id that the repository has")
}

// nearestRef is the release with the nearest number, or the nearest name.
func nearestRef(ref string, names []string) string {
	n, ok := releaseNumber(ref)
	if !ok {
		return nearest.Name(ref, names)
	}
	best, dist := "", 0
	for _, name := range names {
		if m, ok := releaseNumber(name); ok {
			if d := max(m-n, n-m); best == "" || d < dist {
				best, dist = name, d
			}
		}
	}
	return best
}

// commitOf follows annotated tags. For a URL the server has done that.
func (r *Repo) commitOf(ctx context.Context, id string) (string, error) {
	if r.cache != nil {
		return id, nil
	}
	c, err := r.store.ReadCommit(ctx, id)
	return c.ID, r.explain(err, id)
}

// resolveShort completes the start of a commit id; "" when there is none and it
// may be a release's name as well.
func (r *Repo) resolveShort(ctx context.Context, start string, refs map[string]string) (string, error) {
	found := map[string]bool{}
	if r.cache != nil {
		for _, id := range refs {
			if strings.HasPrefix(id, start) {
				found[id] = true
			}
		}
	} else {
		ids, err := r.store.Prefix(start)
		if err != nil {
			return "", r.explain(err, start)
		}
		for _, id := range ids {
			if c, err := r.store.ReadCommit(ctx, id); err == nil {
				found[c.ID] = true
			}
		}
	}
	var ids []string
	for id := range found {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	_, release := releaseNumber(start)
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) == 0 && release:
		return "", nil
	case len(ids) > 1:
		return "", fault.New(fault.Usage, "%s is the start of %d commits: %s", start, len(ids), strings.Join(ids, ", ")).At("%s", r.loc.text).
			Hintf("give more digits")
	case r.cache != nil:
		return "", fault.New(fault.Usage, "no tag or branch is at a commit that starts with %s", start).At("%s", r.loc.text).
			Hintf("give all 40 digits: a server does not complete the start of an id")
	}
	return "", fault.New(fault.Usage, "no commit starts with %s", start).At("%s", r.loc.text).Hintf("fetch it there first, or give another ref")
}

func (r *Repo) noCommits() error {
	return fault.New(fault.Usage, "a directory without a repository has no commits").At("%s", r.loc.text).
		Hintf("give a clone of llama.cpp or a URL with --upstream")
}
