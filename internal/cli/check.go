package cli

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dot4fa/internal/check"
	"dot4fa/internal/fault"
	"dot4fa/internal/series"
)

func (a *app) check() *cobra.Command {
	var w check.Which
	var since string
	var o checkOptions
	c := &cobra.Command{
		Use:   "check [REF...]",
		Short: "Say whether the edits hold on upstream commits",
		Long: `Looks for the place of every edit on the given commits: tags, branches or commit
ids, a range along first parents, or all tags that match a pattern. Without any it
is the recipe's pin. No work tree is needed and none is touched.

An edit is ok, skipped (a guard excludes the commit), or it fails: moved (its
anchor is elsewhere), ambiguous (there is more than one), gone, or in conflict
with another edit. When one fails the exit code is 3.

On a fork of llama.cpp (--upstream FORK, or a branch of it), a failing edit also says
whether it fails on the upstream release below the fork or by the fork's own commits,
and where in other files its place is. --base names the release where no tag does.

With --compile, the edited and added units of every commit on which all edits hold,
and those that use a declaration edited in a header, are compiled too, without making
code: for the CPU with the host's compilers, device code with a clang for gfx1100
(upstream's own device files only with HIP's headers, see toolchain bootstrap).
Verdicts are kept, so that commits with the same content are compiled once.

With --svg or --html the result is also drawn: edits × commits; with --md it is written
as tables of shares, guards and failures.`,
		Example: `  dot4fa check
  dot4fa check master b10573 --upstream ~/src/llama.cpp
  dot4fa check --tags 'b10*' --since 2026-05-06 --json
  dot4fa check --range b10326..b10573`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Refs = args
			if since != "" {
				if w.Tags == "" {
					return fault.New(fault.Usage, "--since chooses among tags, and no --tags is given").Hintf("add --tags 'b*'")
				}
				var err error
				if w.Since, err = time.Parse(time.DateOnly, since); err != nil {
					return fault.New(fault.Usage, "%q is not a date", since).Hintf("write it as 2026-05-06")
				}
			}
			return a.runCheck(cmd, w, o)
		},
	}
	c.Flags().StringVar(&w.Range, "range", "", "check the commits after A up to B: `A..B`")
	c.Flags().StringVar(&w.Tags, "tags", "", "check the tags that match a `pattern`, as 'b10*'")
	c.Flags().StringVar(&since, "since", "", "with --tags: only those of this `date` (2026-05-06) and later")
	c.Flags().StringVar(&o.base, "base", "", "for a fork: the upstream `ref` it is made from, instead of the newest release in its history")
	c.Flags().BoolVar(&o.compile, "compile", false, "also compile the edited and added units, without making code")
	c.Flags().StringVar(&o.svg, "svg", "", "draw the result to this `file`")
	c.Flags().StringVar(&o.html, "html", "", "draw the result to this `file`, as a page")
	c.Flags().StringVar(&o.md, "md", "", "write the result to this `file` as Markdown tables, between their marks where it is there")
	return c
}

// checkOptions say what check does besides looking for places.
type checkOptions struct {
	compile       bool
	base          string
	svg, html, md string
}

func (a *app) runCheck(cmd *cobra.Command, w check.Which, o checkOptions) error {
	r, err := a.run()
	if err != nil {
		return err
	}
	defer r.Close()
	if a.dryRun {
		a.note("check only reads; there is nothing to run")
		return nil
	}
	ctx := cmd.Context()
	edits, err := r.Series()
	if err != nil {
		return err
	}
	repo, err := r.Repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	w.Pin = check.Target{Ref: r.Recipe.Upstream.Tag, Commit: r.Recipe.Upstream.Commit}
	targets, err := w.Targets(ctx, repo)
	if err != nil {
		return err
	}
	checker := check.New(repo, edits)
	commits, err := checker.Check(ctx, targets, runtime.GOMAXPROCS(0), a.report)
	if err != nil {
		return err
	}
	for i := range commits {
		if err := checker.Trace(ctx, w.Pin.Commit, &commits[i]); err != nil {
			return err
		}
	}
	if len(commits) == 1 {
		if err := checker.Explain(ctx, &commits[0], o.base); err != nil {
			return err
		}
	}
	if o.compile {
		if err := a.compileUnits(cmd, r, repo, commits); err != nil {
			return err
		}
	}
	if err := o.draw(commits); err != nil {
		return err
	}
	switch {
	case a.json:
		err = a.printJSON(map[string]any{"commits": commits})
	case len(commits) == 1 && !commits[0].OK:
		err = a.printFailures(commits[0], edits.Members)
	case len(commits) == 1:
		err = a.printEdits(commits[0])
	default:
		err = a.printCommits(commits)
	}
	if err != nil {
		return err
	}
	return checkFault(commits)
}

// printEdits shows every edit of one commit on which all hold.
func (a *app) printEdits(c check.Commit) error {
	rows := [][]string{{"EDIT", "STATUS", "FILE", "PLACE"}}
	for _, e := range c.Edits {
		file := e.File
		if len(e.Lines) > 0 {
			file += fmt.Sprintf(":%d", e.Lines[0])
		}
		rows = append(rows, []string{e.ID, string(e.Status), file, e.Place})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	for _, e := range c.Edits {
		if e.Status == series.Skipped {
			fmt.Fprintf(a.Out, "\n%s is skipped: %s\n", e.ID, e.Detail)
		}
	}
	fmt.Fprintf(a.Out, "\n%s: %s\n", title(c), counts(c.Edits))
	return a.printUnits([]check.Commit{c})
}

// printCommits shows one line a commit, and below every different failure once.
func (a *app) printCommits(commits []check.Commit) error {
	rows := [][]string{{"REF", "COMMIT", "DATE", "RESULT"}}
	good := 0
	for _, c := range commits {
		if c.OK {
			good++
		}
		day, _, _ := strings.Cut(c.Date, "T")
		rows = append(rows, []string{c.Ref, c.Commit[:min(10, len(c.Commit))], day, counts(c.Edits)})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := len(commits) - 1; i >= 0; i-- {
		for _, e := range commits[i].Failed() {
			if key := e.ID + string(e.Status); !seen[key] {
				seen[key] = true
				fmt.Fprintf(a.Out, "\non %s, the last of its kind:\n", title(commits[i]))
				a.printFailure(e)
			}
		}
	}
	fmt.Fprintf(a.Out, "\nall edits hold on %d of %d commits\n", good, len(commits))
	return a.printUnits(commits)
}

func (a *app) printFailure(e series.Result) {
	fmt.Fprintf(a.Out, "%s (patches/%s): %s\n  file   %s\n  place  %s\n  found  %s\n", e.ID, e.Member, e.Status, e.File, e.Place, e.Detail)
	for _, c := range e.Candidates {
		fmt.Fprintf(a.Out, "  near   %s:%d  %3.0f%%  %s\n", e.File, c.Line, 100*c.Similarity, c.Text)
	}
	if e.MovedBy != "" {
		fmt.Fprintf(a.Out, "  moved  %s\n", e.MovedBy)
	}
	a.printNext(e.Next)
}

func (a *app) printNext(command string) {
	if command != "" {
		fmt.Fprintf(a.Out, "  next   %s\n", command)
	}
}

func title(c check.Commit) string {
	if c.Commit == "" || c.Ref == c.Commit {
		return c.Ref
	}
	return c.Ref + " (" + c.Commit[:min(10, len(c.Commit))] + ")"
}

// counts puts the statuses of a commit in words: "50 ok, 1 moved: kc.push".
func counts(edits []series.Result) string {
	var parts []string
	for _, s := range []series.Status{series.OK, series.Skipped, series.Moved, series.Ambiguous, series.Gone, series.Conflict} {
		var ids []string
		for _, e := range edits {
			if e.Status == s {
				ids = append(ids, e.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", len(ids), s)
		if s != series.OK && s != series.Skipped {
			if len(ids) > 4 {
				ids = append(ids[:4], "…")
			}
			text += " (" + strings.Join(ids, " ") + ")"
		}
		parts = append(parts, text)
	}
	if parts == nil {
		return "no edits"
	}
	return strings.Join(parts, ", ")
}

// checkFault is the error of a check in which something failed.
func checkFault(commits []check.Commit) error {
	bad, edits := 0, map[string]bool{}
	for _, c := range commits {
		if !c.OK {
			bad++
		}
		for _, e := range c.Failed() {
			edits[e.ID] = true
		}
	}
	if bad == 0 {
		return unitsFault(commits)
	}
	what := "an edit does"
	if len(edits) > 1 {
		what = fmt.Sprintf("%d edits do", len(edits))
	}
	where := commits[0].Ref
	if len(commits) > 1 {
		where = fmt.Sprintf("%d of %d commits", bad, len(commits))
	}
	return fault.New(fault.EditFails, "%s not hold on %s", what, where).
		Hintf("compare the candidates with the edit under patches/ and change its scope or anchor, or give it a guard")
}
