package selfcheck

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
	"dot4fa/internal/recipe"
)

var full = flag.Bool("full", false, "run every head size and V type of the recipe")

var assets = os.DirFS(filepath.Join("..", "..", ".."))

const target = "gfx1100"

// What build made last.
var (
	testObjects [][]byte
	testDump    *code.Disassembler
)

// build compiles the kernels of one head size and V type for the GPU and for the host that launches them.
func build(t *testing.T, heads []int, vs []string, o rdna3.Options) (*Machine, *hostrun.Program) {
	t.Helper()
	ctx := t.Context()
	clang, err := isa.FindCompiler(ctx, "")
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
	r.Kernel.HeadSizes, r.Kernel.VTypes = heads, vs
	dir := t.TempDir()
	src, err := isa.Kernels(filepath.Join(dir, "device"), r, assets)
	if err != nil {
		t.Fatal(err)
	}
	report, err := isa.Inspect(ctx, clang, src, []string{target}, 2)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Open(ctx, dump, report.Objects[target], target)
	if err != nil {
		t.Fatal(err)
	}
	testObjects, testDump = report.Objects[target], dump
	m := NewMachine(objects, o)
	p, err := hostrun.CompileKernels(ctx, r, assets, hostrun.KernelOptions{
		Options: hostrun.Options{Compiler: clang.Path, Dir: filepath.Join(dir, "host"), Defines: launchDefines}, Away: m.Launch,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

// Every kernel of the recipe runs on the emulator, in orders drawn from a seed and with exp2 and rcp as wrong as they may be.
func TestEveryRouteAgreesWithFloat64(t *testing.T) {
	ctx := t.Context()
	clang, err := isa.FindCompiler(ctx, "")
	if err != nil {
		t.Skipf("skipped: needs clang 19 or newer with the amdgcn target: %v", err)
	}
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	if !*full {
		r.Kernel.HeadSizes, r.Kernel.VTypes = []int{64}, []string{"q4_0"}
	}
	dir := t.TempDir()
	src, err := isa.Kernels(filepath.Join(dir, "device"), r, assets)
	if err != nil {
		t.Fatal(err)
	}
	report, err := isa.Inspect(ctx, clang, src, []string{target}, 2)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(ctx, r, assets, Options{
		Clang: clang, Target: target, Objects: report.Objects[target], Dir: dir, Jobs: runtime.NumCPU(),
		Emulate: rdna3.Options{Seed: 7, Approximate: 7},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.NotRun) > 0 {
		t.Errorf("no case launches %v", result.NotRun)
	}
	var text bytes.Buffer
	if err := result.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text.String())
}
