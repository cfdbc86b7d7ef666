package hostrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/isa"
	"dot4fa/internal/machine"
	"dot4fa/internal/recipe"
	"dot4fa/internal/standin"
	"dot4fa/internal/toolchain"
)

// What a recipe may ask of the kernels is what compiles: on each side of every
// limit of recipe.Clash, the compiler says the same. NVIDIA's configuration is
// the one that runs here.
func TestWhatIsRefusedDoesNotCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	gpu, err := isa.FindCompiler(t.Context(), machine.Host(), "")
	if err != nil {
		t.Skipf("skipped: needs a clang++ for AMD GPUs: %v", err)
	}
	r := loadRecipe(t)
	headers := t.TempDir()
	if err := standin.Write(headers); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backend recipe.Backend
		heads   []int
		v       string
		set     func(*recipe.Kernel)
		clash   string // key; empty: it compiles
	}{
		{recipe.HIP, []int{64}, "f16", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 8, "triad" }, "kernel.gqa_group"},
		{recipe.HIP, []int{256}, "f16", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 32, "pair" }, ""},
		{recipe.HIP, []int{64, 256}, "q4_0", func(k *recipe.Kernel) { k.Chunk, k.DecodeBN, k.VSubTile, k.SplitSize = 1024, 128, 32, 1024 }, ""},
		{recipe.HIP, []int{64, 256}, "q8_0", func(k *recipe.Kernel) { k.Chunk, k.DecodeBN, k.VSubTile, k.VerifyMaxNQ = 64, 32, 32, 1 }, ""},
		{recipe.CUDA, []int{256}, "q4_0", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 32, "triad" }, "kernel.bm"},
		{recipe.CUDA, []int{128}, "q4_0", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 32, "triad" }, ""},
		{recipe.CUDA, []int{256}, "q4_0", func(k *recipe.Kernel) { k.BM, k.GQAGroup = 16, "triad" }, ""},
		{recipe.CUDA, []int{64}, "q4_0", func(k *recipe.Kernel) { k.Chunk = 256 }, "kernel.chunk"},
		{recipe.CUDA, []int{128, 256}, "q4_0", func(k *recipe.Kernel) { k.Chunk, k.DecodeBN, k.VSubTile = 256, 128, 32 }, ""},
		{recipe.CUDA, []int{256}, "q8_0", func(k *recipe.Kernel) { k.Chunk = 512 }, "kernel.chunk"},
		{recipe.CUDA, []int{64}, "f16", func(k *recipe.Kernel) { k.Chunk, k.VerifyMaxNQ = 64, 4 }, "kernel.verify_max_nq"},
		{recipe.CUDA, []int{64, 256}, "f16", func(k *recipe.Kernel) { k.Chunk, k.VerifyMaxNQ = 64, 5 }, ""},
		{recipe.CUDA, []int{64}, "q8_0", func(k *recipe.Kernel) { k.Chunk, k.DecodeBN, k.VSubTile, k.VerifyMaxNQ = 64, 32, 32, 1 }, ""},
		{recipe.CUDA, []int{128, 256}, "q8_0", func(k *recipe.Kernel) { k.Chunk = 64 }, ""},
	} {
		tried := *r
		tried.Kernel.HeadSizes, tried.Kernel.VTypes = c.heads, []string{c.v}
		c.set(&tried.Kernel)
		k := tried.Kernel
		name := fmt.Sprintf("%s heads %v v %s chunk %d/%d/%d nq %d bm %d %s", c.backend, c.heads, c.v, k.Chunk, k.DecodeBN, k.VSubTile, k.VerifyMaxNQ, k.BM, k.GQAGroup)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := ""
			if clash := k.Clash(c.backend); clash != nil {
				key = clash.Key
			}
			if key != c.clash {
				t.Errorf("the recipe's clash is %q, want %q", key, c.clash)
			}
			dir := t.TempDir()
			names, err := standin.WriteKernels(dir, &tried, assets)
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-std=c++17", "-fsyntax-only", "-w", "-I" + dir}
			if c.backend == recipe.HIP {
				args = append(args, "-x", "hip", "--offload-device-only", "--offload-arch=gfx1100", "-nogpulib", "-nogpuinc",
					"-DGGML_USE_HIP", "-D__HIP_PLATFORM_AMD__", "-I"+filepath.Join(headers, standin.Hip))
			} else {
				args = append(args, "-x", "c++", "-I"+filepath.Join(headers, standin.Host))
				if hasF16C() {
					args = append(args, "-mf16c")
				}
				for _, name := range names {
					if err := translate(filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			unit := filepath.Join(dir, "packed16-v-"+c.v+".cu")
			if _, err := os.Stat(unit); err != nil {
				t.Fatal(err)
			}
			err = toolchain.Compile(t.Context(), gpu.Path, append(args, "-I"+filepath.Join(headers, standin.Ggml), unit)...)
			if refused := err != nil; refused != (c.clash != "") {
				t.Errorf("the compiler says: %v", err)
			} else if refused && !strings.Contains(err.Error(), "static assertion failed") {
				t.Errorf("no static_assert refuses it: %v", err)
			}
		})
	}
}
