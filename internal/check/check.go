// Package check says on which upstream commits the series holds. It reads git
// objects only; an edit's answer depends on few files, so it is looked up by
// their blob ids and found once for all commits that share them.
package check

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dot4fa/internal/progress"
	"dot4fa/internal/series"
	"dot4fa/internal/syntax"
	"dot4fa/internal/upstream"
)

// Commit is how the series stands on one commit.
type Commit struct {
	Ref    string          `json:"ref"`
	Commit string          `json:"commit"` // empty for a plain directory
	Date   string          `json:"date,omitempty"`
	OK     bool            `json:"ok"`
	Edits  []series.Result `json:"edits"`           // in series order
	Units  []syntax.Unit   `json:"units,omitempty"` // when they were compiled
	Base   *Target         `json:"base,omitempty"`  // the release it is made from, where Explain found one
	Why    map[string]Why  `json:"why,omitempty"`   // by edit, what Explain found
}

// Failed returns the edits that cannot be made.
func (c *Commit) Failed() []series.Result {
	var out []series.Result
	for _, e := range c.Edits {
		if e.Failed() {
			out = append(out, e)
		}
	}
	return out
}

// Target is a commit to check and what the user called it.
type Target struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
}

// Checker checks one series on any number of commits of one repository.
type Checker struct {
	repo   *upstream.Repo
	whole  *series.Series
	byFile []part
	order  map[string]int // edit id to its number

	answers sync.Map            // key to *answer
	turns   map[string][]turned // by edit, what Trace has found
}

// part is the series as far as it concerns one file: edits of different files
// do not see each other.
type part struct {
	series  *series.Series
	reads   []string // files whose content decides: the file itself and the probed ones
	commits []string // commits that since and until name
}

type answer struct {
	once    sync.Once
	results []series.Result
	err     error
}

// New returns a checker.
func New(repo *upstream.Repo, s *series.Series) *Checker {
	c := &Checker{repo: repo, whole: s, order: map[string]int{}, turns: map[string][]turned{}}
	parts := map[string]*part{}
	var files []string
	for i, e := range s.Edits() {
		c.order[e.ID] = i
		p := parts[e.File]
		if p == nil {
			p = &part{series: &series.Series{Members: make([]series.Member, len(s.Members)), Hooks: s.Hooks}, reads: []string{e.File}}
			for m := range s.Members {
				p.series.Members[m] = s.Members[m]
				p.series.Members[m].Edits = nil
			}
			parts[e.File] = p
			files = append(files, e.File)
		}
		m := &p.series.Members[e.Member]
		m.Edits = append(m.Edits, e)
		for _, probe := range e.Probes {
			p.reads = appendNew(p.reads, probe.File)
		}
		for _, id := range []string{e.Since, e.Until} {
			if id != "" {
				p.commits = appendNew(p.commits, id)
			}
		}
	}
	for _, f := range files {
		c.byFile = append(c.byFile, *parts[f])
	}
	return c
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// Files are the upstream files that the series reads.
func (c *Checker) Files() []string {
	var out []string
	for _, p := range c.byFile {
		for _, f := range p.reads {
			out = appendNew(out, f)
		}
	}
	sort.Strings(out)
	return out
}

// Check answers for every target, in their order, workers at a time.
func (c *Checker) Check(ctx context.Context, targets []Target, workers int, report *progress.Reporter) ([]Commit, error) {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.Commit
	}
	if !c.repo.IsDirectory() {
		if err := c.repo.Prefetch(ctx, ids, c.Files()); err != nil {
			return nil, err
		}
	}
	out := make([]Commit, len(targets))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(workers, 1))
	counter := report.Count("check")
	var mu sync.Mutex
	done := 0
	for i, t := range targets {
		g.Go(func() error {
			one, err := c.one(ctx, t)
			if err != nil {
				return err
			}
			out[i] = *one
			mu.Lock()
			defer mu.Unlock()
			done++
			if len(targets) > 1 {
				counter.Step(done, len(targets), t.Ref)
			}
			return nil
		})
	}
	err := g.Wait()
	report.Clear()
	return out, err
}

func (c *Checker) one(ctx context.Context, t Target) (*Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	snap, err := c.repo.At(ctx, t.Commit)
	if err != nil {
		return nil, err
	}
	out := &Commit{Ref: t.Ref, Commit: snap.Commit, OK: true}
	if !snap.Date.IsZero() {
		out.Date = snap.Date.UTC().Format(time.RFC3339)
	}
	for _, p := range c.byFile {
		results, err := c.part(ctx, p, snap)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Ref, err)
		}
		out.Edits = append(out.Edits, results...)
	}
	sort.SliceStable(out.Edits, func(i, j int) bool { return c.order[out.Edits[i].ID] < c.order[out.Edits[j].ID] })
	for _, e := range out.Edits {
		out.OK = out.OK && !e.Failed()
	}
	return out, nil
}

// part answers for one file, from the cache where its content was seen before.
func (c *Checker) part(ctx context.Context, p part, snap *upstream.Snapshot) ([]series.Result, error) {
	var key strings.Builder
	fmt.Fprintf(&key, "%p", p.series)
	for _, f := range p.reads {
		id, err := snap.BlobID(f)
		if err != nil && !upstream.IsNotExist(err) {
			return nil, err
		}
		key.WriteString(" " + id)
	}
	for _, id := range p.commits {
		has, err := c.repo.IsAncestor(ctx, id, snap.Commit)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&key, " %v", has)
	}
	v, _ := c.answers.LoadOrStore(key.String(), &answer{})
	a := v.(*answer)
	a.once.Do(func() {
		s := *p.series
		s.Hooks.Contains = func(id string) (bool, error) { return c.repo.IsAncestor(ctx, id, snap.Commit) }
		a.results, a.err = s.Check(snap.ReadFile)
	})
	return a.results, a.err
}
