package isa

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inst is one instruction; a dual-issue pair is two, both marked dual.
type inst struct {
	op   string
	args []string // operands, the destination first where there is one
	dual bool
	line int
}

// block is a run of instructions entered only at its start.
type block struct {
	label string
	insts []inst
	succ  []int
	pred  []int
}

// function is the assembly of one kernel.
type function struct {
	symbol    string
	blocks    []block
	occupancy int // waves per SIMD, as the compiler reports it; 0 when it does not
}

var (
	labelLine     = regexp.MustCompile(`^([A-Za-z_.$][\w.$]*):`)
	occupancyLine = regexp.MustCompile(`^; Occupancy: (\d+)`)
)

// parseAsm returns the kernels of an assembly text, in its order. isKernel says which symbols are kernels.
func parseAsm(asm []byte, isKernel func(symbol string) bool) ([]function, error) {
	var out []function
	var cur *function
	after := false // in the compiler's report after the code
	for n, line := range strings.Split(string(asm), "\n") {
		if m := labelLine.FindStringSubmatch(line); m != nil {
			switch label := m[1]; {
			case isKernel(label):
				out = append(out, function{symbol: label, blocks: []block{{}}})
				cur, after = &out[len(out)-1], false
			case strings.HasPrefix(label, ".Lfunc_end"):
				after = true
			case cur != nil && !after && strings.HasPrefix(label, ".L"):
				cur.blocks = append(cur.blocks, block{label: label})
			case !strings.HasPrefix(label, ".L"):
				cur = nil
			}
			continue
		}
		if cur == nil {
			continue
		}
		if after {
			if m := occupancyLine.FindStringSubmatch(line); m != nil {
				cur.occupancy, _ = strconv.Atoi(m[1])
			}
			continue
		}
		text, _, _ := strings.Cut(line, ";")
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, ".") {
			continue
		}
		b := &cur.blocks[len(cur.blocks)-1]
		halves := strings.Split(text, "::")
		for _, half := range halves {
			b.insts = append(b.insts, parseInst(half, len(halves) > 1, n+1))
		}
		if endsBlock(b.insts[len(b.insts)-1].op) {
			cur.blocks = append(cur.blocks, block{})
		}
	}
	for i := range out {
		if err := out[i].connect(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseInst(text string, dual bool, line int) inst {
	op, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	in := inst{op: op, dual: dual, line: line}
	depth, start := 0, 0
	for i, c := range rest {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				in.args = append(in.args, strings.TrimSpace(rest[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(rest[start:]); last != "" {
		in.args = append(in.args, last)
	}
	return in
}

func endsBlock(op string) bool {
	return op == "s_branch" || strings.HasPrefix(op, "s_cbranch") || op == "s_endpgm" || op == "s_setpc_b64"
}

// connect fills in the edges between blocks and drops empty blocks' influence by falling through them.
func (f *function) connect() error {
	at := map[string]int{}
	for i, b := range f.blocks {
		if b.label != "" {
			at[b.label] = i
		}
	}
	for i := range f.blocks {
		b := &f.blocks[i]
		falls := true
		if len(b.insts) > 0 {
			last := b.insts[len(b.insts)-1]
			if last.op == "s_branch" || strings.HasPrefix(last.op, "s_cbranch") {
				to, ok := at[last.args[0]]
				if !ok {
					return fmt.Errorf("%s: line %d: branch to unknown label %s", f.symbol, last.line, last.args[0])
				}
				b.succ = append(b.succ, to)
			}
			falls = last.op != "s_branch" && last.op != "s_endpgm" && last.op != "s_setpc_b64"
		}
		if falls && i+1 < len(f.blocks) {
			b.succ = append(b.succ, i+1)
		}
	}
	for i, b := range f.blocks {
		for _, s := range b.succ {
			f.blocks[s].pred = append(f.blocks[s].pred, i)
		}
	}
	return nil
}

// loops returns the natural loops, each the sorted indices of its blocks; loops with one header are one loop.
func (f *function) loops() [][]int {
	n := len(f.blocks)
	// dominators by iteration over bit sets; functions have a few hundred blocks at most
	dom := make([][]bool, n)
	for i := range dom {
		dom[i] = make([]bool, n)
		for j := range dom[i] {
			dom[i][j] = i != 0 || j == 0
		}
	}
	for changed := true; changed; {
		changed = false
		for i := 1; i < n; i++ {
			for j := range n {
				if !dom[i][j] || j == i {
					continue
				}
				for _, p := range f.blocks[i].pred {
					if !dom[p][j] {
						dom[i][j], changed = false, true
						break
					}
				}
			}
		}
	}
	bodies := map[int]map[int]bool{}
	for u := range f.blocks {
		for _, head := range f.blocks[u].succ {
			if !dom[u][head] || len(f.blocks[u].pred) == 0 && u != 0 {
				continue
			}
			body := bodies[head]
			if body == nil {
				body = map[int]bool{head: true}
				bodies[head] = body
			}
			for work := []int{u}; len(work) > 0; {
				b := work[len(work)-1]
				work = work[:len(work)-1]
				if !body[b] {
					body[b] = true
					work = append(work, f.blocks[b].pred...)
				}
			}
		}
	}
	var out [][]int
	for _, body := range bodies {
		var list []int
		for b := range body {
			list = append(list, b)
		}
		slices.Sort(list)
		out = append(out, list)
	}
	slices.SortFunc(out, func(a, b []int) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return a[0] - b[0]
	})
	return out
}

// hotLoop returns the blocks of the innermost loop with the most dot4 or matrix products, or every block when no loop has any.
func (f *function) hotLoop() []int {
	inner := map[int]int{} // block -> index of its smallest loop
	loops := f.loops()
	for i, body := range loops { // smallest first
		for _, b := range body {
			if _, seen := inner[b]; !seen {
				inner[b] = i
			}
		}
	}
	count := map[int]int{}
	best := -1
	for b := range f.blocks {
		loop, ok := inner[b]
		if !ok {
			continue
		}
		for _, in := range f.blocks[b].insts {
			if isDot4(in.op) || class(in.op) == classWMMA {
				count[loop]++
			}
		}
		if count[loop] > 0 && (best < 0 || count[loop] > count[best] || count[loop] == count[best] && loop < best) {
			best = loop
		}
	}
	if best >= 0 {
		return loops[best]
	}
	all := make([]int, len(f.blocks))
	for i := range all {
		all[i] = i
	}
	return all
}

// forward returns the given blocks, a loop or all there are, in an order in which each comes after those that lead to it; edges
// back to the start of a loop do not count. In the file a block may stand before one that it always runs after.
func (f *function) forward(blocks []int) []int {
	in, seen := map[int]bool{}, map[int]bool{}
	for _, b := range blocks {
		in[b] = true
	}
	var out []int
	var walk func(b int)
	walk = func(b int) {
		seen[b] = true
		for _, next := range f.blocks[b].succ {
			if in[next] && !seen[next] {
				walk(next)
			}
		}
		out = append(out, b)
	}
	for _, b := range blocks {
		entered := b == 0 || slices.ContainsFunc(f.blocks[b].pred, func(p int) bool { return !in[p] })
		if entered && !seen[b] {
			walk(b)
		}
	}
	slices.Reverse(out)
	return out
}
