package vram

import (
	"fmt"
	"slices"
)

// window says for each layer whether it lives in the sliding-window cache.
func (h header) window(s *Shape, layers []Layer) ([]bool, error) {
	out := make([]bool, h.n)
	w, given := h.int("attention.sliding_window"), h.has("attention.sliding_window")
	rule, known := windowRules[h.arch]
	if !known || rule.blocks != 0 && h.n-h.mtp != int(rule.blocks) {
		if w == 0 || known || slices.Contains(noWindow, h.arch) {
			return out, nil
		}
		return nil, fmt.Errorf("%s has a sliding window of %d cells, on layers that are not known here", h.arch, w)
	}
	switch {
	case !given:
		w = rule.absent
	case w > 0 && rule.fixed > 0:
		w = rule.fixed
	}
	if w == 0 {
		return out, nil
	}
	if w < 0 || w > 1<<30 {
		return nil, fmt.Errorf("a sliding window of %d cells", w)
	}
	s.Window = int(w)
	trunk := h.n - h.mtp
	if rule.attention {
		for i, l := range layers {
			out[i] = l.KVHeads > 0
		}
		return out, nil
	}
	const pattern = "attention.sliding_window_pattern"
	_, array := h.Meta[h.key(pattern)].([]any)
	period := rule.period
	switch {
	case rule.layered && (array || period == 0):
		flags, ok := h.IntsPerLayer(h.key(pattern), trunk)
		if !ok {
			return nil, fmt.Errorf("%s does not have one value a layer", h.key(pattern))
		}
		for i, f := range flags {
			out[i] = f != 0
		}
		return out, nil
	case !array && h.has(pattern):
		period = h.int(pattern)
	}
	if period < 0 {
		return nil, fmt.Errorf("%s is %d", h.key(pattern), period)
	}
	for i := range trunk {
		switch {
		case period == 0:
			out[i] = true
		case rule.denseFirst:
			out[i] = int64(i)%period != 0
		default:
			out[i] = int64(i)%period < period-1
		}
	}
	return out, nil
}

// attention says for each layer whether it keeps K and V, and whether it keeps a
// recurrent state.
func (h header) attention(layers []Layer) (attends, recurrent []bool, err error) {
	attends, recurrent = make([]bool, h.n), make([]bool, h.n)
	rule, hybrid := hybridRules[h.arch]
	listed, list := h.IntsPerLayer(h.key("attention.recurrent_layers"), h.n)
	if h.has("attention.recurrent_layers") && !list {
		return nil, nil, fmt.Errorf("%s does not have one value a layer", h.key("attention.recurrent_layers"))
	}
	interval := rule.interval
	if interval > 0 && h.has("full_attention_interval") {
		interval = h.int("full_attention_interval")
	}
	if rule.interval > 0 && interval <= 0 {
		return nil, nil, fmt.Errorf("full_attention_interval is %d", interval)
	}
	ffn, _ := h.IntsPerLayer(h.key("feed_forward_length"), h.n)
	if rule.noFFN && ffn == nil {
		return nil, nil, fmt.Errorf("%s does not have one value a layer", h.key("feed_forward_length"))
	}
	for i, l := range layers {
		inTrunk := i < h.n-h.mtp
		switch {
		case !hybrid:
			attends[i] = true
		case rule.everyBoth:
			attends[i], recurrent[i] = true, true
		case rule.noFFN:
			recurrent[i] = inTrunk && l.KVHeads == 0 && ffn[i] == 0
			attends[i] = !recurrent[i] && ffn[i] == 0
		case interval > 0 && list:
			recurrent[i] = inTrunk && listed[i] != 0
			attends[i] = !recurrent[i]
		case interval > 0:
			recurrent[i] = inTrunk && (int64(i)+1)%interval != 0
			attends[i] = !recurrent[i]
		default:
			recurrent[i] = inTrunk && l.KVHeads == 0
			attends[i] = !recurrent[i]
		}
	}
	return attends, recurrent, nil
}

// state sizes the memory of the recurrent layers.
func (h header) state(s *Shape, recurrent []bool) error {
	for _, r := range recurrent {
		if r {
			s.State.Layers++
		}
	}
	if s.State.Layers == 0 {
		return nil
	}
	heads, _ := h.IntsPerLayer(h.key("attention.head_count"), h.n)
	embd, conv := h.int("embedding_length"), h.int("ssm.conv_kernel")
	inner, size := h.int("ssm.inner_size"), h.int("ssm.state_size")
	kda := h.int("kda.head_dim")
	switch {
	case h.int("shortconv.l_cache") > 0:
		s.State.Values = embd * (h.int("shortconv.l_cache") - 1)
	case kda > 0:
		taps := conv - 1
		if conv <= 0 {
			taps = 3
		}
		s.State.Values = 3*taps*heads[0]*kda + kda*kda*heads[0]
	case h.arch == "minimax-01":
		d := h.int("attention.key_length")
		if d == 0 {
			d = embd / heads[0]
		}
		s.State.Values = d * d * heads[0]
	default:
		s.State.Values = (max(conv, 1)-1)*(inner+2*h.int("ssm.group_count")*size) + size*inner
	}
	if s.State.Values <= 0 {
		return fmt.Errorf("the recurrent state of this %s model cannot be sized from its header", h.arch)
	}
	return nil
}
