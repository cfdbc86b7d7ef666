package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"dot4fa/internal/apt"
	"dot4fa/internal/bootstrap"
	"dot4fa/internal/fault"
	"dot4fa/internal/input"
	"dot4fa/internal/pipeline"
)

func (a *app) toolchain() *cobra.Command {
	c := &cobra.Command{
		Use:   "toolchain",
		Short: "Make a toolchain for machines without ROCm",
		Example: `  dot4fa toolchain bootstrap ~/rocm
  dot4fa build --toolchain ~/rocm`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.toolchainBootstrap())
	return c
}

func (a *app) toolchainBootstrap() *cobra.Command {
	var o bootstrap.Options
	c := &cobra.Command{
		Use:   "bootstrap DIR",
		Short: "Make a compile-only HIP prefix from Debian's packages",
		Long: `Downloads HIP's headers, CMake packages and device libraries from Debian, unpacks
them into DIR and tries them with this machine's clang and CMake. No root is
needed and nothing outside DIR is written. DIR is then a ROCm root to compile and
link with: dot4fa build --toolchain DIR, or ROCM_PATH=DIR.

It compiles and links for AMD GPUs and cannot run anything: the libraries in it
are import libraries with the names and symbols of the real ones. What is built
with it runs on a machine that has ROCm with the same library versions.

The mirror and its keys are those of this machine's apt; indexes and caches are
kept apart from the system's. An interrupted run goes on where it stopped.`,
		Example: `  dot4fa toolchain bootstrap ~/rocm
  dot4fa toolchain bootstrap ~/rocm --clang clang++-19 --json
  dot4fa toolchain bootstrap ~/rocm --dry-run > fetch.sh     # for a machine with a network
  dot4fa toolchain bootstrap ~/rocm --debs ./debs            # from packages at hand`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Report = a.report
			if o.Dir, err = filepath.Abs(args[0]); err == nil && o.Debs != "" {
				o.Debs, err = filepath.Abs(o.Debs)
			}
			if err != nil {
				return fault.Here(err)
			}
			if o.Debs != "" {
				if err := input.Dir(o.Debs, "name the directory of the packages; --dry-run without --debs prints how to download them"); err != nil {
					return err
				}
			}
			if a.dryRun {
				return a.printBootstrap(cmd, o)
			}
			r, err := bootstrap.Make(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.printBootstrapped(r)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.Clang, "clang", "", "the clang++ to compile with, a `path` or name (default: the newest installed)")
	f.StringArrayVar(&o.Suites, "suite", nil, "Debian `suite` to take packages from, ROCm's from the first (repeatable; default: forky, trixie)")
	f.StringVar(&o.Mirror, "mirror", "", "`URL` of a Debian archive (default: $"+apt.MirrorEnv+", or the one in apt's sources)")
	f.StringVar(&o.Keyring, "keyring", "", "`file` with the archive's keys (default: as in apt's sources, or Debian's)")
	f.BoolVar(&o.AllowStale, "allow-stale", false, "take an index that is past its date; signatures are checked all the same")
	f.StringVar(&o.Debs, "debs", "", "`directory` with the packages, instead of downloading them")
	_ = c.MarkFlagDirname("debs")
	_ = c.MarkFlagFilename("keyring")
	return c
}

func (a *app) printBootstrap(cmd *cobra.Command, o bootstrap.Options) error {
	_, copyRoot := a.assets()
	lines, err := bootstrap.Commands(cmd.Context(), o, pipeline.Self(copyRoot, "toolchain", "bootstrap", o.Dir))
	if err != nil {
		return err
	}
	if lines == nil {
		a.report.Say("nothing to do: %s is there", o.Dir)
	}
	for _, line := range lines {
		fmt.Fprintln(a.Out, line)
	}
	return nil
}

func (a *app) printBootstrapped(r *bootstrap.Result) error {
	if a.json {
		return a.printJSON(r)
	}
	if !r.Done {
		a.report.Say("nothing to do: %s is there", r.Dir)
	} else {
		a.report.Say("HIP %s for clang %s, %.1f MB of packages, %.1f MB on disk: compiles and links for AMD GPUs, cannot run anything",
			r.Record.HIP, r.Record.Clang, float64(r.Record.PackageBytes())/1e6, float64(r.Record.Disk)/1e6)
		a.report.Say("use it with: dot4fa build --toolchain %s", r.Dir)
	}
	fmt.Fprintln(a.Out, r.Dir)
	return nil
}
