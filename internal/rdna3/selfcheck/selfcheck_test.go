package selfcheck

import (
	"os"
	"path/filepath"
	"testing"

	"dot4fa/internal/hostrun"
	"dot4fa/internal/isa"
	"dot4fa/internal/rdna3"
	"dot4fa/internal/rdna3/code"
	"dot4fa/internal/recipe"
)

var assets = os.DirFS(filepath.Join("..", "..", ".."))

const target = "gfx1100"

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
	if d := os.Getenv("EMU_DIR"); d != "" {
		dir = d
	}
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
	m := NewMachine(objects, o)
	p, err := hostrun.CompileKernels(ctx, r, assets, hostrun.KernelOptions{
		Options: hostrun.Options{Compiler: clang.Path, Dir: filepath.Join(dir, "host"), Defines: hostrun.AMD}, Away: m.Launch,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

func TestFirst(t *testing.T) {
	m, p := build(t, []int{64}, []string{"f16"}, rdna3.Options{})
	for n := range m.kernels {
		if _, err := m.kernel(n); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []hostrun.Case{
		"d=64 v=f16 nk=257 gqa=6 mask=causal", "d=64 v=f16 nk=1023 gqa=4 mask=holes sinks=1",
		"d=64 v=f16 nk=2049 gqa=6 mask=causal cta=2",
		"d=64 v=f16 nq=4 nk=640 gqa=6 mask=causal cta=2",
		"d=64 v=f16 route=prefill nq=33 nk=320 gqa=2 mask=causal",
		"d=64 v=f16 route=prefill nq=33 nk=320 gqa=2 mask=causal k=f16",
	} {
		out, err := p.RunCases(t.Context(), []hostrun.Case{c}, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Log(c, out[0].NMSE, c.Judge(out[0]))
	}
	for n, r := range m.Ran() {
		by := r.Counts.ByClass(r.Kernel)
		total := uint64(0)
		for _, n := range by {
			total += n
		}
		t.Logf("%s: %d launches, %d instructions, %.2f M/s, %v", n, r.Launches, total, float64(total)/1e6/r.Time.Seconds(), by)
	}
}
