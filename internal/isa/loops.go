package isa

// Issue slots of the two loops that decode spends its time in. A dual-issue pair takes one slot.

// issues counts the slots of vector instructions that keep accepts.
func issues(insts []inst, keep func(in inst) bool) int {
	n, line := 0, 0
	for _, in := range insts {
		if in.line != line && isVector(class(in.op)) && keep(in) {
			n++
			line = in.line
		}
	}
	return n
}

func isVector(class string) bool {
	return class == classFMA || class == classTrans || class == classValu || class == classDot4
}

// otherPerDot4 is the vector instructions between the first and the last dot4 of the given blocks that are no dot4, for
// each dot4: what computing logits costs beside the products, without what happens once for all of them.
func (f *function) otherPerDot4(blocks []int) float64 {
	var insts []inst
	first, last, count := -1, -1, 0
	for _, b := range blocks {
		for _, in := range f.blocks[b].insts {
			if isDot4(in.op) {
				if first < 0 {
					first = len(insts)
				}
				last = len(insts)
				count++
			}
			insts = append(insts, in)
		}
	}
	if count == 0 {
		return 0
	}
	return float64(issues(insts[first:last], func(in inst) bool { return !isDot4(in.op) })) / float64(count)
}

// perSum is the vector instructions of a turn of decode's loop over V, for each (dimension, query, key): the innermost loop
// without dot4 that has the most multiply-adds. A lane reads the weight of a (query, key) from shared memory once and
// has 8 dimensions. 0 when there is no such loop.
func (f *function) perSum() float64 {
	best, ratio := 0, 0.0
	loops := f.loops()
	for i, body := range loops {
		if containsLoop(loops[:i], body) { // smallest first
			continue
		}
		var insts []inst
		fma, products, weights := 0, 0, 0
		for _, b := range body {
			for _, in := range f.blocks[b].insts {
				if isDot4(in.op) {
					products++
				}
				if class(in.op) == classFMA {
					fma++
				}
				if space, bits, ok := loadWidth(in.op); ok && space == "lds" {
					weights += bits / 32
				}
				insts = append(insts, in)
			}
		}
		if products == 0 && weights > 0 && fma > best {
			best = fma
			ratio = float64(issues(insts, func(inst) bool { return true })) / float64(8*weights)
		}
	}
	return ratio
}

// containsLoop says whether one of the loops lies within body.
func containsLoop(loops [][]int, body []int) bool {
	in := map[int]bool{}
	for _, b := range body {
		in[b] = true
	}
	for _, l := range loops {
		if len(l) < len(body) && in[l[0]] && in[l[len(l)-1]] {
			return true
		}
	}
	return false
}
