package hostrun

import (
	"fmt"
	"path/filepath"
	"testing"

	"dot4fa/internal/recipe"
	"dot4fa/internal/standin"
)

// Layouts are the ways the matrix instructions of a GPU spread a tile over a warp, by PACKED16_MMA_LAYOUT.
var layouts = map[int]string{1: "sm_80", 2: "RDNA3", 3: "RDNA4"}

// The tiles of packed16-mma.cuh give exact products in the layout of every GPU that has matrix instructions: their
// loads, products, transposition and reductions, with the instructions made from shuffles.
func TestMatrixTiles(t *testing.T) {
	cxx, err := FindCompiler(t.Context())
	if err != nil {
		t.Skipf("skipped: needs clang++ with AddressSanitizer: %v", err)
	}
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	for layout, name := range layouts {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(scratch, "mma-"+name)
			kernels := filepath.Join(dir, "kernels")
			if _, err := standin.WriteKernels(kernels, r, assets); err != nil {
				t.Fatal(err)
			}
			p, err := Compile(t.Context(), Options{
				Compiler: cxx, Dir: dir, Name: "mma", Include: []string{kernels}, Traced: true,
				Defines: []string{fmt.Sprintf("PACKED16_MMA_LAYOUT=%d", layout)},
				Sources: []string{filepath.Join("testdata", "mma.cpp")},
			})
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			const want = "int8 from shared memory 0\nint8 from memory 0\nf16 0\nmaximum 0\n"
			if result.Status != 0 || string(result.Stdout) != want {
				t.Errorf("status %d\n%s%s", result.Status, result.Stdout, result.Stderr)
			}
		})
	}
}
