package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dot4fa/internal/check"
	"dot4fa/internal/fault"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/syntax"
)

func (a *app) bump() *cobra.Command {
	var o pipeline.BumpOptions
	var edit bool
	c := &cobra.Command{
		Use:   "bump --to REF|latest",
		Short: "Move the pin to another llama.cpp, if the edits hold there",
		Long: `Checks every edit on the commit, compiles the units there, makes the series, shows
how the generated patches differ from those at the old pin (line numbers aside), and
rewrites commit and tag in the recipe file, every other byte of which stays. "latest"
is the newest release tag. A commit without a tag is pinned under the release before it.

Before the pin is written, --test runs tests at the new commit: export (the series is
made, and applied to the new base it gives the tree it says), kernels (every route on
the CPU, against float64), and go (dot4fa's own tests of the series on that upstream, in
a working copy; for them the pin is written first, and put back when they fail). A
failed test ends with exit code 6 and the pin as it was.

When an edit does not hold, it is reported with the nearest candidates, the commit
that moved it and the next command; the pin stays and the exit code is 3. With --edit
the place of that edit in patches/ is opened in $EDITOR on a terminal, and printed
elsewhere.`,
		Example: `  dot4fa bump --to latest --dry-run
  dot4fa bump --to b10573 --test export,kernels,go
  dot4fa bump --to master --upstream ~/src/llama.cpp --edit`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.To == "" {
				return fault.New(fault.Usage, "bump needs --to").Hintf("dot4fa bump --to latest --dry-run")
			}
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			o.DryRun = a.dryRun
			b, err := r.Bump(cmd.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(b)
			} else {
				err = a.printBump(b)
			}
			if err != nil {
				return err
			}
			if len(b.Failed) > 0 && edit {
				if err := a.edit(cmd, r.Copy, b.Failed[0]); err != nil {
					return err
				}
			}
			return bumpFault(b)
		},
	}
	c.Flags().StringVar(&o.To, "to", "", "where to: a tag, a branch, a commit `REF` or latest")
	c.Flags().BoolVar(&o.Compile, "compile", true, "compile the edited and added units there, without making code")
	c.Flags().StringSliceVar(&o.Tests, "test", []string{pipeline.TestExport, pipeline.TestKernels}, "the `tests` to run: any of "+strings.Join(pipeline.BumpTests, ", ")+"; --test= runs none")
	c.Flags().BoolVar(&edit, "edit", false, "open the failing edit in $EDITOR on a terminal, or print where it is written")
	return c
}

func (a *app) printBump(b *pipeline.Bump) error {
	fmt.Fprintf(a.Out, "%s -> %s: %s\n", b.From, b.To, counts(b.Check.Edits))
	for _, f := range b.Failed {
		fmt.Fprintln(a.Out)
		a.printFailure(f.Result)
	}
	if len(syntax.Bad(b.Check.Units)) > 0 {
		if err := a.printUnits([]check.Commit{b.Check}); err != nil {
			return err
		}
	}
	if b.File == "" {
		return nil
	}
	changed := 0
	for _, p := range b.Patches {
		if p.Diff == "" {
			continue
		}
		changed++
		text := []byte("\n" + p.Diff)
		if a.color {
			text = colored(text)
		}
		if _, err := a.Out.Write(text); err != nil {
			return err
		}
	}
	if b.Patches != nil {
		fmt.Fprintf(a.Out, "\n%d of %d patches differ, line numbers aside\n", changed, len(b.Patches))
	}
	if len(b.Tests) > 0 {
		fmt.Fprintln(a.Out)
	}
	for _, t := range b.Tests {
		fmt.Fprintf(a.Out, "test %s: %s (%.1fs) %s\n", t.Name, t.Status, t.Seconds, t.Detail)
	}
	switch {
	case b.TestFailed():
		fmt.Fprintf(a.Out, "%s: the pin is still %s\n", b.File, b.From)
	case b.Written:
		fmt.Fprintf(a.Out, "%s: the pin is %s now\n", b.File, b.To)
		a.report.Say("build it in a new work tree, or remove the old one first with dot4fa clean")
	case b.From == b.To:
		fmt.Fprintf(a.Out, "%s: the pin is %s already\n", b.File, b.To)
	default:
		fmt.Fprintf(a.Out, "%s: the pin would become %s\n", b.File, b.To)
	}
	return nil
}

func bumpFault(b *pipeline.Bump) error {
	if n := len(b.Failed); n > 0 {
		what := "an edit does"
		if n > 1 {
			what = fmt.Sprintf("%d edits do", n)
		}
		return fault.New(fault.EditFails, "%s not hold on %s, the pin stays at %s", what, b.To.Tag, b.From.Tag).At("%s", b.Failed[0].Where).
			Hintf("compare the candidates with the edit and change its scope or anchor, or give it a guard; --edit opens it")
	}
	if len(syntax.Bad(b.Check.Units)) > 0 {
		return fault.New(fault.EditFails, "all edits hold on %s, but not every unit compiles; the pin stays at %s", b.To.Tag, b.From.Tag).
			Hintf("give the edit that uses the missing name an alternative with a probe; patches/README.md describes it")
	}
	if b.TestFailed() {
		return fault.New(fault.VerifyFailed, "a test failed on %s; the pin stays at %s", b.To.Tag, b.From.Tag).
			Hintf("what it said is above; --test= leaves the tests out")
	}
	return nil
}

// edit opens the place of a failing edit in $EDITOR on a terminal, else prints it.
func (a *app) edit(cmd *cobra.Command, root string, f pipeline.FailedEdit) error {
	if a.json {
		return nil // it is in the result
	}
	file, rest, _ := strings.Cut(f.Where, ":")
	line, _, _ := strings.Cut(rest, ":")
	if root != "" {
		file = filepath.Join(root, filepath.FromSlash(file))
	}
	editor := strings.Fields(os.Getenv("EDITOR")) // with flags, as "code -w"
	if !isTerminal(a.In) || len(editor) == 0 || root == "" {
		fmt.Fprintf(a.Out, "\n%s:%s\n", file, line)
		return nil
	}
	run := exec.CommandContext(cmd.Context(), editor[0], append(editor[1:], "+"+line, file)...)
	run.Stdin, run.Stdout, run.Stderr = a.In, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return fault.New(fault.Environment, "the editor failed: %w", err).At("%s", editor[0]).Hintf("the edit is at %s:%s", file, line)
	}
	return nil
}

func isTerminal(in any) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
