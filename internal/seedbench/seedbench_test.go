package seedbench

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/bench"
	"dot4fa/internal/fault"
	"dot4fa/internal/hostrun"
	"dot4fa/internal/recipe"
	"dot4fa/internal/standin"
	"dot4fa/internal/toolchain"
)

var update = flag.Bool("update", false, "write the golden file")

var launch = regexp.MustCompile(`(?s)([\w.]+(?:<[^<>;]*>)?)<<<(.*?)>>>\(`)

// TestProgramOnCPU runs the program's own kernels and checks on the CPU, for the
// recipe's kernel parameters and for those that differ most.
func TestProgramOnCPU(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles kernels")
	}
	ctx := context.Background()
	cxx, err := hostrun.FindCompiler(ctx)
	if err != nil {
		t.Skip("clang++ with its sanitizers: ", err)
	}
	assets := os.DirFS("../..")
	base, err := recipe.Load(assets, "cuda")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range variants {
		if v.name != "recipe" && v.name != "triad" {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := *base
			r.Kernel = v.kernel(r.Kernel)
			names, err := standin.WriteKernels(dir, &r, assets)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string][]byte{"seed.cu": source}
			for _, name := range names {
				if texts[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range texts {
				text = launch.ReplaceAll(text, []byte("hostrun::launcher($1, $2)("))
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			defines := []string{"SEED_QUICK=1", "SEED_LAYOUTS=1"}
			if i > 0 {
				defines[1] = "SEED_LAYOUTS=0"
			}
			p, err := hostrun.Compile(ctx, hostrun.Options{Compiler: cxx, Dir: filepath.Join(dir, "out"), Name: "seed",
				Sources: []string{"testdata/host.cpp"}, Include: []string{dir}, Defines: defines})
			if err != nil {
				t.Fatal(err)
			}
			run, err := p.Run(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			device, list, err := parse(run.Stdout)
			if err != nil || run.Status != 0 || device != "fibers" {
				t.Fatalf("status %d, %v, device %q%s\n%s%s", run.Status, err, device, worst(list), run.Stdout, run.Stderr)
			}
			want := 8*2 + 1 + 3 + 3
			if i > 0 {
				want = 1
			}
			if len(list) != want {
				t.Errorf("%d measurements, want %d:\n%s", len(list), want, run.Stdout)
			}
		})
	}
}

func TestParse(t *testing.T) {
	const good = "device\tNVIDIA H200\nkq\tpacked16\t256\t1024\t18.100\t1.0e-15\ndone\n"
	device, list, err := parse([]byte(good))
	if err != nil || device != "NVIDIA H200" || len(list) != 1 || list[0] != (Measurement{"kq", "packed16", 256, 1024, 18.1, 1e-15}) {
		t.Errorf("%s %+v %v", device, list, err)
	}
	for n := 0; n < len(good)-1; n++ {
		if _, _, err := parse([]byte(good[:n])); err == nil {
			t.Errorf("cut at %d: accepted", n)
		}
	}
	for _, bad := range []string{"kq\tx\t1\t1\t0\t0\ndone\n", "kq\tx\t1\n", "kq\tx\ta\t1\t1\t0\ndone\n", "noise\ndone\n"} {
		if _, _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func seed(t *testing.T, name string) *Seed {
	t.Helper()
	r, err := recipe.Load(os.DirFS("../.."), name)
	if err != nil {
		t.Fatal(err)
	}
	return &Seed{Recipe: r, Assets: os.DirFS("../.."), Work: "/w", Dir: "/d", NVCC: "/bin/nvcc", ROCm: toolchain.ROCm{Root: "/rocm", Clang: toolchain.Tool{Path: "/bin/clang++"}}}
}

func TestCommands(t *testing.T) {
	for name, want := range map[string]string{
		"cuda":  "/bin/nvcc -std=c++17 -O3 -DNDEBUG -DSEED_LAYOUTS=1 -arch=sm_90 -use_fast_math -extended-lambda -DGGML_USE_CUDA -I/d/recipe -I/w/ggml/src/ggml-cuda -I/w/ggml/src -I/w/ggml/include /d/recipe/seed.cu -o /d/recipe/seed",
		"rdna3": "/bin/clang++ -std=c++17 -O3 -DNDEBUG -DSEED_LAYOUTS=1 -x hip -DGGML_USE_HIP -D__HIP_PLATFORM_AMD__ --offload-arch=gfx1100 --rocm-path=/rocm -I/d/recipe -I/w/ggml/src/ggml-cuda -I/w/ggml/src -I/w/ggml/include /d/recipe/seed.cu -o /d/recipe/seed --hip-link -Wl,-rpath,/rocm/lib",
	} {
		s := seed(t, name)
		cmds, err := s.Commands()
		if err != nil || len(cmds) != len(s.variants()) || cmds[0].String() != want {
			t.Errorf("%s: %d commands, %v, the first\n%s, want\n%s", name, len(cmds), err, cmds[0], want)
		}
	}
	for name, s := range map[string]*Seed{"cpu": seed(t, "cpu"), "cuda": seed(t, "cuda"), "rdna3": seed(t, "rdna3")} {
		s.NVCC, s.ROCm = "", toolchain.ROCm{}
		want := fault.Environment
		if name == "cpu" {
			want = fault.Usage
		}
		if _, err := s.Commands(); fault.Code(err) != want || fault.Hint(err) == "" {
			t.Errorf("%s without a compiler: %v", name, err)
		}
	}
}

// TestVariants: each is a set of kernel parameters that a recipe may have.
func TestVariants(t *testing.T) {
	s := seed(t, "cuda")
	for _, v := range variants {
		r := *s.Recipe
		r.Kernel = v.kernel(r.Kernel)
		if _, err := standin.WriteKernels(t.TempDir(), &r, s.Assets); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

func sample() *Result {
	r := &Result{Device: "NVIDIA H200", Commit: "test", Recipe: "cuda", When: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Threshold: 256, Packing: 5}
	for i, l := range []string{"q8_0 block", "packed16", "packed16, one row scale", "scales per dot4", "K in LDS", "cooperative warp2", "register 2x2", "LDS tile 16x16"} {
		for _, s := range seedShapes {
			r.Measurements = append(r.Measurements, Measurement{"kq", l, s.nq, s.nk, float64(10*(i+1)) * float64(s.nk) / 1024, 1e-14})
		}
	}
	for i, n := range []string{"bm 64, bn 64, K in LDS, 1 head", "bm 8, bn 64, K in LDS, 1 head"} {
		r.Measurements = append(r.Measurements, Measurement{"tile", n, 512, 3328, 1000 * float64(i+1), 1e-12}, Measurement{"tile", n, 2048, 2048, 2000 * float64(i+1), 1e-12})
	}
	r.Measurements = append(r.Measurements, Measurement{"mask", "tiles by class", 2048, 2048, 2000, 1e-12}, Measurement{"mask", "every tile reads the mask", 2048, 2048, 4000, 1e-12},
		Measurement{"stage", "Q quantization", 2048, 2048, 20, 0}, Measurement{"stage", "blockFA body", 2048, 2048, 1960, 0})
	r.Model = &bench.Model{Name: "m", What: "made up"}
	r.Tokens = []bench.Tokens{{Cache: "packed16/q4_0", Prompt: 512, PerSecond: 4000}, {Cache: "packed16/q4_0", Gen: 64, Depth: 15000, PerSecond: 90}}
	r.Decode = []Split{{256, 0, 20, 0}, {256, 128, 22, 0}, {3328, 0, 190, 0}, {3328, 128, 18, 0}}
	return r
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Print(&b); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/tables.txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
	files, err := sample().Write(t.TempDir())
	if err != nil || len(files) != 2 {
		t.Errorf("wrote %v, %v", files, err)
	}
	if err := (&Result{}).Print(&b); err != nil { // nothing measured is no reason to panic
		t.Error(err)
	}
}

func TestWorst(t *testing.T) {
	list := []Measurement{{Name: "a", NMSE: 1e-3}, {Name: "b", NMSE: 1e-12}}
	if got := worst(list); !strings.Contains(got, "a, NMSE") {
		t.Error(got)
	}
	if worst(nil) != "" {
		t.Error("nothing has a worst")
	}
}
