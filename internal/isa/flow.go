package isa

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// registers expands an operand: "v[6:9]" is v6 v7 v8 v9, "-v3" is v3, constants are nothing.
func registers(operand string) []string {
	operand = strings.Trim(operand, "-|")
	operand = strings.TrimPrefix(operand, "abs(")
	if operand == "" || operand[0] != 'v' && operand[0] != 's' {
		return nil
	}
	kind, rest := operand[:1], operand[1:]
	rest = strings.TrimSuffix(strings.TrimSuffix(rest, ".l"), ".h")
	rest = strings.Trim(rest, "|)")
	if strings.HasPrefix(rest, "[") {
		lo, hi, ok := strings.Cut(strings.Trim(rest, "[]"), ":")
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if !ok || err1 != nil || err2 != nil || b < a || b-a > 63 {
			return nil
		}
		var out []string
		for i := a; i <= b; i++ {
			out = append(out, kind+strconv.Itoa(i))
		}
		return out
	}
	if _, err := strconv.Atoi(rest); err != nil {
		return nil
	}
	return []string{kind + rest}
}

// writes returns the registers an instruction defines.
func (in inst) writes() []string {
	op := in.op
	switch {
	case len(in.args) == 0,
		strings.Contains(op, "_store_"), strings.HasPrefix(op, "v_cmpx"), strings.HasPrefix(op, "s_cmp"), strings.HasPrefix(op, "s_bitcmp"),
		strings.HasPrefix(op, "s_wait"), strings.HasPrefix(op, "s_delay"), strings.HasPrefix(op, "s_cbranch"), strings.HasPrefix(op, "s_branch"):
		return nil
	}
	return registers(firstWord(in.args[0]))
}

// reads returns the source operands that are registers, modifiers cut off.
func (in inst) reads() []string {
	var out []string
	for i, a := range in.args {
		if i == 0 && len(in.writes()) > 0 && !strings.Contains(in.op, "fmac") {
			continue
		}
		out = append(out, registers(firstWord(a))...)
	}
	return out
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// origin is where the value in a register comes from.
type origin struct {
	in  inst
	sub int // which register of the instruction's result
}

// origins follows a register backwards from before instruction `at` of block b, over every path and through
// register copies, to the instructions that produced its value.
func (f *function) origins(b, at int, reg string) []origin {
	type point struct {
		block int
		reg   string
	}
	seen := map[point]bool{}
	var out []origin
	var walk func(b, at int, reg string)
	walk = func(b, at int, reg string) {
		for i := at - 1; i >= 0; i-- {
			in := f.blocks[b].insts[i]
			sub := slices.Index(in.writes(), reg)
			if sub < 0 {
				continue
			}
			if isCopy(in.op) {
				if src := registers(firstWord(in.args[1])); sub < len(src) {
					walk(b, i, src[sub])
					return
				}
			}
			o := origin{in, sub}
			if !slices.ContainsFunc(out, func(p origin) bool { return p.in.line == o.in.line && p.in.op == o.in.op && p.sub == o.sub }) {
				out = append(out, o)
			}
			return
		}
		for _, p := range f.blocks[b].pred {
			if key := (point{p, reg}); !seen[key] {
				seen[key] = true
				walk(p, len(f.blocks[p].insts), reg)
			}
		}
	}
	walk(b, at, reg)
	return out
}

func isCopy(op string) bool {
	switch strings.TrimSuffix(strings.TrimSuffix(op, "_e32"), "_e64") {
	case "v_mov_b32", "v_dual_mov_b32", "s_mov_b32", "s_mov_b64", "v_readfirstlane_b32":
		return true
	}
	return false
}

// dot4Use is what the dot4 instructions of a loop compute.
type dot4Use struct {
	count int
	// pairs is the number of (query, key) logits they add up to: dot4 results are followed through
	// the accumulation in integers, the conversion and the multiply-adds with scales, and those that
	// meet in one sum are one pair.
	pairs int
	// words is the number of distinct (K word, Q word) operand pairs; fewer than count means that
	// products are computed more than once.
	words int
	// feeds counts the loads whose results are operands: "global_b128", "scalar_b512", "lds_b128".
	feeds map[string]int
	// wmmaInt and wmmaFloat are the matrix products on bytes and on halves. The sums of the former are followed as
	// those of dot4 are, so that pairs are the logits of one lane.
	wmmaInt, wmmaFloat int
}

// dot4s analyses the dot4 instructions in the given blocks, which are a loop or all there are.
func (f *function) dot4s(blocks []int) dot4Use {
	use := dot4Use{feeds: map[string]int{}}
	parent := []int{} // union-find over sums
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	after := map[int]map[string]int{} // block -> register -> the sum it holds a part of when the block ends
	words := map[string]bool{}
	loads := map[string]bool{}
	type write struct {
		reg string
		sum int // -1: none
	}
	var pending []write // the halves of a dual-issue pair read before either writes
	for _, b := range f.forward(blocks) {
		sum := map[string]int{}
		for _, p := range f.blocks[b].pred {
			for reg, g := range after[p] {
				if _, ok := sum[reg]; !ok {
					sum[reg] = g
				}
			}
		}
		after[b] = sum
		for i, in := range f.blocks[b].insts {
			joined, written := -1, false
			join := func(reg string) {
				g, ok := sum[reg]
				switch {
				case !ok:
				case joined < 0:
					joined = find(g)
				default:
					parent[find(g)] = joined
				}
			}
			switch {
			case isDot4(in.op) && len(in.args) >= 4:
				use.count++
				var key []string
				for _, operand := range in.args[1:3] {
					var from []string
					for _, reg := range registers(firstWord(operand)) {
						for _, o := range f.origins(b, i, reg) {
							from = append(from, fmt.Sprintf("%d.%d", o.in.line, o.sub))
							if space, bits, ok := loadWidth(o.in.op); ok && !loads[strconv.Itoa(o.in.line)] {
								loads[strconv.Itoa(o.in.line)] = true
								use.feeds[fmt.Sprintf("%s_b%d", space, bits)]++
							}
						}
					}
					sort.Strings(from)
					key = append(key, strings.Join(from, "+"))
				}
				sort.Strings(key)
				words[strings.Join(key, " * ")] = true
				for _, reg := range registers(firstWord(in.args[3])) {
					join(reg)
				}
				if joined < 0 {
					joined = len(parent)
					parent = append(parent, joined)
				}
			case strings.HasPrefix(in.op, "v_wmma_i32") && len(in.args) >= 4:
				use.wmmaInt++
				from := registers(firstWord(in.args[3]))
				for r, reg := range registers(firstWord(in.args[0])) {
					g := len(parent)
					if r < len(from) {
						if old, ok := sum[from[r]]; ok {
							g = find(old)
						}
					}
					if g == len(parent) {
						parent = append(parent, g)
					}
					pending = append(pending, write{reg, g})
				}
				written = true
			case strings.HasPrefix(in.op, "v_wmma_f32"):
				use.wmmaFloat++
			case sums(in.op):
				for _, reg := range in.reads() {
					join(reg)
				}
			}
			if !written {
				for _, reg := range in.writes() {
					pending = append(pending, write{reg, joined})
				}
			}
			if next := i + 1; in.dual && next < len(f.blocks[b].insts) && f.blocks[b].insts[next].line == in.line {
				continue
			}
			for _, w := range pending {
				if w.sum >= 0 {
					sum[w.reg] = w.sum
				} else {
					delete(sum, w.reg)
				}
			}
			pending = pending[:0]
		}
	}
	roots := map[int]bool{}
	for i := range parent {
		roots[find(i)] = true
	}
	use.pairs, use.words = len(roots), len(words)
	return use
}

// staged counts the stores to shared memory whose value is what one load from global memory gave, unchanged, by
// the load's width: "global_b128". A store that is wider or narrower than the load is counted as "other".
func (f *function) staged() map[string]int {
	out := map[string]int{}
	for b := range f.blocks {
		for i, in := range f.blocks[b].insts {
			if !strings.HasPrefix(in.op, "ds_store_b") || len(in.args) < 2 {
				continue
			}
			data := registers(firstWord(in.args[1]))
			from := map[string]bool{}
			for sub, reg := range data {
				for _, o := range f.origins(b, i, reg) {
					space, bits, ok := loadWidth(o.in.op)
					switch {
					case !ok || space != "global":
						from[""] = true
					case bits != 32*len(data) || o.sub != sub:
						from["other"] = true
					default:
						from[fmt.Sprintf("global_b%d", bits)] = true
					}
				}
			}
			if len(from) == 1 && !from[""] {
				for key := range from {
					out[key]++
				}
			}
		}
	}
	return out
}

// sums says whether an instruction carries a partial logit on: conversion, scaling, adding, copying.
func sums(op string) bool {
	if isCopy(op) {
		return true
	}
	for _, p := range []string{"v_cvt_f32_i32", "v_fma", "v_dual_fma", "v_mul_f32", "v_dual_mul_f32", "v_add_f32", "v_dual_add_f32",
		"v_sub_f32", "v_subrev_f32", "v_dual_sub", "v_add_nc_u32", "v_sub_nc_u32", "v_add3_u32", "v_dual_add_nc_u32"} {
		if strings.HasPrefix(op, p) {
			return true
		}
	}
	return false
}
