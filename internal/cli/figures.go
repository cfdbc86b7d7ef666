package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"dot4fa/internal/fault"
	"dot4fa/internal/figures"
	"dot4fa/internal/input"
	"dot4fa/internal/output"
)

// figures is for those who work on dot4fa: it writes the README's figures.
func (a *app) figures() *cobra.Command {
	var write string
	c := &cobra.Command{
		Use:    "figures",
		Short:  "Write the figures of a document from the stored results",
		Hidden: true,
		Long: `Makes what stands between <!-- figures: NAME --> and <!-- /figures --> from
docs/results and docs/bench, in a working copy of dot4fa. Without --write it
prints the README as it would be.`,
		Example: `  dot4fa figures --write README.md`,
		RunE: func(*cobra.Command, []string) error {
			repo, root := a.assets()
			if root == "" {
				return fault.New(fault.Usage, "figures needs a working copy of dot4fa").Hintf("change into one")
			}
			file := write
			if file == "" {
				file = root + "/README.md"
			}
			doc, err := input.Read(file, "name the document with --write")
			if err != nil {
				return err
			}
			out, stale, err := figures.Render(repo, doc)
			if err != nil {
				return err
			}
			if write == "" {
				_, err := a.Out.Write(out)
				return err
			}
			if bytes.Equal(doc, out) {
				a.report.Say("nothing to do: the figures are current")
				return nil
			}
			if err := output.Write(write, out, 0o644); err != nil {
				return err
			}
			for _, name := range stale {
				a.report.Say("wrote %s", name)
			}
			return nil
		},
	}
	c.Flags().StringVar(&write, "write", "", "the `document` to write them into")
	_ = c.MarkFlagFilename("write", "md")
	return c
}
