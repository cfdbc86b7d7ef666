package vram

import (
	"slices"
	"strings"

	"dot4fa/internal/fault"
)

// blockSize gives bytes per 32 elements of each cache type that llama.cpp
// takes, and of packed16 (K only): 32 payload bytes and one f16 scale.
var blockSize = map[string]int{
	"f32": 128, "f16": 64, "bf16": 64, "q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "iq4_nl": 18,
	"packed16": 34,
}

// Pair is a K type and a V type.
type Pair struct{ K, V string }

// ParsePair reads "K/V", as packed16/q4_0.
func ParsePair(text string) (Pair, error) {
	k, v, ok := strings.Cut(text, "/")
	p := Pair{k, v}
	known := func() string {
		var names []string
		for name := range blockSize {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	switch {
	case !ok || blockSize[k] == 0 || blockSize[v] == 0:
		return p, fault.New(fault.Usage, "%q is not a pair of cache types", text).
			Hintf("write K/V, as packed16/q4_0; types: %s", known())
	case v == "packed16":
		return p, fault.New(fault.Usage, "packed16 is a K type, not a V type").Hintf("write packed16/q4_0")
	}
	return p, nil
}

func (p Pair) String() string { return p.K + "/" + p.V }

// Use is how the cache is used.
type Use struct {
	Ctx      int  // cells over all slots (llama.cpp's -c)
	Parallel int  // slots (-np); 0 counts as 1
	Unified  bool // one pool of cells for all slots (-kvu)
	SWAFull  bool // sliding-window layers keep the whole context (--swa-full)
	UBatch   int  // physical batch (-ub); 0 counts as 512
}

func pad256(n int) int { return (n + 255) / 256 * 256 }

// Cells returns the cells of one full-attention layer and of one
// sliding-window layer, over all streams, with llama.cpp's padding to 256.
func (s Shape) Cells(u Use) (full, window int) {
	slots := max(u.Parallel, 1)
	ubatch := u.UBatch
	if ubatch <= 0 {
		ubatch = 512
	}
	streams, perStream := slots, pad256(pad256(u.Ctx)/slots)
	reach := s.Window
	if u.Unified || slots == 1 {
		streams, perStream = 1, pad256(u.Ctx)
		reach = s.Window * slots
	}
	window = perStream
	if !u.SWAFull {
		window = pad256(min(perStream, reach+ubatch))
	}
	return perStream * streams, window * streams
}

// Bytes returns the bytes of K and of V for a type pair. It is an error when a
// row is not a whole number of 32-element blocks.
func (s Shape) Bytes(p Pair, u Use) (k, v int64, err error) {
	full, window := s.Cells(u)
	for i, l := range s.Layers {
		cells := full
		if l.Window {
			cells = window
		}
		rowK, rowV := l.KVHeads*l.DK, l.KVHeads*l.DV
		if rowK%32 != 0 || rowV%32 != 0 {
			return 0, 0, fault.New(fault.Failure, "layer %d: rows of %d and %d elements are not whole blocks of 32", i, rowK, rowV).
				Hintf("only f16 and f32 fit such a model")
		}
		k += int64(cells) * int64(rowK/32*blockSize[p.K])
		v += int64(cells) * int64(rowV/32*blockSize[p.V])
	}
	return k, v, nil
}

// Packable says why packed16 cannot hold this model's K, or "" when it can.
func (s Shape) Packable() string {
	for _, l := range s.Layers {
		if l.DK != l.DV {
			return "K and V have different head sizes"
		}
		if l.DK != 64 && l.DK != 128 && l.DK != 256 {
			return "head size is not 64, 128 or 256"
		}
	}
	return ""
}

// LargestCtx returns the largest context, a multiple of 256 up to limit, whose
// cache fits budget bytes; 0 when none does.
func (s Shape) LargestCtx(p Pair, u Use, budget int64, limit int) (int, error) {
	lo, hi := 0, limit/256
	for lo < hi {
		mid := (lo + hi + 1) / 2
		u.Ctx = mid * 256
		k, v, err := s.Bytes(p, u)
		if err != nil {
			return 0, err
		}
		if k+v <= budget {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo * 256, nil
}
