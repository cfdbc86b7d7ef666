package isa

// steady returns those of a loop's blocks that every turn with matrix products passes: they lie on all ways from the loop's
// head to the block with the most products, or on all ways from there to the end of the turn. Left out is what a turn
// may skip: masks where a tile is full, values that are not finite, another reference for the softmax.
func (f *function) steady(body []int) []int {
	in := map[int]bool{}
	for _, b := range body {
		in[b] = true
	}
	head, products, most := -1, -1, 0
	for _, b := range body {
		for _, p := range f.blocks[b].pred {
			if !in[p] {
				head = b
			}
		}
		n := 0
		for _, i := range f.blocks[b].insts {
			if class(i.op) == classWMMA {
				n++
			}
		}
		if n > most {
			products, most = b, n
		}
	}
	if head < 0 || products < 0 {
		return nil
	}
	// reaches says whether a turn gets from `from` to `to`, or to its end for to == head, without passing `without`.
	reaches := func(from, to, without int) bool {
		seen := map[int]bool{from: true}
		for work := []int{from}; len(work) > 0; {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			for _, next := range f.blocks[b].succ {
				if next == to {
					return true
				}
				if in[next] && next != head && next != without && !seen[next] {
					seen[next] = true
					work = append(work, next)
				}
			}
		}
		return false
	}
	var out []int
	for _, b := range body {
		if b == head || b == products || !reaches(head, products, b) && head != products || !reaches(products, head, b) {
			out = append(out, b)
		}
	}
	return out
}

// otherPerWMMA is the issue slots of vector instructions other than matrix products, for each matrix product, in the
// steady blocks of a loop; 0 when it has none.
func (f *function) otherPerWMMA(body []int) float64 {
	var insts []inst
	count := 0
	for _, b := range f.steady(body) {
		for _, in := range f.blocks[b].insts {
			if class(in.op) == classWMMA {
				count++
			}
			insts = append(insts, in)
		}
	}
	if count == 0 {
		return 0
	}
	return float64(issues(insts, func(inst) bool { return true })) / float64(count)
}
