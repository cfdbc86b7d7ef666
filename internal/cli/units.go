package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/check"
	"dot4fa/internal/fault"
	"dot4fa/internal/output"
	"dot4fa/internal/picture"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/syntax"
	"dot4fa/internal/upstream"
)

// compileUnits compiles the units of every commit on which all edits hold.
func (a *app) compileUnits(cmd *cobra.Command, r *pipeline.Run, repo *upstream.Repo, commits []check.Commit) error {
	units, err := r.Units(cmd.Context(), repo)
	if err != nil {
		return err
	}
	defer units.Close()
	counter := a.report.Count("compile")
	for i := range commits {
		c := &commits[i]
		counter.Step(i, len(commits), c.Ref)
		if !c.OK {
			continue
		}
		if c.Units, err = units.Check(cmd.Context(), c.Commit); err != nil {
			return err
		}
	}
	a.report.Clear()
	return nil
}

// printUnits shows what the compilers said: for one commit every unit, for
// several a line each and what failed.
func (a *app) printUnits(commits []check.Commit) error {
	compiled, good := 0, 0
	for _, c := range commits {
		if c.Units == nil {
			continue
		}
		if compiled++; len(syntax.Bad(c.Units)) == 0 {
			good++
		}
	}
	if compiled == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	if len(commits) == 1 {
		rows := [][]string{{"UNIT", "STATUS", "SECONDS", "EDITS"}}
		for _, u := range commits[0].Units {
			what := strings.Join(u.Edits, " ")
			if u.Uses != nil {
				what = "none; it uses " + strings.Join(u.Uses, " ")
			}
			rows = append(rows, []string{u.File, string(u.Status), fmt.Sprintf("%.1f", u.Seconds), what})
		}
		if err := a.table(rows); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
		for _, u := range commits[0].Units {
			if u.Status == syntax.NotChecked {
				fmt.Fprintf(a.Out, "%s is not checked: %s\n", u.File, u.Detail)
			}
		}
	}
	for _, c := range commits {
		if c.Units == nil {
			continue
		}
		fmt.Fprintf(a.Out, "%s: %s\n", title(c), syntax.Summary(c.Units))
		for _, u := range syntax.Bad(c.Units) {
			fmt.Fprintf(a.Out, "  %s\n    %s\n", u.File, strings.ReplaceAll(u.Detail, "\n", "\n    "))
		}
	}
	if len(commits) > 1 {
		fmt.Fprintf(a.Out, "\nwhat was checked compiles on %d of %d commits\n", good, compiled)
	}
	return nil
}

// unitsFault is the error of commits whose units do not compile.
func unitsFault(commits []check.Commit) error {
	bad, where := 0, ""
	for _, c := range commits {
		if len(syntax.Bad(c.Units)) > 0 {
			bad++
			where = c.Ref
		}
	}
	if bad == 0 {
		return nil
	}
	if len(commits) > 1 {
		where = fmt.Sprintf("%d of %d commits", bad, len(commits))
	}
	return fault.New(fault.EditFails, "all edits hold, but not every unit compiles on %s", where).
		Hintf("give the edit that uses the missing name an alternative with a probe; patches/README.md describes it")
}

// draw writes the pictures and tables that were asked for.
func (o checkOptions) draw(commits []check.Commit) error {
	if o.svg != "" {
		if err := output.Write(o.svg, picture.SVG(commits), 0o666); err != nil {
			return err
		}
	}
	if o.html != "" {
		if err := output.Write(o.html, picture.HTML(commits), 0o666); err != nil {
			return err
		}
	}
	if o.md != "" {
		return picture.WriteMarkdown(o.md, picture.Markdown(commits))
	}
	return nil
}
