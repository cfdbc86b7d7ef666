package check

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"dot4fa/internal/series"
)

// Why says more of an edit that fails on a commit that is no release of
// upstream's: whose doing it is, and where the place went.
type Why struct {
	Cause Cause    `json:"cause,omitempty"`
	By    string   `json:"by,omitempty"`    // commit since which it fails, when the tree's own
	Found []string `json:"found,omitempty"` // file:line where scope and anchor are instead
}

// Cause tells a fork's own changes from those of the upstream it is based on.
type Cause string

// The causes.
const (
	Own  Cause = "own"  // the edit holds on the base: a commit after it changed the place
	Base Cause = "base" // it fails on the base too
)

// Explain finds out for every failed edit of at whether it fails on base too,
// the release of upstream's that at is made from, and looks for its place in the
// tree's other files. base is a ref; empty, it is the newest release (tag bNNNN)
// in the history of at, if there is one. Where at is a release itself, or has no
// history, only the other files are searched.
func (c *Checker) Explain(ctx context.Context, at *Commit, base string) error {
	if at.OK {
		return nil
	}
	at.Why = map[string]Why{}
	if !c.repo.IsDirectory() && !c.repo.Remote() {
		below, err := c.base(ctx, at.Commit, base)
		if err != nil {
			return err
		}
		if below != nil && below.Commit != at.Commit {
			if err := c.blame(ctx, at, *below); err != nil {
				return err
			}
		}
	}
	return c.elsewhere(ctx, at)
}

// base returns the release a commit is made from, or nil.
func (c *Checker) base(ctx context.Context, commit, named string) (*Target, error) {
	if named != "" {
		id, err := c.repo.ResolveRef(ctx, named)
		if err != nil {
			return nil, err
		}
		return &Target{named, id}, nil
	}
	tags, err := c.repo.Tags(ctx, "b[0-9]*", time.Time{})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, t := range tags {
		names[t.Commit] = t.Name
	}
	id, err := c.repo.Below(ctx, commit, func(id string) bool { return names[id] != "" })
	if err != nil || id == "" {
		return nil, ctx.Err() // a shallow history: the base is not known
	}
	return &Target{names[id], id}, nil
}

// blame tells for each failed edit of at whether it fails on base too, and finds
// the commit between them that changed its place.
func (c *Checker) blame(ctx context.Context, at *Commit, base Target) error {
	below, err := c.one(ctx, base)
	if err != nil {
		return err
	}
	at.Base = &base
	fails := map[string]bool{}
	for _, e := range below.Failed() {
		fails[e.ID] = true
	}
	for _, e := range at.Failed() {
		why := Why{Cause: Base}
		if !fails[e.ID] {
			why.Cause = Own
			turn, err := c.turn(ctx, e, base.Commit, at.Commit, false)
			if err != nil {
				return err
			}
			if turn != nil {
				why.By = fmt.Sprintf("%.10s %s", turn.ID, turn.Subject)
			}
		}
		at.Why[e.ID] = why
	}
	return nil
}

// elsewhere looks for the places of edits that are gone in the tree's other files.
func (c *Checker) elsewhere(ctx context.Context, at *Commit) error {
	var lost []*series.Edit
	for _, e := range c.whole.Edits() {
		if r := at.edit(e.ID); r != nil && r.Status == series.Gone && len(clues(e)) > 0 {
			lost = append(lost, e)
		}
	}
	if lost == nil {
		return nil
	}
	snap, err := c.repo.At(ctx, at.Commit)
	if err != nil {
		return err
	}
	files, err := snap.Files()
	if err != nil {
		return err
	}
	var sources []string
	for _, f := range files {
		if isSource(f.Path) {
			sources = append(sources, f.Path)
		}
	}
	if c.repo.Remote() { // in one request instead of one for each
		if err := c.repo.Prefetch(ctx, []string{at.Commit}, sources); err != nil {
			return err
		}
	}
	for _, name := range sources {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := snap.ReadFile(name)
		if err != nil {
			continue // a repository without its largest files: the place is looked for in the others
		}
		for _, e := range lost {
			why := at.Why[e.ID]
			if name == e.File || len(why.Found) == maxFound || !hasAll(data, clues(e)) {
				continue
			}
			line, err := placeIn(e, name, data)
			if err != nil {
				return err
			}
			if line > 0 {
				why.Found = append(why.Found, fmt.Sprintf("%s:%d", name, line))
				at.Why[e.ID] = why
			}
		}
	}
	return nil
}

const maxFound = 3

func (c *Commit) edit(id string) *series.Result {
	for i := range c.Edits {
		if c.Edits[i].ID == id {
			return &c.Edits[i]
		}
	}
	return nil
}

func isSource(name string) bool {
	switch path.Ext(name) {
	case ".c", ".cpp", ".cc", ".cu", ".h", ".hpp", ".cuh", ".inc", ".inl":
		return true
	}
	return false
}

// clues are the words that a file with the place of e has. A place that any
// file could have has none.
func clues(e *series.Edit) [][]byte {
	var out [][]byte
	for _, text := range append(e.Scope[:len(e.Scope):len(e.Scope)], e.Anchor) {
		for _, w := range word.FindAllString(text, -1) {
			if strings.Contains(w, "_") || len(w) > 8 {
				out = append(out, []byte(w))
			}
		}
	}
	return out
}

var word = regexp.MustCompile(`[A-Za-z_]\w+`)

func hasAll(data []byte, words [][]byte) bool {
	for _, w := range words {
		if !bytes.Contains(data, w) {
			return false
		}
	}
	return true
}

// placeIn returns the line of e's place if it were an edit of file, or 0.
func placeIn(e *series.Edit, file string, data []byte) (int, error) {
	there := *e
	there.File, there.Member, there.Probes, there.Since, there.Until = file, 0, nil, "", ""
	s := series.Series{Members: []series.Member{{Edits: []*series.Edit{&there}}}}
	results, err := s.Check(func(string) ([]byte, error) { return data, nil })
	if err != nil || results[0].Status != series.OK || len(results[0].Lines) == 0 {
		return 0, err
	}
	return results[0].Lines[0], nil
}
