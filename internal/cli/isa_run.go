package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/input"
	"dot4fa/internal/isa"
	"dot4fa/internal/pipeline"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
	"dot4fa/internal/rdna3/selfcheck"
	"dot4fa/internal/recipe"
)

// isaRun are the flags of isa that run kernels.
type isaRun struct {
	run, host bool
	selfCheck string
}

func (r *isaRun) flags(f *pflag.FlagSet) {
	f.BoolVar(&r.run, "run", false, "also execute the machine code on the emulator and compare every route with float64")
	f.BoolVar(&r.host, "host", false, "with --run: run the kernels' text on the CPU instead, under sanitizers")
	f.StringVar(&r.selfCheck, "self-check", "", "run the GPU code in the library, object or directory at this `path` instead of compiling it")
}

// isaResult is what isa prints as JSON.
type isaResult struct {
	*isa.Report
	Routes   []hostrun.Checked `json:"routes,omitempty"`   // with --host
	Emulated *selfcheck.Result `json:"emulated,omitempty"` // with --run
}

// hostRun runs the recipe's kernels on the CPU.
func (a *app) hostRun(ctx context.Context, r *recipe.Recipe, assets fs.FS, dir string) ([]hostrun.Checked, error) {
	cxx, err := hostrun.FindCompiler(ctx)
	if err != nil {
		return nil, err
	}
	a.report.Status("isa  running every route on the CPU")
	defer a.report.Clear()
	return hostrun.SelfCheck(ctx, r, assets, hostrun.Options{Compiler: cxx, Dir: filepath.Join(dir, "run"), Jobs: runtime.GOMAXPROCS(0)})
}

// check refuses flags that exclude each other, and headers that are not there.
func (r *isaRun) check(tree string) error {
	switch {
	case r.selfCheck != "" && (r.run || r.host):
		return fault.New(fault.Usage, "--self-check runs what is compiled already, --run compiles it").Hintf("give one of the two")
	case r.host && !r.run:
		return fault.New(fault.Usage, "--host is for --run").Hintf("dot4fa isa --run --host")
	case tree != "":
		if _, err := os.Stat(filepath.Join(tree, "common.cuh")); err != nil {
			return fault.New(fault.Usage, "no ggml-cuda directory: %w", err).At("%s", tree).Hintf("--tree names ggml/src/ggml-cuda of a llama.cpp")
		}
	}
	return nil
}

// target is the first of the targets that the emulator knows; "" when nothing is to run on it.
func (r *isaRun) target(targets []string) (string, error) {
	if r.host || !r.run && r.selfCheck == "" {
		return "", nil
	}
	at := slices.IndexFunc(targets, func(t string) bool { return slices.Contains(selfcheck.Targets, t) })
	if at < 0 {
		return "", fault.New(fault.Usage, "the emulator does not know %s", strings.Join(targets, " ")).
			Hintf("it runs %s; `dot4fa isa --run --host` runs the kernels' text for any target", strings.Join(selfcheck.Targets, ", "))
	}
	return targets[at], nil
}

// emulate runs code objects on the emulator, launched by host.
func (a *app) emulate(ctx context.Context, r *recipe.Recipe, clang *isa.Compiler, target string, objects [][]byte, host *hostrun.Program) (*selfcheck.Result, error) {
	defer a.report.Clear()
	return selfcheck.Run(ctx, r, selfcheck.Options{
		Clang: clang, Target: target, Objects: objects, Host: host, Jobs: runtime.GOMAXPROCS(0),
		Emulate: rdna3.Options{Seed: 1, Approximate: 1},
		Say:     func(format string, args ...any) { a.report.Status("isa  "+format, args...) },
	})
}

// selfCheck runs the code objects at path: what a user's own compiler made.
func (a *app) selfCheck(ctx context.Context, r *recipe.Recipe, assets fs.FS, clang *isa.Compiler, path, target, dir string) error {
	objects, err := codeObjects(path, target)
	if err != nil {
		return err
	}
	a.report.Status("isa  compiling the launch code")
	host, err := selfcheck.CompileHost(ctx, r, assets, clang, dir, runtime.GOMAXPROCS(0))
	a.report.Clear()
	if err != nil {
		return err
	}
	result, err := a.emulate(ctx, r, clang, target, objects, host)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(result)
	}
	return a.printEmulated(result)
}

// checkBuilt runs the kernels in the library that a build made, with the compiler that made it.
func (a *app) checkBuilt(ctx context.Context, r *recipe.Recipe, d *pipeline.Done) error {
	target, err := (&isaRun{run: true}).target(r.GPUTargets)
	if err != nil {
		return err
	}
	tree := filepath.Join(d.Work, "build")
	libraries, _ := filepath.Glob(filepath.Join(tree, "bin", "libggml-hip.so"))
	libraries = append(libraries, d.Programs...) // that carry it when libraries are static
	if len(libraries) == 0 {
		return fault.New(fault.Usage, "the build has no library to check").At("%s", tree).Hintf("build without --target")
	}
	clang, err := isa.FindCompiler(ctx, a.machine(), cached(filepath.Join(tree, "CMakeCache.txt"), "CMAKE_HIP_COMPILER"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dot4fa-isa")
	if err != nil {
		return fault.Temporary(err)
	}
	defer os.RemoveAll(dir)
	assets, _ := a.assets()
	return a.selfCheck(ctx, r, assets, clang, libraries[0], target, dir)
}

// cached is the value of a variable in a CMake cache, "" when it has none.
func cached(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			_, value, _ := strings.Cut(strings.TrimSpace(rest), "=")
			return value
		}
	}
	return ""
}

// codeObjects reads the code objects for target that hold packed16 kernels: of a file, or of the files of a directory.
func codeObjects(path, target string) ([][]byte, error) {
	names := []string{path}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		names = nil
		for _, pattern := range []string{"*.o", "*.co", "*.hsaco", "*.out", "*.so"} {
			found, _ := filepath.Glob(filepath.Join(path, pattern))
			names = append(names, found...)
		}
		if len(names) == 0 {
			err = fmt.Errorf("no *.o, *.co, *.hsaco, *.out or *.so in it")
		}
	}
	if err != nil {
		return nil, fault.New(fault.Usage, "no code objects: %w", err).At("%s", path).
			Hintf("name libggml-hip.so of a build, or what clang writes with --offload-arch=%s --offload-device-only -c", target)
	}
	var out [][]byte
	for _, name := range names {
		data, err := input.Read(name, "name a library, an object or their directory")
		if err != nil {
			return nil, err
		}
		objects, err := code.Extract(data, target)
		if len(names) > 1 && errors.Is(err, code.ErrNone) {
			continue // launch code beside the kernels
		}
		if err == nil {
			objects, err = selfcheck.Ours(objects)
		}
		var f *fault.Error
		if asErr(err, &f) && f.Where == "" {
			return nil, f.At("%s", name)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.VerifyFailed, "no packed16 kernels in its code for %s", target).At("%s", path).
			Hintf("name the library or the objects that packed16-*.cu were compiled to")
	}
	return out, nil
}

func (a *app) printISA(result isaResult) error {
	if err := result.Report.Print(a.Out); err != nil {
		return err
	}
	if result.Emulated != nil {
		fmt.Fprintln(a.Out)
		return a.printEmulated(result.Emulated)
	}
	if result.Routes == nil {
		return nil
	}
	rows := [][]string{{"ROUTE", "CASES", "WORST NMSE"}}
	worst := 0.0
	for _, c := range result.Routes {
		worst = max(worst, c.Worst)
		rows = append(rows, []string{c.Route, strconv.Itoa(c.Cases), fmt.Sprintf("%.2g", c.Worst)})
	}
	fmt.Fprintln(a.Out, "\nrun on the CPU, against float64 from the dequantised Q, K and V")
	if err := a.table(rows); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\n%d kernels, %d routes, worst NMSE %.2g\n", len(result.Kernels), len(result.Routes), worst)
	return nil
}

func (a *app) printEmulated(r *selfcheck.Result) error {
	if err := r.Print(a.Out); err != nil {
		return err
	}
	for _, name := range r.NotRun {
		a.note("no case launches %s", name)
	}
	fmt.Fprintf(a.Out, "\n%d kernels, %d routes, worst NMSE %.2g\n", len(r.Kernels), len(r.Routes), r.Worst())
	return nil
}
