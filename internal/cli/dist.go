package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dot4fa/internal/dist"
	"dot4fa/internal/fault"
	"dot4fa/internal/pipeline"
)

func (a *app) dist() *cobra.Command {
	var o pipeline.DistOptions
	c := &cobra.Command{
		Use:   "dist",
		Short: "Pack the binaries so that they run elsewhere",
		Long: `Packs the recipe's programs with the libraries of the build that they need, the
licence texts, the lock, a CycloneDX SBOM and SHA256SUMS. What was not built yet
is built first. The programs find their libraries relative to themselves, so
that the archive can be unpacked anywhere; the same build gives the same bytes.

Every library that a program needs is either in the archive or one that the
system is expected to have, which REQUIRES.txt lists. Any other is an error with
exit code 6, unless --system names it.

With --sbom alone nothing is compiled: it is the SBOM of the edited sources.`,
		Example: `  dot4fa dist --out llama-rdna3.tar.gz
  dot4fa dist --recipe cpu --out llama-cpu.tar.gz --json
  dot4fa dist --out llama.tar.gz --system libssl.so.3 --system libcrypto.so.3
  dot4fa dist --sbom sbom.cdx.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Archive == "" && o.SBOM == "" {
				return fault.New(fault.Usage, "dist needs --out or --sbom").Hintf("dot4fa dist --out llama.tar.gz")
			}
			if o.Archive == "" && len(o.System) > 0 {
				return fault.New(fault.Usage, "--system is about the archive, and there is no --out").Hintf("add --out llama.tar.gz")
			}
			if o.Archive != "" {
				if err := dist.Check(o.Archive); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("jobs") && o.Jobs < 1 {
				return fault.New(fault.Usage, "--jobs must be at least 1, not %d", o.Jobs).Hintf("leave it out to choose by cores and free memory")
			}
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			if a.dryRun {
				return a.dryDist(cmd, r, o)
			}
			info, err := r.Dist(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.printDist(o, info)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.Archive, "out", "", "write the archive to this `file`, a .tar.gz")
	f.StringVar(&o.SBOM, "sbom", "", "write the SBOM to this `file`")
	f.StringArrayVar(&o.System, "system", nil, "a `library` that the system will have, as libssl.so.3 (repeatable)")
	f.IntVarP(&o.Jobs, "jobs", "j", 0, "compile jobs at once (default: by cores and free memory)")
	_ = c.MarkFlagFilename("out", "tar.gz")
	_ = c.MarkFlagFilename("sbom", "json")
	return c
}

// dryDist prints what is to be done before packing, and the packing itself.
func (a *app) dryDist(cmd *cobra.Command, r *pipeline.Run, o pipeline.DistOptions) error {
	verb, flags := "apply", []string(nil)
	if o.Archive != "" {
		verb, flags = "build", append(flags, "--out", o.Archive)
	}
	if o.SBOM != "" {
		flags = append(flags, "--sbom", o.SBOM)
	}
	for _, s := range o.System {
		flags = append(flags, "--system", s)
	}
	if err := r.PrintCommands(cmd.Context(), verb, pipeline.BuildOptions{Jobs: o.Jobs}); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, r.Command("dist", flags...))
	return nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "no library"
	}
	return strings.Join(list, " ")
}

func (a *app) printDist(o pipeline.DistOptions, info *dist.Info) error {
	switch {
	case a.json && info != nil:
		return a.printJSON(info)
	case a.json:
		return a.printJSON(map[string]string{"sbom": o.SBOM})
	case info == nil:
		fmt.Fprintln(a.Out, o.SBOM)
		return nil
	}
	rows := [][]string{
		{"archive", info.Archive},
		{"sha256", info.SHA256},
		{"size", fmt.Sprintf("%.1f MB, %d files", float64(info.Size)/1e6, len(info.Files))},
		{"programs", strings.Join(info.Programs, " ")},
		{"bundled", orNone(info.Bundled)},
	}
	from := map[string][]string{}
	var order []string
	for _, s := range info.System {
		if from[s.From] == nil {
			order = append(order, s.From)
		}
		from[s.From] = append(from[s.From], s.Name)
	}
	for i, f := range order {
		rows = append(rows, []string{[]string{"needs", ""}[min(i, 1)], strings.Join(from[f], " ") + ": " + f})
	}
	rows = append(rows, []string{"at least", strings.Join(info.Versions, " ")})
	if info.Native {
		rows = append(rows, []string{"cpu", "that of this machine (GGML_NATIVE); for others put GGML_NATIVE: OFF under cmake in the recipe"})
	}
	rows = append(rows, []string{"licences", fmt.Sprint(len(info.Licences))})
	if info.NoOwn {
		rows = append(rows, []string{"", "none for dot4fa's own code: its repository has no LICENSE file, so the archive is not to be passed on"})
	}
	return a.table(rows)
}
