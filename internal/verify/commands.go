package verify

import (
	"path/filepath"
	"slices"

	"dot4fa/internal/shell"
)

// Commands are the programs that Run would run, in their order. Which backends
// there are is not known before: without -b the op test takes all but the CPU.
func Commands(o Options) ([]shell.Command, error) {
	var out []shell.Command
	runs := func(part string) bool { return !slices.Contains(o.Skip, part) }
	if runs(Ops) {
		program, err := o.Program("test-backend-ops")
		if err != nil {
			return nil, err
		}
		for _, backend := range []string{"", "CPU"} {
			for _, r := range opRuns(o.Quick) {
				out = append(out, r.command(program, backend))
			}
		}
	}
	if runs(State) {
		program, err := o.Program("test-packed16-state")
		if err != nil {
			return nil, err
		}
		out = append(out, shell.Command{Path: program, Args: []string{o.Model, o.Text}})
	}
	if runs(QualityOf) {
		program, err := o.Program("llama-perplexity")
		if err != nil {
			return nil, err
		}
		r := &runner{o: &o, program: program}
		for _, c := range o.Ctxs {
			saved := filepath.Join(o.Dir, "base.logits")
			out = append(out, r.command(base, c, saved, false))
			for _, p := range o.Types {
				out = append(out, r.command(p, c, filepath.Join(o.Dir, "now.logits"), false))
			}
			for _, p := range r.crossChecked(c) {
				out = append(out, r.command(p, c, saved, true))
			}
		}
	}
	return out, nil
}
