package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what of this machine keeps a recipe from being built or run",
		Long: `Looks at everything that building and running the recipe takes: programs, ROCm
and its parts, GPUs and the permission to use them, room on disk and in memory,
upstream, the work tree. Each is ok, warn or fail, with what was seen and the
command that mends it. Nothing is changed and nothing is fetched.

A build judges by the same functions and stops at what it cannot do without. When
something fails, the exit code is 4. docs/doctor.md has what it says of many
set-ups.`,
		Example: `  dot4fa doctor
  dot4fa doctor --recipe cpu
  dot4fa doctor --toolchain ~/rocm --gpu-targets gfx1101
  dot4fa doctor --json | jq '.findings[] | select(.status != "ok")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.run()
			if err != nil {
				return err
			}
			defer r.Close()
			a.report.Status("doctor  looking at this machine")
			report := r.Doctor(cmd.Context())
			a.report.Clear()
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(report)
			} else {
				err = report.Print(a.Out, a.color)
			}
			if err != nil {
				return err
			}
			return report.Err()
		},
	}
}
