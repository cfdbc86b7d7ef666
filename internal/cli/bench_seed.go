package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"dot4fa/internal/seedbench"
)

// runSeed runs the suite seed of bench.
func (a *app) runSeed(ctx context.Context, o *benchFlags) error {
	run, err := a.run()
	if err != nil {
		return err
	}
	defer run.Close()
	assets, _ := a.assets()
	tools := run.Tools(ctx)
	s := &seedbench.Seed{Recipe: run.Recipe, Assets: assets, Work: run.Work, NVCC: tools.NVCC.Path, ROCm: tools.ROCm,
		Dir: filepath.Join(run.Work, ".dot4fa", "seed"), Bench: a.benchOf(run, o), Model: o.model, Report: a.report}
	if a.dryRun {
		cmds, err := s.Commands()
		for _, c := range cmds {
			fmt.Fprintln(a.Out, c)
		}
		return err
	}
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	out := o.out
	if out == "" {
		out = filepath.Join(run.Work, ".dot4fa", "bench")
	}
	files, err := r.Write(out)
	if err != nil {
		return err
	}
	for _, file := range files {
		a.report.Say("wrote %s", file)
	}
	if a.json {
		return a.printJSON(r)
	}
	return r.Print(a.Out)
}
