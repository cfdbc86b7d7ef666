package hostrun

import (
	"path/filepath"
	"testing"

	"dot4fa/internal/recipe"
	"dot4fa/internal/standin"
)

// A graph reserved for the most rows and cells has scratch for every smaller call, in each layout of matrix instructions.
func TestScratchIsNeverLessForLess(t *testing.T) {
	cxx, err := FindCompiler(t.Context())
	if err != nil {
		t.Skipf("skipped: needs clang++ with AddressSanitizer: %v", err)
	}
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range []string{"1", "2", "3"} {
		dir := filepath.Join(scratch, "scratch-"+layout)
		kernels := filepath.Join(dir, "kernels")
		names, err := standin.WriteKernels(kernels, r, assets)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := translate(filepath.Join(kernels, name)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Compile(t.Context(), Options{
			Compiler: cxx, Dir: dir, Name: "scratch", Include: []string{kernels}, Defines: []string{"PACKED16_MMA_LAYOUT=" + layout},
			Sources: []string{filepath.Join("testdata", "scratch.cpp")},
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != 0 {
			t.Errorf("layout %s: status %d\n%s%s", layout, out.Status, out.Stdout, out.Stderr)
		}
	}
}
