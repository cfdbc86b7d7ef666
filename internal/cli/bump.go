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
		Long: `Checks every edit on the commit, makes the series there, shows how the generated
patches differ from those at the old pin (line numbers aside), and rewrites commit
and tag in the recipe file, every other byte of which stays. "latest" is the newest
release tag. A commit without a tag is pinned under the release before it.

When an edit does not hold, it is reported with the nearest candidates, the commit
that moved it and the next command; the pin stays and the exit code is 3. With --edit
the place of that edit in patches/ is printed, and opened in $EDITOR on a terminal.`,
		Example: `  dot4fa bump --to latest --dry-run
  dot4fa bump --to b10573 --compile
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
	c.Flags().BoolVar(&o.Compile, "compile", false, "also compile the edited and added units there, without making code")
	c.Flags().BoolVar(&edit, "edit", false, "print where the failing edit is written, or open it in $EDITOR on a terminal")
	return c
}

func (a *app) printBump(b *pipeline.Bump) error {
	fmt.Fprintf(a.Out, "%s (%.10s) -> %s (%.10s): %s\n", b.From.Tag, b.From.Commit, b.To.Tag, b.To.Commit, counts(b.Check.Edits))
	for _, f := range b.Failed {
		fmt.Fprintln(a.Out)
		a.printFailure(f.Result)
	}
	if b.Check.Units != nil {
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
	switch {
	case b.Written:
		fmt.Fprintf(a.Out, "%s: the pin is %s now\n", b.File, b.To.Tag)
		a.report.Say("build it in a new work tree, or remove the old one first with dot4fa clean")
	case b.From == b.To:
		fmt.Fprintf(a.Out, "%s: the pin is %s already\n", b.File, b.To.Tag)
	default:
		fmt.Fprintf(a.Out, "%s: the pin would become %s\n", b.File, b.To.Tag)
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
	return nil
}

// edit prints the place of a failing edit, and on a terminal opens it in $EDITOR.
func (a *app) edit(cmd *cobra.Command, root string, f pipeline.FailedEdit) error {
	file, rest, _ := strings.Cut(f.Where, ":")
	line, _, _ := strings.Cut(rest, ":")
	if root != "" {
		file = filepath.Join(root, filepath.FromSlash(file))
	}
	editor := os.Getenv("EDITOR")
	if in, ok := a.In.(*os.File); a.json || !ok || !term.IsTerminal(int(in.Fd())) || !a.color || editor == "" || root == "" {
		if !a.json {
			fmt.Fprintf(a.Out, "\n%s:%s\n", file, line)
		}
		return nil
	}
	words := strings.Fields(editor) // an editor with flags, as "code -w"
	run := exec.CommandContext(cmd.Context(), words[0], append(words[1:], "+"+line, file)...)
	run.Stdin, run.Stdout, run.Stderr = a.In, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return fault.New(fault.Environment, "the editor failed: %w", err).At("%s", editor).Hintf("the edit is at %s:%s", file, line)
	}
	return nil
}
