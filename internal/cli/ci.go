package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"dot4fa/internal/ci"
	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

func (a *app) ci() *cobra.Command {
	c := &cobra.Command{
		Use:   "ci",
		Short: "Generate what continuous integration runs",
		Example: `  dot4fa ci matrix --only target=gfx1100
  dot4fa ci workflow --check`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.ciMatrix(), a.ciWorkflow())
	return c
}

// matrixFile is the matrix's data among the assets.
const matrixFile = "ci/matrix.yaml"

func (a *app) ciMatrix() *cobra.Command {
	var only []string
	c := &cobra.Command{
		Use:   "matrix",
		Short: "Print the build matrix for GitHub Actions",
		Long: `Prints the jobs that ci/matrix.yaml describes as JSON for strategy.matrix: upstream
commit × ROCm image × GPU target × recipe, less what it excludes, plus what it
includes. It is one line, as a step's output has to be; with --json it is indented.

--only chooses among the jobs. Values for the same axis are alternatives, and an
empty one means the jobs that have none: target= are those without a GPU target.`,
		Example: `  dot4fa ci matrix
  dot4fa ci matrix --only upstream=pin --only target=gfx1100 --only target=
  echo "jobs=$(dot4fa ci matrix)" >> "$GITHUB_OUTPUT"`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			m, err := a.matrix(only)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(m)
			}
			line, err := json.Marshal(m)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s\n", line)
			return err
		},
	}
	c.Flags().StringArrayVar(&only, "only", nil, "keep the jobs with this `axis=value`: upstream, rocm, target or recipe (repeatable)")
	return c
}

func (a *app) matrix(only []string) (*ci.Matrix, error) {
	filter, err := ci.ParseFilter(only)
	if err != nil {
		return nil, err
	}
	assets, _ := a.assets()
	data, err := fs.ReadFile(assets, matrixFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Usage, "there is no build matrix").At("%s", matrixFile).
			Hintf("call it inside a working copy of dot4fa")
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the build matrix: %w", err).At("%s", matrixFile).Hintf("check the file's permissions")
	}
	list, err := recipe.List(assets)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range list {
		if r.Backend != "" {
			names = append(names, r.Name)
		}
	}
	spec, err := ci.Load(data, matrixFile, names)
	if err != nil {
		return nil, err
	}
	m, err := spec.Expand()
	if err != nil {
		return nil, err
	}
	return m.Only(filter)
}

func (a *app) ciWorkflow() *cobra.Command {
	var out string
	var check bool
	c := &cobra.Command{
		Use:   "workflow",
		Short: "Write the GitHub workflows",
		Long: `Writes three workflows: build (tests, and the build matrix in ROCm containers),
canary (every night: does the series hold on upstream's newest commit?) and
release (on a tag: series, release.json, SBOM, checksums). Their steps are the
scripts in ci/steps. Files that are right already are left alone.

With --check nothing is written, and files that are missing or differ are an error.`,
		Example: `  dot4fa ci workflow
  dot4fa ci workflow --out ci/workflows --check`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, root := a.assets()
			if out == "" {
				out = filepath.Join(root, ".github", "workflows")
			}
			list, err := ci.Workflows()
			if err != nil {
				return err
			}
			if check || a.dryRun {
				return a.staleWorkflows(out, list, check)
			}
			written, err := ci.Write(out, list)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"directory": out, "written": append([]string{}, written...)})
			}
			for _, name := range written {
				fmt.Fprintln(a.Out, filepath.Join(out, name))
			}
			if len(written) == 0 {
				a.report.Say("nothing to do: the workflows in %s are up to date", out)
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "the `directory` to write to (default: .github/workflows of the working copy)")
	c.Flags().BoolVar(&check, "check", false, "say whether the files are up to date, and write nothing")
	_ = c.MarkFlagDirname("out")
	return c
}

// staleWorkflows prints the files that a write would change. As a check they
// are an error.
func (a *app) staleWorkflows(dir string, list []ci.Workflow, check bool) error {
	stale, err := ci.Stale(dir, list)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(map[string]any{"directory": dir, "stale": stale}); err != nil {
			return err
		}
	} else {
		for _, w := range list {
			if why := stale[w.Name]; why != "" {
				fmt.Fprintf(a.Out, "%s: %s\n", filepath.Join(dir, w.Name), why)
			}
		}
	}
	if check && len(stale) > 0 {
		return fault.New(fault.VerifyFailed, "%d of %d workflows are not up to date", len(stale), len(list)).At("%s", dir).
			Hintf("dot4fa ci workflow --out %s", dir)
	}
	return nil
}
