package cli

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/nearest"
	"dot4fa/internal/rdna3/selfcheck"
	"dot4fa/internal/recipe"
)

func (a *app) isa() *cobra.Command {
	var targets []string
	var all, record bool
	var compiler, tree string
	var run isaRun
	c := &cobra.Command{
		Use:   "isa",
		Short: "Show what the kernels cost in machine code, and hold them to budgets",
		Long: `Compiles every kernel of the recipe for AMD GPUs, device side only, with ROCm's
clang or a plain clang 19 or newer, and reads from the machine code: dot4
instructions, registers, spills, shared memory, waves per SIMD, loads by width.
Nothing is run on a GPU.

With --run the gfx1100 machine code is executed by an emulator, launched by the
kernels' own host code: every kernel and route, registers and shared memory
poisoned, every access checked, results compared with float64 (pack: byte by
byte). Loads arrive no sooner than the code waits for them, waves race in shared
memory if the barriers let them, exp2 and rcp are off by up to the 1 ulp that
the ISA guide allows. It does not model time, caches, races in global memory, or
how hardware rounds sums inside of a matrix product.
--self-check runs the GPU code in a library or object that another compiler
made: a ROCm release that miscompiles the kernels is caught by it. --host
runs the kernels' text on the CPU instead, under sanitizers and watched for
races; that needs clang with its address sanitizer.

When a kernel breaks a recorded budget, or a route its tolerance, the exit code
is 6.`,
		Example: `  dot4fa isa
  dot4fa isa --run
  dot4fa isa --run --host
  dot4fa isa --run --compiler /opt/rocm/llvm/bin/clang++
  dot4fa isa --self-check work/rdna3/build/bin/libggml-hip.so --compiler /opt/rocm/llvm/bin/clang++
  dot4fa isa --target gfx1201 --json
  dot4fa isa --all --compiler clang++-21
  dot4fa isa --tree work/rdna3/ggml/src/ggml-cuda     # with upstream's own headers`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.loadRecipe()
			if err != nil {
				return err
			}
			if targets, err = isaTargets(r, targets, all); err != nil {
				return err
			}
			if err := run.check(tree); err != nil {
				return err
			}
			emulated, err := run.target(targets)
			if err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "dot4fa-isa")
			if err != nil {
				return fault.Temporary(err)
			}
			defer os.RemoveAll(dir)
			assets, _ := a.assets()
			src, err := isa.Kernels(dir, r, assets)
			if err != nil {
				return err
			}
			src.Tree = tree
			ctx := cmd.Context()
			clang, err := isa.FindCompiler(ctx, a.machine(), compiler)
			if err != nil {
				return err
			}
			if run.selfCheck != "" {
				return a.selfCheck(ctx, r, assets, clang, run.selfCheck, emulated, dir)
			}
			a.report.Status("isa  clang %s, %s", clang.Version, strings.Join(targets, " "))
			var report *isa.Report
			var host *hostrun.Program
			group, gctx := errgroup.WithContext(ctx)
			group.Go(func() (err error) {
				report, err = isa.Inspect(gctx, clang, src, targets, runtime.GOMAXPROCS(0))
				return err
			})
			if emulated != "" { // the kernels' units are few and large
				group.Go(func() (err error) {
					host, err = selfcheck.CompileHost(gctx, r, assets, clang, dir, 1)
					return err
				})
			}
			err = group.Wait()
			a.report.Clear()
			if err != nil {
				return err
			}
			budgets, err := isa.LoadBudgets()
			if err != nil {
				return err
			}
			if record {
				return budgets.Record(a.Out, report)
			}
			result := isaResult{Report: report}
			switch {
			case run.host:
				result.Routes, err = a.hostRun(ctx, r, assets, dir)
			case run.run:
				result.Emulated, err = a.emulate(ctx, r, clang, emulated, report.Objects[emulated], host)
			}
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(result)
			} else {
				err = a.printISA(result)
			}
			if err != nil {
				return err
			}
			return overBudget(budgets.Check(report))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&targets, "target", nil, "GPU `target` to compile for (repeatable; default: the recipe's)")
	f.BoolVar(&all, "all", false, "compile for every target the kernels are meant for")
	f.StringVar(&compiler, "compiler", "", "the clang++ to use, a `path` or name (default: ROCm's, else the newest)")
	f.StringVar(&tree, "tree", "", "ggml-cuda `directory` of an upstream tree whose headers to use instead of the stand-ins")
	run.flags(f)
	f.BoolVar(&record, "record", false, "print the budgets file with these figures as its new ceilings")
	_ = c.MarkFlagDirname("tree")
	return c
}

// isaTargets are the targets asked for, else the recipe's AMD ones, else the
// first of all.
func isaTargets(r *recipe.Recipe, asked []string, all bool) ([]string, error) {
	switch {
	case all && len(asked) > 0:
		return nil, fault.New(fault.Usage, "--all and --target exclude each other").Hintf("give one of them")
	case all:
		return isa.Targets, nil
	case len(asked) == 0 && r.Backend == recipe.HIP:
		return r.GPUTargets, nil
	case len(asked) == 0:
		return isa.Targets[:1], nil
	}
	for _, t := range asked {
		if contains(isa.Targets, t) || contains(recipe.HIPTargets, t) {
			continue
		}
		hint := ""
		if near := nearest.Hint(t, isa.Targets); near != "" {
			hint = near + "? "
		}
		return nil, fault.New(fault.Usage, "unknown GPU target %s", t).Hintf("%sallowed: %s", hint, strings.Join(isa.Targets, ", "))
	}
	return asked, nil
}

// overBudget is one error of all budgets that are broken.
func overBudget(broken []*fault.Error) error {
	if len(broken) == 0 {
		return nil
	}
	var b strings.Builder
	what := "budgets are"
	if len(broken) == 1 {
		what = "budget is"
	}
	fmt.Fprintf(&b, "%d %s broken", len(broken), what)
	for _, e := range broken {
		b.WriteString("\n  " + e.Error())
	}
	return fault.New(fault.VerifyFailed, "%s", b.String()).Hintf("%s", broken[0].Hint)
}
