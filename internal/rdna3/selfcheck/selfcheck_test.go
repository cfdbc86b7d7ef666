package selfcheck

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/machine"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
	"dot4fa/internal/recipe"
)

var full = flag.Bool("full", false, "run every head size and V type of the recipe")

var assets = os.DirFS(filepath.Join("..", "..", ".."))

const target = "gfx1100"

// device is the recipe and what the compiler made of its kernels for the GPU; with -full of all of them.
type device struct {
	recipe  *recipe.Recipe
	clang   *isa.Compiler
	dump    *code.Disassembler
	objects [][]byte
}

var compiled *device

// compile compiles the kernels once, of one head size and V type, or skips by name without a compiler.
func compile(t *testing.T) *device {
	t.Helper()
	if compiled != nil {
		return compiled
	}
	ctx := t.Context()
	clang, err := isa.FindCompiler(ctx, machine.Host(), "")
	if err != nil {
		t.Skipf("skipped: needs clang 19 or newer with the amdgcn target: %v", err)
	}
	dump, err := code.FindDisassembler(ctx, clang.Path, clang.Major)
	if err != nil {
		t.Skipf("skipped: needs llvm-objdump: %v", err)
	}
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	if !*full {
		r.Kernel.HeadSizes, r.Kernel.VTypes = []int{64}, []string{"q4_0"}
	}
	src, err := isa.Kernels(filepath.Join(t.TempDir(), "device"), r, assets)
	if err != nil {
		t.Fatal(err)
	}
	src.Units = slices.DeleteFunc(src.Units, func(unit string) bool { // other V types than the recipe's
		v, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(unit), ".cu"), "packed16-v-")
		return ok && !slices.Contains(r.Kernel.VTypes, v)
	})
	report, err := isa.Inspect(ctx, clang, src, []string{target}, runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	compiled = &device{r, clang, dump, report.Objects[target]}
	return compiled
}

// host is the launch code for the kernels.
func (d *device) host(t *testing.T) *hostrun.Program {
	t.Helper()
	p, err := CompileHost(t.Context(), d.recipe, assets, d.clang, t.TempDir(), runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// build is a machine with the compiled kernels, and the host's program that launches them.
func build(t *testing.T, o rdna3.Options) (*Machine, *hostrun.Program) {
	t.Helper()
	d := compile(t)
	objects, err := Open(t.Context(), d.dump, d.objects, target)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(objects, o)
	return m, d.host(t)
}

// Every kernel of the recipe runs on the emulator, in orders drawn from a seed and with exp2 and rcp as wrong as they may be.
func TestEveryRouteAgreesWithFloat64(t *testing.T) {
	d := compile(t)
	result, err := Run(t.Context(), d.recipe, Options{
		Clang: d.clang, Target: target, Objects: d.objects, Host: d.host(t), Jobs: runtime.NumCPU(),
		Emulate: rdna3.Options{Seed: 7, Approximate: 7},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.NotRun) > 0 {
		t.Errorf("no case launches %v", result.NotRun)
	}
	for _, c := range result.Costs { // D/4 dot4 a pair, or none
		if dot4 := c.PerPair[rdna3.Dot4.String()]; dot4 != float64(slices.Max(d.recipe.Kernel.HeadSizes))/4 && c.PerPair[rdna3.WMMA.String()] == 0 {
			t.Errorf("%s: %g dot4 a pair", c.Case, dot4)
		}
	}
	var text bytes.Buffer
	if err := result.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text.String())
}

// Code of another target is refused before anything is compiled for it.
func TestOtherTargets(t *testing.T) {
	if _, err := Run(t.Context(), nil, Options{Target: "gfx1201"}); fault.Code(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}
