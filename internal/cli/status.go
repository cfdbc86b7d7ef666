package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/pipeline"
	"dot4fa/internal/series"
	"dot4fa/internal/shell"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say how the work tree stands",
		Long: `Says which commit the work tree is of, whether the edits are in it, which files
were changed by hand, what is built, and what to run next.`,
		Example: `  dot4fa status --recipe cpu
  dot4fa status --work /tmp/tree --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			s, err := r.Status(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(s)
			} else {
				err = a.printStatus(s)
			}
			if err != nil {
				return err
			}
			return s.Err()
		},
	}
}

func (a *app) printStatus(s *pipeline.Status) error {
	rows := [][]string{
		{"work tree", s.Work},
		{"recipe", s.Recipe},
		{"pin", strings.TrimSpace(s.Tag + " " + s.Commit)},
	}
	if s.Tree != nil && s.Tree.Commit != s.Commit {
		of := s.Tree.Commit
		if of == "" {
			of = s.Tree.From
		}
		rows = append(rows, []string{"tree of", of})
	}
	rows = append(rows, []string{"state", s.State})
	for _, f := range s.Files {
		if f.State == series.Foreign {
			rows = append(rows, []string{"", f.Path + ": " + f.Why})
		}
	}
	for i, f := range s.Changed {
		rows = append(rows, []string{[]string{"changed", ""}[min(i, 1)], f})
	}
	if s.Tree != nil {
		rows = append(rows, []string{"configured", yesNo(s.Configured)})
		built := fmt.Sprintf("%d of %d targets", len(s.Programs), len(s.Programs)+len(s.Missing))
		rows = append(rows, []string{"built", built})
	}
	if s.Next != "" {
		rows = append(rows, []string{"next", s.Next})
	}
	return a.table(rows)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (a *app) printCleaned(c *pipeline.Cleaned) error {
	switch {
	case a.json:
		return a.printJSON(c)
	case len(c.Removed) == 0:
		a.report.Say("nothing to do: there is nothing of dot4fa's at %s", c.Work)
	}
	for _, dir := range c.Removed {
		if a.dryRun {
			fmt.Fprintln(a.Out, shell.Command{Path: "rm", Args: []string{"-r", "--", dir}})
			continue
		}
		a.report.Say("removed %s", dir)
	}
	return nil
}
