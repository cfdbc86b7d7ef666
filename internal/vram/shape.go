// Package vram computes the memory of a KV cache from a model's shape, as
// llama.cpp allocates it.
package vram

import (
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
)

// Layer is one layer that keeps K and V rows. Recurrent layers, and layers
// that reuse the cache of an earlier layer, have none and are not listed.
type Layer struct {
	KVHeads int  // KV heads
	DK, DV  int  // head size of K and V
	Window  bool // kept in the sliding-window cache
}

// Shape is what decides the size of a model's KV cache.
type Shape struct {
	Arch     string
	CtxTrain int
	Layers   []Layer
	Window   int      // sliding window in cells; 0 without one
	Notes    []string // what was assumed
}

// Uniform is the shape of n equal layers of full attention.
func Uniform(n, kvHeads, headSize int) Shape {
	layer := Layer{KVHeads: kvHeads, DK: headSize, DV: headSize}
	return Shape{Arch: "given by numbers", Layers: slices.Repeat([]Layer{layer}, n)}
}

// windowPeriod is the default of attention.sliding_window_pattern: every n-th
// layer attends to everything. Facts of the architectures, as the converters
// of these models leave the key out.
var windowPeriod = map[string]int64{
	"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "olmo2": 4, "exaone4": 4,
}

// noWindow lists architectures that may carry a sliding-window key but attend
// to everything.
var noWindow = []string{"llama", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "phi3", "mistral3"}

// recurrentInterval lists hybrids whose attention layers are every n-th unless
// full_attention_interval or recurrent_layers says otherwise.
var recurrentInterval = map[string]int64{"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}

// FromGGUF reads a model's shape from its header. A model whose cache is not a
// plain K/V cache (MLA) or whose window layout is not known is refused.
func FromGGUF(h *gguf.Header) (Shape, error) {
	unknown := func(format string, args ...any) (Shape, error) {
		return Shape{}, fault.New(fault.Failure, format, args...).
			Hintf("give the numbers instead: --layers --kv-heads --head-size")
	}
	arch, ok := h.String("general.architecture")
	if !ok {
		return unknown("the header names no architecture")
	}
	key := func(name string) string { return arch + "." + name }
	if _, mla := h.Int(key("attention.kv_lora_rank")); mla {
		return unknown("%s keeps one latent vector a cell (MLA), not K and V: packed16 does not apply", arch)
	}
	blocks, ok := h.Int(key("block_count"))
	if !ok || blocks <= 0 || blocks > 4096 {
		return unknown("the header of this %s model has no usable block_count", arch)
	}
	n := int(blocks)
	heads, ok := h.IntsPerLayer(key("attention.head_count"), n)
	if !ok {
		return unknown("the header of this %s model has no usable attention.head_count", arch)
	}
	kvHeads, ok := h.IntsPerLayer(key("attention.head_count_kv"), n)
	if !ok {
		kvHeads = heads
	}
	s := Shape{Arch: arch}
	if c, ok := h.Int(key("context_length")); ok {
		s.CtxTrain = int(c)
	}
	size := func(name string) (int, error) {
		if v, ok := h.Int(key("attention." + name)); ok {
			return int(v), nil
		}
		embd, ok := h.Int(key("embedding_length"))
		i := slices.IndexFunc(heads, func(v int64) bool { return v > 0 })
		if !ok || i < 0 || embd%heads[i] != 0 {
			return 0, fmt.Errorf("attention.%s is absent and cannot be derived", name)
		}
		return int(embd / heads[i]), nil
	}
	dk, err := size("key_length")
	if err != nil {
		return unknown("%w", err)
	}
	dv, err := size("value_length")
	if err != nil {
		return unknown("%w", err)
	}
	window, err := s.windowed(h, key, n)
	if err != nil {
		return unknown("%w", err)
	}
	attends, err := attention(h, key, arch, kvHeads)
	if err != nil {
		return unknown("%w", err)
	}
	owned := n
	if shared, ok := h.Int(key("attention.shared_kv_layers")); ok {
		owned = n - int(shared)
		s.Notes = append(s.Notes, fmt.Sprintf("the last %d layers reuse the cache of earlier ones", shared))
	} else if arch == "gemma3n" {
		owned = 20
	}
	for i := range min(n, owned) {
		if !attends[i] {
			continue
		}
		l := Layer{KVHeads: int(kvHeads[i]), DK: dk, DV: dv, Window: window[i]}
		if l.Window {
			if v, ok := h.Int(key("attention.key_length_swa")); ok {
				l.DK = int(v)
			}
			if v, ok := h.Int(key("attention.value_length_swa")); ok {
				l.DV = int(v)
			}
		}
		s.Layers = append(s.Layers, l)
	}
	if skipped := n - len(s.Layers); skipped > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d layers keep no K and V", skipped, n))
	}
	return s, nil
}

// windowed says for each layer whether it lives in the sliding-window cache.
func (s *Shape) windowed(h *gguf.Header, key func(string) string, n int) ([]bool, error) {
	out := make([]bool, n)
	w, ok := h.Int(key("attention.sliding_window"))
	if !ok || w == 0 || slices.Contains(noWindow, s.Arch) {
		return out, nil
	}
	s.Window = int(w)
	pattern := key("attention.sliding_window_pattern")
	if _, isArray := h.Meta[pattern].([]any); isArray {
		flags, ok := h.IntsPerLayer(pattern, n)
		if !ok {
			return nil, fmt.Errorf("%s does not have one value a layer", pattern)
		}
		for i, f := range flags {
			out[i] = f != 0
		}
		return out, nil
	}
	period, ok := h.Int(pattern)
	if !ok {
		if period, ok = windowPeriod[s.Arch]; !ok {
			return nil, fmt.Errorf("%s has a sliding window of %d cells, on layers that are not known here", s.Arch, w)
		}
	}
	for i := range out {
		out[i] = period == 0 || int64(i)%period < period-1
	}
	return out, nil
}

// attention says for each layer whether it is an attention layer.
func attention(h *gguf.Header, key func(string) string, arch string, kvHeads []int64) ([]bool, error) {
	n := len(kvHeads)
	out := make([]bool, n)
	recurrent, given := h.IntsPerLayer(key("attention.recurrent_layers"), n)
	interval, hybrid := recurrentInterval[arch]
	if v, ok := h.Int(key("full_attention_interval")); ok {
		interval, hybrid = v, true
	}
	if hybrid && interval <= 0 {
		return nil, fmt.Errorf("full_attention_interval is %d", interval)
	}
	predicted, _ := h.Int(key("nextn_predict_layers")) // draft layers at the end, all of attention
	for i := range out {
		switch {
		case given:
			out[i] = recurrent[i] == 0
		case hybrid:
			out[i] = i >= n-int(predicted) || (int64(i)+1)%interval == 0
		default:
			out[i] = kvHeads[i] > 0
		}
	}
	for name := range h.Meta {
		if strings.HasPrefix(name, key("ssm.")) && !given && !hybrid && !slices.Contains(kvHeads, 0) {
			return nil, fmt.Errorf("%s mixes recurrent and attention layers in a way that is not known here", arch)
		}
	}
	return out, nil
}
