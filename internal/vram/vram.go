package vram

import (
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/nearest"
	"dot4fa/internal/routes"
)

// size is what a cache type takes: bytes for a block of so many elements.
type size struct{ elements, bytes int }

// types are the cache types that llama.cpp takes, and packed16 (K only): 32
// payload bytes and one f16 scale for 32 values.
var types = map[string]size{
	"f32": {1, 4}, "f16": {1, 2}, "bf16": {1, 2}, "q8_0": {32, 34}, "q4_0": {32, 18}, "q4_1": {32, 20},
	"q5_0": {32, 22}, "q5_1": {32, 24}, "iq4_nl": {32, 18}, "packed16": {32, 34},
}

// Pair is a K type and a V type.
type Pair struct{ K, V string }

// Packed reports whether K is packed16.
func (p Pair) Packed() bool { return p.K == "packed16" }

// ParsePair reads "K/V", as packed16/q4_0.
func ParsePair(text string) (Pair, error) {
	k, v, ok := strings.Cut(text, "/")
	p := Pair{k, v}
	var known []string
	for name := range types {
		known = append(known, name)
	}
	slices.Sort(known)
	if !ok {
		return p, fault.New(fault.Usage, "%q is not a pair of cache types", text).
			Hintf("write K/V, as packed16/q4_0; types: %s", strings.Join(known, " "))
	}
	for _, name := range []string{k, v} {
		if _, ok := types[name]; !ok {
			hint := nearest.Hint(name, known)
			if hint != "" {
				hint += "? "
			}
			return p, fault.New(fault.Usage, "%q is not a cache type", name).Hintf("%stypes: %s", hint, strings.Join(known, " "))
		}
	}
	if v == "packed16" {
		return p, fault.New(fault.Usage, "packed16 is a K type, not a V type").Hintf("write packed16/q4_0")
	}
	if why := p.unread(); why != "" {
		return p, fault.New(fault.Usage, "%s", why).At("%s", p).Hintf("write packed16/%s", strings.Join(valueV, ", packed16/"))
	}
	return p, nil
}

// unread says why no kernel reads the pair; it is empty when one does.
func (p Pair) unread() string {
	if p.Packed() && !slices.Contains(valueV, p.V) {
		return "packed16 goes with a V of type " + strings.Join(valueV, ", ")
	}
	return ""
}

func (p Pair) String() string { return p.K + "/" + p.V }

// Use is how the cache is used.
type Use struct {
	Ctx      int  `json:"-"`        // cells over all slots (llama.cpp's -c)
	Parallel int  `json:"parallel"` // slots (-np); 0 counts as 1
	Unified  bool `json:"unified"`  // one pool of cells for all slots (-kvu)
	SWAFull  bool `json:"swa_full"` // sliding-window layers keep the whole context (--swa-full)
	UBatch   int  `json:"ubatch"`   // physical batch (-ub); 0 counts as 512
}

// most is more bytes than K or V of one layer take anywhere: 64 TiB. The sum
// over the layers of a model, 4096 of them at most, stays within an int64.
const most = 1 << 46

func pad256(n int) int { return (n + 255) / 256 * 256 }

// Cells returns the cells of one full-attention layer and of one
// sliding-window layer, over all streams, with llama.cpp's padding to 256.
func (s Shape) Cells(u Use) (full, window int) {
	slots := max(u.Parallel, 1)
	ubatch := u.UBatch
	if ubatch <= 0 {
		ubatch = 512
	}
	// The batch is cut to the context as it was asked for, before the padding.
	ubatch = min(ubatch, u.Ctx)
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

// Bytes returns the bytes of K and of V for a type pair, as llama.cpp allocates
// them. It is an error when a head is not a whole number of blocks of a type.
func (s Shape) Bytes(p Pair, u Use) (k, v int64, err error) {
	return s.bytes(s.Layers, p, u)
}

// DraftBytes is Bytes for the layers of the MTP head in the same file.
func (s Shape) DraftBytes(p Pair, u Use) (k, v int64, err error) {
	return s.bytes(s.Draft, p, u)
}

func (s Shape) bytes(layers []Layer, p Pair, u Use) (k, v int64, err error) {
	full, window := s.Cells(u)
	for _, l := range layers {
		cells := full
		if l.Window {
			cells = window
		}
		for _, side := range []struct {
			kind string
			head int
			sum  *int64
		}{{p.K, l.DK, &k}, {p.V, l.DV, &v}} {
			t := types[side.kind]
			if side.head%t.elements != 0 {
				return 0, 0, fault.New(fault.Failure, "a head of %d values is not whole blocks of %d, as %s has them", side.head, t.elements, side.kind).
					Hintf("only f16, bf16 and f32 fit such a model")
			}
			if float64(cells)*float64(l.KVHeads)*float64(side.head)*4 > most {
				return 0, 0, fault.New(fault.Usage, "a layer of %d cells with %d KV heads of %d takes more memory than there is", cells, l.KVHeads, side.head).
					Hintf("no model has such a cache; check the numbers")
			}
			*side.sum += int64(cells) * int64(l.KVHeads*side.head/t.elements*t.bytes)
		}
	}
	return k, v, nil
}

// StateBytes returns the memory of the recurrent layers.
func (s Shape) StateBytes(u Use) int64 {
	return int64(s.State.Layers) * s.State.Values * 4 * int64(max(u.Parallel, 1))
}

// Packable says why packed16 cannot hold this model's K, or "" when it can. The
// rules are those of package routes.
func (s Shape) Packable() string {
	switch {
	case s.MLA:
		return "the model keeps one latent vector a cell (MLA) in place of K and V"
	case s.Special != "":
		return s.Special
	case s.GQA > routes.MaxGQA:
		return fmt.Sprintf("%d query heads share a KV head, and %d is the most", s.GQA, routes.MaxGQA)
	}
	for _, l := range s.Layers {
		switch {
		case l.KVHeads == 0:
		case l.DK != l.DV:
			return fmt.Sprintf("K and V have different head sizes, %d and %d", l.DK, l.DV)
		case !slices.Contains(headSizes, l.DK):
			return fmt.Sprintf("the head size is %d, not 64, 128 or 256", l.DK)
		}
	}
	return ""
}

var (
	headSizes = []int{64, 128, 256}
	valueV    = []string{"f16", "q8_0", "q4_0"} // V types that packed16's kernels read
)

// LargestCtx returns the largest context, a multiple of 256 up to limit, of
// which bytes says that it fits into budget; 0 when none does.
func LargestCtx(budget int64, limit int, bytes func(ctx int) (int64, error)) (int, error) {
	lo, hi := 0, limit/256
	for lo < hi {
		mid := (lo + hi + 1) / 2
		n, err := bytes(mid * 256)
		if err != nil {
			return 0, err
		}
		if n <= budget {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo * 256, nil
}
