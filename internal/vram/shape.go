// Package vram computes the memory of a KV cache from a model's shape, as
// llama.cpp allocates it.
package vram

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
)

// Layer is one layer that keeps K and V rows. Recurrent layers, and layers that
// reuse the cache of an earlier layer, have none and are not listed.
type Layer struct {
	KVHeads int  `json:"kv_heads"`
	DK      int  `json:"dk"`               // head size of K
	DV      int  `json:"dv"`               // head size of V; 0 for MLA, which keeps no V
	Window  bool `json:"window,omitempty"` // kept in the sliding-window cache
}

// State is the memory of recurrent layers. It depends on the number of
// sequences, and on no cache type and no context.
type State struct {
	Layers int   `json:"layers"`
	Values int64 `json:"values"` // f32 values of one layer and sequence
}

// Shape is what decides the size of a model's KV cache.
type Shape struct {
	Arch     string
	Blocks   int // all layers of the model, whether they keep anything or not
	CtxTrain int
	Layers   []Layer
	Draft    []Layer // of the MTP head in the same file, which has a cache of its own
	State    State
	Window   int      // sliding window in cells; 0 without one
	MLA      bool     // one latent vector a cell in place of K and V
	Special  string   // what the attention has that packed16's kernels do not; "" for nothing
	GQA      int      // the most query heads of a KV head; 0 when not known
	Notes    []string // what was assumed, or left out
}

// Uniform is the shape of n equal layers of full attention.
func Uniform(n, kvHeads, headSize int) Shape {
	layer := Layer{KVHeads: kvHeads, DK: headSize, DV: headSize}
	return Shape{Arch: "given by numbers", Blocks: n, Layers: slices.Repeat([]Layer{layer}, n)}
}

// header answers for the keys of one architecture.
type header struct {
	*gguf.Header
	arch string
	n    int // layers
	mtp  int // of these, those of the MTP head, at the end
}

func (h header) key(name string) string { return h.arch + "." + name }

func (h header) int(name string) int64 {
	v, _ := h.Int(h.key(name))
	return v
}

func (h header) has(name string) bool {
	_, ok := h.Meta[h.key(name)]
	return ok
}

// FromGGUF reads a model's shape from its header. A layout that is not known here
// is an error: a guess would look like an answer.
func FromGGUF(g *gguf.Header) (Shape, error) {
	s, err := fromGGUF(g)
	if err != nil {
		return Shape{}, fault.New(fault.Failure, "%w", err).Hintf("give the numbers instead: --layers --kv-heads --head-size")
	}
	return s, nil
}

func fromGGUF(g *gguf.Header) (Shape, error) {
	arch, ok := g.String("general.architecture")
	if !ok {
		return Shape{}, errors.New("the header names no architecture")
	}
	h := header{Header: g, arch: arch}
	if err := h.known(); err != nil {
		return Shape{}, err
	}
	n := h.int("block_count")
	if n <= 0 || n > 1024 {
		return Shape{}, fmt.Errorf("the header of this %s model has no usable block_count", arch)
	}
	h.n = int(n)
	if slices.Contains(readsMTP, arch) {
		h.mtp = int(h.int("nextn_predict_layers"))
	}
	if h.mtp < 0 || h.mtp >= h.n {
		return Shape{}, fmt.Errorf("nextn_predict_layers is %d of %d layers", h.mtp, h.n)
	}
	s := Shape{Arch: arch, Blocks: h.n, CtxTrain: int(h.int("context_length")), Special: h.special()}
	layer, err := h.heads(&s)
	if err != nil {
		return Shape{}, err
	}
	window, err := h.window(&s, layer)
	if err != nil {
		return Shape{}, err
	}
	attends, recurrent, err := h.attention(layer)
	if err != nil {
		return Shape{}, err
	}
	if err := h.state(&s, recurrent); err != nil {
		return Shape{}, err
	}
	err = h.fill(&s, layer, window, attends)
	return s, err
}

// known refuses architectures whose cache cannot be computed here.
func (h header) known() error {
	if why := without(h.arch); why != "" {
		return fmt.Errorf("%s keeps no K and V: %s", h.arch, why)
	}
	if slices.Contains(unknownLayout, h.arch) {
		return fmt.Errorf("%s has a cache layout of its own, which is not known here", h.arch)
	}
	_, windowed := windowRules[h.arch]
	_, hybrid := hybridRules[h.arch]
	if windowed || hybrid || slices.Contains(latent, h.arch) {
		return nil
	}
	for _, stranger := range strangerKeys {
		for key := range h.Meta {
			if strings.HasPrefix(key, h.key(stranger)) {
				return fmt.Errorf("%s is not known here, and its header has %s, which plain attention has not", h.arch, key)
			}
		}
	}
	return nil
}

// heads gives each layer its heads and head sizes, with no word on windows.
func (h header) heads(s *Shape) ([]Layer, error) {
	trunk := h.n // upstream reads the arrays before it knows of an MTP head
	heads, ok := h.IntsPerLayer(h.key("attention.head_count"), trunk)
	if !ok || heads[0] <= 0 {
		return nil, fmt.Errorf("the header of this %s model has no usable attention.head_count", h.arch)
	}
	kv, ok := h.IntsPerLayer(h.key("attention.head_count_kv"), trunk)
	if !ok {
		if h.has("attention.head_count_kv") {
			return nil, fmt.Errorf("attention.head_count_kv of this %s model does not have one value a layer", h.arch)
		}
		kv = heads
	}
	size := func(name string) int64 {
		if h.has("attention." + name) {
			return h.int("attention." + name)
		}
		return h.int("embedding_length") / heads[0]
	}
	dk, dv := size("key_length"), size("value_length")
	if dk <= 0 || dv <= 0 || dk > 1<<13 || dv > 1<<13 {
		return nil, fmt.Errorf("the head sizes of this %s model cannot be read: %d and %d", h.arch, dk, dv)
	}
	if slices.Contains(latent, h.arch) && h.int("attention.key_length_mla") > 0 && h.int("attention.value_length_mla") > 0 {
		s.MLA, dv = true, 0
	}
	layers := make([]Layer, h.n)
	for i := range layers {
		if kv[i] < 0 || kv[i] > 1<<12 {
			return nil, fmt.Errorf("layer %d of this %s model has %d KV heads", i, h.arch, kv[i])
		}
		layers[i] = Layer{KVHeads: int(kv[i]), DK: int(dk), DV: int(dv)}
		if kv[i] > 0 {
			s.GQA = max(s.GQA, int(heads[i]/kv[i]))
		}
	}
	return layers, nil
}

// fill lists the layers that own K and V.
func (h header) fill(s *Shape, layers []Layer, window, attends []bool) error {
	owned := h.n
	switch {
	case h.arch == "gemma3n":
		owned = 20
	case h.arch == "gemma4":
		owned = h.n - int(h.int("attention.shared_kv_layers"))
	}
	if owned < 1 {
		return fmt.Errorf("%d layers of %d share the cache of others", h.n-owned, h.n)
	}
	if owned < h.n {
		s.Notes = append(s.Notes, fmt.Sprintf("the last %d layers reuse the cache of earlier ones", h.n-owned))
	}
	trunk := h.n
	if hybridRules[h.arch].trunk || slices.Contains(trunkOnly, h.arch) {
		trunk -= h.mtp
	}
	for i, l := range layers[:min(h.n, owned)] {
		if l.Window = window[i]; l.Window {
			if h.has("attention.key_length_swa") {
				l.DK = int(h.int("attention.key_length_swa"))
			}
			if h.has("attention.value_length_swa") && !s.MLA {
				l.DV = int(h.int("attention.value_length_swa"))
			}
		}
		if i >= h.n-h.mtp {
			s.Draft = append(s.Draft, l)
		}
		if attends[i] && i < trunk {
			s.Layers = append(s.Layers, l)
		}
	}
	if h.mtp > 0 && trunk == h.n {
		s.Notes = append(s.Notes, fmt.Sprintf("the cache has room for the %d layers of the MTP head too, as llama.cpp allocates it", h.mtp))
	}
	return nil
}

// at says in which file an error is.
func at(err error, file string) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Where == "" {
		return e.At("%s", file)
	}
	return err
}
