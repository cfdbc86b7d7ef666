package cli

import (
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/check"
	"dot4fa/internal/series"
)

// printFailures reports on one commit where not every edit holds, for whoever
// owns that tree: how each patch stands, each failure and its cause, what to do.
func (a *app) printFailures(c check.Commit, members []series.Member) error {
	rows := [][]string{{"PATCH", "OK", "SKIPPED", "FAIL", "WHAT IT DOES"}}
	for _, m := range members {
		n := map[string]int{}
		for _, e := range c.Edits {
			switch {
			case e.Member != m.File:
			case e.Failed():
				n["fail"]++
			default:
				n[string(e.Status)]++
			}
		}
		rows = append(rows, []string{m.File, fmt.Sprint(n["ok"]), fmt.Sprint(n["skipped"]), fmt.Sprint(n["fail"]), m.Title})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	failed := c.Failed()
	for len(failed) > 0 {
		n := missing(failed)
		fmt.Fprintln(a.Out)
		if n < 2 {
			e := failed[0]
			next := e.Next
			e.Next = ""
			if c.Why[e.ID].By != "" {
				e.MovedBy = "" // the cause names it
			}
			a.printFailure(e)
			a.printCause(c, c.Why[e.ID], "")
			a.printNext(next)
			n = 1
		} else {
			a.printMissing(c, failed[:n])
		}
		failed = failed[n:]
	}
	a.printAdvice(c)
	return nil
}

// missing is how many edits at the beginning of list are gone with their file.
func missing(list []series.Result) int {
	n := 0
	for _, e := range list {
		if e.File != list[0].File || e.Detail != list[0].Detail || e.Member != list[0].Member || len(e.Candidates) > 0 || len(e.Lines) > 0 {
			break
		}
		n++
	}
	return n
}

// printMissing reports edits of one file that fail alike, as those of a file that is not there.
func (a *app) printMissing(c check.Commit, list []series.Result) {
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	e := list[0]
	fmt.Fprintf(a.Out, "%d edits (patches/%s): %s\n  edits  %s\n  file   %s\n  found  %s\n", len(list), e.Member, e.Status, strings.Join(ids, " "), e.File, e.Detail)
	for i, e := range list {
		w := c.Why[e.ID]
		if i > 0 && w.By == c.Why[list[0].ID].By && w.Cause == c.Why[list[0].ID].Cause {
			w.Cause = ""
		}
		a.printCause(c, w, e.ID+" ")
	}
	if e.MovedBy != "" && c.Why[e.ID].By == "" {
		fmt.Fprintf(a.Out, "  moved  %s\n", e.MovedBy)
	}
	a.printNext(e.Next)
}

func (a *app) printCause(c check.Commit, w check.Why, label string) {
	switch {
	case w.Cause == check.Base:
		fmt.Fprintf(a.Out, "  cause  it fails on %s too, the release this tree is made from\n", c.Base.Ref)
	case w.Cause == check.Own && w.By != "":
		fmt.Fprintf(a.Out, "  cause  it holds on %s; changed in this tree by %s\n", c.Base.Ref, w.By)
	case w.Cause == check.Own:
		fmt.Fprintf(a.Out, "  cause  it holds on %s; changed in this tree\n", c.Base.Ref)
	}
	for _, at := range w.Found {
		fmt.Fprintf(a.Out, "  same   %s%s\n", label, at)
	}
}

// printAdvice sums up the causes and says what can be done about each.
func (a *app) printAdvice(c check.Commit) {
	based := ""
	if c.Base != nil {
		based = fmt.Sprintf(", made from %s (%.10s)", c.Base.Ref, c.Base.Commit)
	}
	fmt.Fprintf(a.Out, "\n%s: %s%s\n", title(c), counts(c.Edits), based)
	if c.Base == nil && c.Commit != "" {
		fmt.Fprintf(a.Out, "  its base is not known: in a clone with upstream's release tags, or with --base, causes are told apart\n")
	}
	var own, base, found []string
	for _, e := range c.Failed() {
		w := c.Why[e.ID]
		switch w.Cause {
		case check.Own:
			own = append(own, e.ID)
		case check.Base:
			base = append(base, e.ID)
		}
		if len(w.Found) > 0 {
			found = append(found, e.ID)
		}
	}
	for _, x := range []struct {
		ids        []string
		does, what string
	}{
		{base, "fail on " + baseRef(c) + " too", "merge a newer upstream, or give the edit a second generation: \"Generations of upstream\" in patches/README.md"},
		{own, "fail by this tree's own changes", "give each a second edit with the place as it is here: \"Forks\" in patches/README.md"},
		{found, "have their very place in another file", "name that file, listed under \"same\", in such a second edit"},
	} {
		if len(x.ids) > 0 {
			fmt.Fprintf(a.Out, "  %s (%d): %s\n    %s\n", x.does, len(x.ids), strings.Join(shortened(x.ids), " "), x.what)
		}
	}
}

func baseRef(c check.Commit) string {
	if c.Base == nil {
		return ""
	}
	return c.Base.Ref
}

func shortened(ids []string) []string {
	if len(ids) > 6 {
		return append(slices.Clone(ids[:6]), "…")
	}
	return ids
}
