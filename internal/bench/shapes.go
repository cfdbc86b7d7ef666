package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/vram"
)

// Shape is the shape of one attention call.
type Shape struct{ D, KVHeads, GQA, NK, NQ int }

func (s Shape) String() string {
	return fmt.Sprintf("nk=%d nq=%d d=%d gqa=%d", s.NK, s.NQ, s.D, s.GQA)
}

// bytes is what K and V of the visible cells take.
func (s Shape) bytes(p vram.Pair) (float64, error) {
	k, v, err := vram.Uniform(1, s.KVHeads, s.D).Bytes(p, vram.Use{Ctx: s.NK})
	return float64(k + v), err
}

// flops counts a multiplication and an addition as two, of QK and PV.
func (s Shape) flops() float64 {
	return 4 * float64(s.D) * float64(s.KVHeads*s.GQA) * float64(s.NQ) * float64(s.NK)
}

// heads are the head shapes that are measured: of the canonical model, and of
// common ones with smaller heads.
var heads = []Shape{
	{D: 256, KVHeads: 4, GQA: 6},
	{D: 128, KVHeads: 8, GQA: 4}, {D: 128, KVHeads: 8, GQA: 8},
	{D: 64, KVHeads: 8, GQA: 4}, {D: 64, KVHeads: 8, GQA: 8},
}

// Sets are the names that --shapes takes.
var Sets = []string{"canonical", "heads", "all", "small"}

// Selection is what to measure.
type Selection struct {
	Shapes []Shape
	V      []string
}

// ParseShapes reads the value of --shapes: the name of a set, or
// nk=512,3328/nq=1,4/d=256/gqa=6/v=q4_0, in which what is left out is as in the
// canonical set. An empty text is the set that suits the device.
func ParseShapes(text string, cpu bool) (Selection, error) {
	sel := Selection{V: []string{"q4_0", "q8_0", "f16"}}
	nk, nq := []int{512, 3328, 16384, 131072}, []int{1, 4, 512}
	if text == "" {
		text = "canonical"
		if cpu {
			text = "small"
		}
	}
	from := heads[:1]
	switch text {
	case "canonical":
	case "heads":
		from = heads[1:]
	case "all":
		from = heads
	case "small": // for a CPU
		nk, nq = []int{512, 3328}, []int{1, 4, 32}
	default:
		var err error
		if from, err = sel.given(text, &nk, &nq); err != nil {
			return sel, err
		}
	}
	for _, h := range from {
		for _, n := range nk {
			for _, q := range nq {
				sel.Shapes = append(sel.Shapes, Shape{h.D, h.KVHeads, h.GQA, n, q})
			}
		}
	}
	return sel, nil
}

// given reads KEY=LIST/KEY=LIST and returns the head shapes.
func (sel *Selection) given(text string, nk, nq *[]int) ([]Shape, error) {
	ds, gqas, kvHeads := []int{256}, []int(nil), []int(nil)
	ints := map[string]*[]int{"nk": nk, "nq": nq, "d": &ds, "gqa": &gqas, "heads_kv": &kvHeads}
	known := []string{"nk", "nq", "d", "gqa", "heads_kv", "v"}
	bad := func(what string, args ...any) error {
		return fault.New(fault.Usage, "--shapes: "+what, args...).
			Hintf("one of %s, or for example nk=512,16384/nq=1/d=256/gqa=6/v=q4_0", strings.Join(Sets, ", "))
	}
	for _, part := range strings.Split(text, "/") {
		key, list, ok := strings.Cut(part, "=")
		if !ok {
			near := nearest.Hint(part, append(slices.Clone(Sets), known...))
			if near != "" {
				near = "; " + near + "?"
			}
			return nil, bad("%q is neither a set nor KEY=LIST%s", part, near)
		}
		values := strings.Split(list, ",")
		if key == "v" {
			for _, v := range values {
				if !slices.Contains([]string{"q4_0", "q8_0", "f16"}, v) {
					return nil, bad("v=%s: there are kernels for q4_0, q8_0 and f16", v)
				}
			}
			sel.V = values
			continue
		}
		to := ints[key]
		if to == nil {
			return nil, bad("unknown key %s; keys: %s", key, strings.Join(known, ", "))
		}
		*to = nil
		for _, v := range values {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > 1<<22 {
				return nil, bad("%s=%s is not a number above 0", key, v)
			}
			*to = append(*to, n)
		}
	}
	var out []Shape
	for _, d := range ds {
		if d%32 != 0 {
			return nil, bad("d=%d is not a multiple of 32", d)
		}
		usual := Shape{D: d, KVHeads: 8, GQA: 4}
		if i := slices.IndexFunc(heads, func(h Shape) bool { return h.D == d }); i >= 0 {
			usual = heads[i]
		}
		for _, g := range or(gqas, usual.GQA) {
			for _, h := range or(kvHeads, usual.KVHeads) {
				out = append(out, Shape{D: d, KVHeads: h, GQA: g})
			}
		}
	}
	return out, nil
}

func or(list []int, otherwise int) []int {
	if list == nil {
		return []int{otherwise}
	}
	return list
}

// baselines are the caches that packed16 K with this V is compared with: the one
// of the same bytes, the seed's, and no quantisation at all.
func baselines(v string) []vram.Pair {
	out := []vram.Pair{{K: "q8_0", V: v}}
	if v == "q4_0" {
		out = append(out, vram.Pair{K: "q8_0", V: "q8_0"})
	}
	return append(out, vram.Pair{K: "f16", V: "f16"})
}

// caches lists what has to be timed, each once, packed16 next to the cache of
// the same bytes.
func (sel Selection) caches() []vram.Pair {
	var out []vram.Pair
	add := func(p vram.Pair) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, v := range sel.V {
		add(vram.Pair{K: "packed16", V: v})
		add(vram.Pair{K: "q8_0", V: v})
	}
	for _, v := range sel.V {
		for _, b := range baselines(v) {
			add(b)
		}
	}
	return out
}
