package hostrun

import (
	"fmt"
	"testing"
)

// Layouts are the ways the matrix instructions of a GPU spread a tile over a warp, by PACKED16_MMA_LAYOUT.
var layouts = map[int]string{1: "sm_80", 2: "RDNA3", 3: "RDNA4"}

// The tiles of packed16-mma.cuh give exact products in the layout of every GPU that has matrix instructions: their
// loads, products, transposition and reductions, with the instructions made from shuffles.
func TestMatrixTiles(t *testing.T) {
	for layout, name := range layouts {
		t.Run(name, func(t *testing.T) {
			result := runSource(t, "mma-"+name, "mma", Options{Traced: true, Defines: []string{fmt.Sprintf("PACKED16_MMA_LAYOUT=%d", layout)}}, nil)
			const want = "int8 from shared memory 0\nint8 from memory 0\nf16 0\nmaximum 0\n"
			if result.Status != 0 || string(result.Stdout) != want {
				t.Errorf("status %d\n%s%s", result.Status, result.Stdout, result.Stderr)
			}
		})
	}
}
