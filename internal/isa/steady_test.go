package isa

import (
	"slices"
	"testing"
)

// A turn of a loop may skip a mask, and the products as a whole; what a turn with products passes is steady.
func TestSteady(t *testing.T) {
	wmma, other := inst{op: "v_wmma_f32_16x16x16_f16"}, inst{op: "v_add_f32_e32"}
	f := &function{}
	for i, b := range []struct {
		insts []inst
		succ  []int
	}{
		0: {nil, []int{1}},
		1: {[]inst{other}, []int{2, 6}},             // the head; idle waves go on to the end
		2: {[]inst{other}, []int{3, 4}},             // is the tile mixed?
		3: {[]inst{other, other, other}, []int{4}},  // reads the mask
		4: {[]inst{wmma, other, wmma}, []int{5, 6}}, // the products, then values that are not finite
		5: {[]inst{other, other}, []int{6}},
		6: {[]inst{other}, []int{1, 7}},
		7: {nil, nil},
	} {
		for j := range b.insts {
			b.insts[j].line = 10*i + j + 1
		}
		f.blocks = append(f.blocks, block{insts: b.insts, succ: b.succ})
	}
	for i := range f.blocks {
		for _, s := range f.blocks[i].succ {
			f.blocks[s].pred = append(f.blocks[s].pred, i)
		}
	}
	body := []int{1, 2, 3, 4, 5, 6}
	if got, want := f.steady(body), []int{1, 2, 4, 6}; !slices.Equal(got, want) {
		t.Errorf("steady blocks are %v, want %v", got, want)
	}
	if got := f.otherPerWMMA(body); got != 2 {
		t.Errorf("%g other vector instructions per product, want 2", got)
	}
}
