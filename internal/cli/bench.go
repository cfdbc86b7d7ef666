package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dot4fa/internal/bench"
	"dot4fa/internal/build"
	"dot4fa/internal/lock"
	"dot4fa/internal/page"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/randmodel"
	"dot4fa/internal/recipe"
	"dot4fa/internal/vram"
)

// suites are what bench can measure.
var suites = []string{"attention", "model", "seed"}

func (a *app) bench() *cobra.Command {
	o := &benchFlags{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure packed16 against the caches one would use instead",
		Long: `Times the built tree on the device it was built for. The suite attention times
single attention calls with test-backend-ops: packed16 with each V type next to
q8_0 with the same V and to f16/f16, in one process, for a set of shapes. The suite
model runs llama-bench with a given model on several caches and depths. The suite
seed repeats the experiments of the document this project began with, its figures
beside those measured; it builds a program of its own and is run alone. With --model it
also repeats the document's figures of a whole model.

Repetitions are interleaved; figures are medians, with the distance from the fastest
to the slowest as their spread. Results go to JSON, a Markdown page and pictures in
the directory --out, and a table to stdout. A shape whose baseline is faster is listed.

--compare FILE holds the run against a stored one and ends with exit code 6 when
something got slower beyond the spread of both. --from FILE takes a stored run instead
of measuring. --make-model writes a model of random weights in the shape of a real
one, for the suite model where no model is at hand.`,
		Example: `  dot4fa bench
  dot4fa bench --recipe cuda --shapes all --repeat 5 --out docs/bench
  dot4fa bench --shapes nk=16384/nq=1,4/d=128/gqa=8/v=q4_0
  dot4fa bench --compare docs/bench/nvidia-h200.json
  dot4fa bench --from docs/bench/nvidia-h200.json --targets
  dot4fa bench --make-model /tmp/m.gguf --layers-like qwen3-27b --layers 4
  dot4fa bench --suite model --model /tmp/m.gguf --depth 0,8192,32768`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runBench(cmd, o) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.suites, "suite", []string{"attention"}, "what to measure: "+strings.Join(suites, ", "))
	f.StringVar(&o.shapes, "shapes", "", "`shapes` of attention: "+strings.Join(bench.Sets, ", ")+", or KEY=LIST/… (default: canonical, on a CPU small)")
	f.StringVar(&o.device, "device", "", "ggml's `name` of the device (default: the recipe's first, as ROCm0)")
	f.IntVar(&o.repeat, "repeat", 3, "repetitions, interleaved")
	f.DurationVar(&o.least, "least", 250*time.Millisecond, "least `time` of one case in one repetition")
	f.DurationVar(&o.within, "within", 0, "begin nothing new after this `time`, and report what there is")
	f.StringVar(&o.out, "out", "", "`directory` for JSON, Markdown and pictures (default: .dot4fa/bench in the work tree)")
	f.StringArrayVar(&o.from, "from", nil, "take this stored run instead of measuring, a `file` (repeatable: of a figure that several have, the last one's stays)")
	f.StringVar(&o.compare, "compare", "", "compare with this stored run, a `file`")
	f.BoolVar(&o.targets, "targets", false, "also print the project's targets and what was measured")
	f.StringVar(&o.scalar, "no-matrix", "", "for --targets: a stored run with matrix cores off, a `file`")
	f.StringVar(&o.model, "model", "", "GGUF `file` for the suites model and seed")
	f.StringSliceVar(&o.caches, "cache", []string{"packed16/q4_0", "q8_0/q4_0", "f16/f16"}, "`K/V` types of the suite model")
	f.IntSliceVar(&o.depths, "depth", []int{0, 4096, 16384, 32768}, "context depths of the suite model")
	f.IntVar(&o.prompt, "prompt", 512, "prompt `tokens` of the suite model; 0 leaves the test out")
	f.IntVar(&o.gen, "gen", 64, "generated `tokens` of the suite model; 0 leaves the test out")
	f.StringVar(&o.make, "make-model", "", "write a model of random weights to this `file`, and do nothing else")
	f.StringVar(&o.like, "layers-like", "qwen3-27b", "whose layers it has, a `name`")
	f.IntVar(&o.layers, "layers", 0, "how many (default: the attention layers of the real model)")
	f.StringVar(&o.weights, "weights", "q4_0", "their `type`: q4_0, q8_0, f16")
	_ = c.MarkFlagDirname("out")
	return c
}

func (a *app) runBench(cmd *cobra.Command, o *benchFlags) error {
	if err := o.alone(cmd); err != nil {
		return err
	}
	if o.make != "" {
		return a.makeModel(cmd, o)
	}
	if err := o.check(); err != nil {
		return err
	}
	if len(o.from) > 0 && a.dryRun {
		return noDryRun("bench --from")
	}
	if o.suites[0] == "seed" {
		return a.runSeed(cmd.Context(), o)
	}
	var before, scalar *bench.Result
	var err error
	for _, f := range []struct {
		name string
		into **bench.Result
	}{{o.compare, &before}, {o.scalar, &scalar}} {
		if f.name != "" {
			if *f.into, err = bench.Load(f.name); err != nil {
				return err
			}
		}
	}
	var r *bench.Result
	out := o.out
	if len(o.from) > 0 {
		r, err = a.loadRuns(o.from)
	} else {
		r, out, err = a.measure(cmd.Context(), o)
	}
	if err != nil || r == nil {
		return err
	}
	if out != "" {
		files, err := r.Write(out)
		if err != nil {
			return err
		}
		for _, file := range files {
			a.report.Say("wrote %s", file)
		}
	}
	return a.printBench(o, r, before, scalar)
}

// loadRuns reads stored runs as one, and says which figures of it are of a later
// one instead of an earlier.
func (a *app) loadRuns(files []string) (*bench.Result, error) {
	var all *bench.Result
	for _, file := range files {
		r, err := bench.Load(file)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = r
			continue
		}
		replaced := 0
		if all, replaced, err = bench.Merge(all, r); err != nil {
			return nil, err
		}
		if replaced > 0 {
			a.note("%s replaces %s of the runs before it", file, page.Plural(replaced, "figure"))
		}
	}
	return all, nil
}

// printBench prints what was measured and what follows from it.
func (a *app) printBench(o *benchFlags, r, before, scalar *bench.Result) error {
	full := struct {
		*bench.Result
		Targets []bench.Target `json:"targets,omitempty"`
		Changes []bench.Change `json:"changes,omitempty"`
	}{Result: r}
	var err error
	if before != nil {
		if full.Changes, err = bench.Compare(before, r); err != nil {
			return err
		}
	}
	if o.targets {
		if full.Targets, err = bench.Targets(r, scalar); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(full)
	} else {
		err = r.Print(a.Out)
		if err == nil && full.Targets != nil {
			fmt.Fprintln(a.Out)
			err = bench.PrintTargets(a.Out, r, full.Targets)
		}
		if err == nil && before != nil {
			fmt.Fprintln(a.Out)
			err = bench.PrintChanges(a.Out, before, full.Changes)
		}
	}
	if err != nil {
		return err
	}
	if err := r.Broken(); err != nil && len(o.from) == 0 {
		return err
	}
	return bench.Slower(full.Changes)
}

// benchOf is the built tree of a run.
func (a *app) benchOf(run *pipeline.Run, o *benchFlags) *bench.Bench {
	commit := version()
	if l, err := lock.Read(filepath.Join(run.Work, lock.Name)); err == nil && l.Tool != "" {
		commit = l.Tool
	}
	return &bench.Bench{Bin: build.TreeOf(run.Work).Bin(), Recipe: a.recipe, Backend: run.Recipe.Backend, Kernel: run.Recipe.Kernel,
		Env: run.Recipe.Env, Device: o.device, Commit: commit, Repeat: o.repeat, Least: o.least, Within: o.within, Report: a.report}
}

// measure runs the suites. It returns where the results go; no result with
// --dry-run.
func (a *app) measure(ctx context.Context, o *benchFlags) (*bench.Result, string, error) {
	run, err := a.run()
	if err != nil {
		return nil, "", err
	}
	defer run.Close()
	b := a.benchOf(run, o)
	sel, err := bench.ParseShapes(o.shapes, run.Recipe.Backend == recipe.CPU || o.device == "CPU")
	if err != nil {
		return nil, "", err
	}
	m := bench.ModelRun{File: o.model, Depths: o.depths, Prompt: o.prompt, Gen: o.gen}
	for _, c := range o.caches {
		p, err := vram.ParsePair(c)
		if err != nil {
			return nil, "", err
		}
		m.Caches = append(m.Caches, p)
	}
	plan := bench.Plan{Model: m, Shapes: sel, Suites: o.suites}
	if a.dryRun {
		for _, c := range b.Commands(plan) {
			fmt.Fprintln(a.Out, c)
		}
		return nil, "", nil
	}
	out := o.out
	if out == "" {
		out = filepath.Join(run.Work, ".dot4fa", "bench")
	}
	r, err := b.Run(ctx, plan)
	return r, out, err
}

// makeModel writes the model of --make-model.
func (a *app) makeModel(cmd *cobra.Command, o *benchFlags) error {
	shape, err := randmodel.ByName(o.like)
	if err != nil {
		return err
	}
	n := o.layers
	if !cmd.Flags().Changed("layers") {
		n = shape.Layers
	}
	if a.dryRun {
		a.note("it would write %d layers of %s to %s; there is nothing to run", n, shape.Name, o.make)
		return nil
	}
	a.report.Status("bench  writing %d layers of %s", n, shape.Name)
	if err := randmodel.Make(cmd.Context(), o.make, shape, n, o.weights); err != nil {
		return err
	}
	a.report.Clear()
	_, err = fmt.Fprintln(a.Out, o.make)
	return err
}
