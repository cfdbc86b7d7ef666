package check

import (
	"context"
	"fmt"

	"dot4fa/internal/series"
	"dot4fa/internal/upstream"
)

// Trace finds the upstream commit between pin and c with which each failed edit
// of c ceased to hold, and sets its MovedBy; for a commit older than pin, the
// one since which it holds. It needs history: from a URL, and where histories do
// not meet, nothing is found.
func (c *Checker) Trace(ctx context.Context, pin string, at *Commit) error {
	if c.repo.Remote() || c.repo.IsDirectory() || at.OK || at.Commit == pin {
		return nil
	}
	later, err := c.repo.IsAncestor(ctx, pin, at.Commit)
	if err != nil {
		return ctx.Err() // no pin, or a shallow history: there is nothing to find
	}
	older := false
	if !later {
		if older, err = c.repo.IsAncestor(ctx, at.Commit, pin); err != nil || !older {
			return ctx.Err()
		}
	}
	for i := range at.Edits {
		e := &at.Edits[i]
		if !e.Failed() || e.Status == series.Conflict {
			continue
		}
		from, to := pin, at.Commit
		if older {
			from, to = to, from
		}
		turn, err := c.known(ctx, e.ID, at.Commit, older)
		if err == nil && turn == nil {
			turn, err = c.turn(ctx, *e, from, to, older)
		}
		if err != nil {
			return err
		}
		if turn != nil {
			c.remember(e.ID, turned{*turn, older})
		}
		switch {
		case turn == nil:
		case older:
			e.Detail += fmt.Sprintf("; it holds since %.10s %s", turn.ID, turn.Subject)
		default:
			e.MovedBy = fmt.Sprintf("%.10s %s", turn.ID, turn.Subject)
		}
	}
	return nil
}

// turned is a commit at which an edit began (older) or ceased to hold.
type turned struct {
	commit upstream.CommitInfo
	older  bool
}

func (c *Checker) remember(id string, t turned) {
	for _, have := range c.turns[id] {
		if have.commit.ID == t.commit.ID && have.older == t.older {
			return
		}
	}
	c.turns[id] = append(c.turns[id], t)
}

// known returns the turn of an edit that was found for another commit, when
// this one lies on the same side of it: of many commits that fail alike only the
// first is searched.
func (c *Checker) known(ctx context.Context, id, commit string, older bool) (*upstream.CommitInfo, error) {
	for _, t := range c.turns[id] {
		if t.older != older {
			continue
		}
		first, last := t.commit.ID, commit
		if older {
			first, last = last, first
		}
		if yes, err := c.repo.IsAncestor(ctx, first, last); err != nil || yes {
			return &t.commit, err
		}
	}
	return nil, nil
}

// turn returns the first commit after from, up to to, at which e holds (or does
// not), among those that changed its file. It takes for granted that e turned
// once, and so halves the list until one is left.
func (c *Checker) turn(ctx context.Context, e series.Result, from, to string, holds bool) (*upstream.CommitInfo, error) {
	list, err := c.repo.Touching(ctx, e.File, from, to, 0)
	if err != nil || len(list) == 0 {
		return nil, ctx.Err()
	}
	is := func(i int) (bool, error) { // list[i], counted from the oldest
		snap, err := c.repo.At(ctx, list[len(list)-1-i].ID)
		if err != nil {
			return false, err
		}
		for _, p := range c.byFile {
			if p.reads[0] != e.File {
				continue
			}
			results, err := c.part(ctx, p, snap)
			if err != nil {
				return false, err
			}
			for _, r := range results {
				if r.ID == e.ID {
					return r.Failed() != holds, nil
				}
			}
		}
		return false, fmt.Errorf("no edit %s", e.ID)
	}
	lo, hi := 0, len(list)-1
	for lo < hi {
		mid := (lo + hi) / 2
		yes, err := is(mid)
		if err != nil {
			return nil, err
		}
		if yes {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	yes, err := is(lo)
	if err != nil || !yes {
		return nil, err
	}
	return &list[len(list)-1-lo], nil
}
