package hostrun

import "testing"

// A graph reserved for the most rows and cells has scratch for every smaller call, in each layout of matrix instructions.
func TestScratchIsNeverLessForLess(t *testing.T) {
	for _, layout := range []string{"1", "2", "3"} {
		out := runSource(t, "scratch-"+layout, "scratch", Options{Defines: []string{"PACKED16_MMA_LAYOUT=" + layout}}, nil)
		if out.Status != 0 {
			t.Errorf("layout %s: status %d\n%s%s", layout, out.Status, out.Stdout, out.Stderr)
		}
	}
}
