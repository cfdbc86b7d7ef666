package vram

import (
	"regexp"
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
	"dot4fa/internal/plot"
)

const mibi = 1 << 20

func mustBytes(t *testing.T, s Shape, p Pair, u Use) int64 {
	t.Helper()
	k, v, err := s.Bytes(p, u)
	if err != nil {
		t.Fatal(err)
	}
	return k + v
}

// The canonical 27B shape: 16 attention layers, 4 KV heads of 256, at 32k.
func TestCanonicalShape(t *testing.T) {
	s := Uniform(16, 4, 256)
	u := Use{Ctx: 32768}
	for pair, want := range map[Pair]int64{
		{"f16", "f16"}: 2048, {"packed16", "q4_0"}: 832, {"q8_0", "q4_0"}: 832, {"packed16", "f16"}: 1568,
	} {
		if got := mustBytes(t, s, pair, u); got != want*mibi {
			t.Errorf("%s: %d MiB, want %d", pair, got/mibi, want)
		}
	}
	ctx, err := LargestCtx(832*mibi, 1<<20, func(ctx int) (int64, error) {
		k, v, err := s.Bytes(Pair{"packed16", "q4_0"}, Use{Ctx: ctx})
		return k + v, err
	})
	if err != nil || ctx != 32768 {
		t.Errorf("largest context in 832 MiB: %d, %v; want 32768", ctx, err)
	}
}

func modelHeader(arch string, more map[string]any) *gguf.Header {
	meta := map[string]any{
		"general.architecture": arch, arch + ".block_count": int64(8), arch + ".context_length": int64(4096),
		arch + ".embedding_length": int64(512), arch + ".attention.head_count": int64(4),
		arch + ".attention.head_count_kv": int64(2),
	}
	for k, v := range more {
		meta[arch+"."+k] = v
	}
	return &gguf.Header{Version: 3, Meta: meta}
}

func TestFromGGUF(t *testing.T) {
	s, err := FromGGUF(modelHeader("llama", nil))
	if err != nil || len(s.Layers) != 8 || s.Layers[0] != (Layer{2, 128, 128, false}) {
		t.Fatalf("llama: %+v, %v", s, err)
	}
	s, err = FromGGUF(modelHeader("qwen35", map[string]any{"ssm.state_size": int64(16), "ssm.inner_size": int64(64), "full_attention_interval": int64(4)}))
	if err != nil || len(s.Layers) != 2 {
		t.Fatalf("hybrid: %d attention layers, %v; want 2", len(s.Layers), err)
	}
	s, err = FromGGUF(modelHeader("gemma3", map[string]any{"attention.sliding_window": int64(512)}))
	if err != nil {
		t.Fatal(err)
	}
	windows := 0
	for _, l := range s.Layers {
		if l.Window {
			windows++
		}
	}
	if windows != 7 { // layer 5 of 0..7 is dense
		t.Errorf("gemma3: %d window layers, want 7", windows)
	}
	full, window := s.Cells(Use{Ctx: 8192})
	if full != 8192 || window != 1024 {
		t.Errorf("cells %d, %d; want 8192, 1024", full, window)
	}
	full, window = s.Cells(Use{Ctx: 8192, Parallel: 4})
	if full != 8192 || window != 4*1024 {
		t.Errorf("four slots: cells %d, %d; want 8192, 4096", full, window)
	}
	full, window = s.Cells(Use{Ctx: 8192, Parallel: 4, Unified: true})
	if full != 8192 || window != 4*512+512 {
		t.Errorf("four slots, unified: cells %d, %d; want 8192, 2560", full, window)
	}
}

func TestRefusals(t *testing.T) {
	for name, h := range map[string]*gguf.Header{
		"indexer":        modelHeader("deepseek32", map[string]any{"attention.kv_lora_rank": int64(512)}),
		"unknown MLA":    modelHeader("brandnew", map[string]any{"attention.kv_lora_rank": int64(512)}),
		"recurrent":      modelHeader("mamba2", nil),
		"unknown window": modelHeader("brandnew", map[string]any{"attention.sliding_window": int64(512)}),
		"unknown hybrid": modelHeader("brandnew", map[string]any{"ssm.state_size": int64(16)}),
		"no arch":        {Meta: map[string]any{}},
	} {
		if s, err := FromGGUF(h); err == nil {
			t.Errorf("%s: accepted as %+v", name, s)
		}
	}
	for _, bad := range []string{"packed16", "f16/packed16", "q9_0/f16", "/", ""} {
		if _, err := ParsePair(bad); err == nil {
			t.Errorf("pair %q accepted", bad)
		}
	}
}

// A pair that the model cannot have is left out of a comparison and said, and
// refused where it was asked for.
func TestPairs(t *testing.T) {
	softcap, err := FromGGUF(modelHeader("gemma2", nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shape Shape
		pair  Pair
		want  string
	}{
		"softcap":   {softcap, Pair{"packed16", "f16"}, "softcap"},
		"head size": {Uniform(2, 2, 96), Pair{"packed16", "f16"}, "head size is 96"},
		"blocks":    {Uniform(2, 2, 80), Pair{"q8_0", "f16"}, "whole blocks"},
		"V type":    {Uniform(2, 2, 128), Pair{"packed16", "q5_0"}, "f16, q8_0, q4_0"},
		"MLA":       {Shape{MLA: true, Layers: []Layer{{1, 576, 0, false}}}, Pair{"q8_0", "f16"}, "MLA"},
	} {
		req := Request{Shape: c.shape, Pairs: []Pair{{"f16", "f16"}, c.pair}, Ctxs: []int{4096}}
		rep, err := Compute(req)
		if err != nil || len(rep.Contexts[0].Sizes) != 1 || !strings.Contains(strings.Join(rep.Notes, " "), c.want) {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
		req.Asked = true
		if _, err := Compute(req); err == nil || !strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
			t.Errorf("%s, asked for: %v", name, err)
		}
	}
}

// A card of 24 GiB with 16 GiB of weights and 1 GiB left for the rest.
func TestBudget(t *testing.T) {
	const gib = 1 << 30
	req := Request{Shape: Uniform(16, 4, 256), Pairs: []Pair{{"f16", "f16"}, {"packed16", "q4_0"}}, Ctxs: []int{32768, 131072},
		Card: &Card{Bytes: 24 * gib, Weights: 16 * gib, Reserve: gib}}
	rep, err := Compute(req)
	if err != nil {
		t.Fatal(err)
	}
	b := rep.Budget
	// f16/f16 takes 64 KiB a cell, packed16/q4_0 26 KiB
	if b.Free != 7*gib || b.Largest[0].Ctx != 7*gib/65536/256*256 || b.Largest[1].Ctx != 7*gib/26624/256*256 {
		t.Errorf("%+v", b)
	}
	if s := rep.Contexts[1].Sizes; *s[0].Fits || !*s[1].Fits {
		t.Errorf("at 131072: %+v", s)
	}
	req.Card.Weights = 24 * gib
	if rep, err = Compute(req); err != nil || rep.Budget.Largest[1].Ctx != 0 || rep.Budget.Free >= 0 {
		t.Errorf("weights as large as the card: %+v, %v", rep.Budget, err)
	}
}

// The log of a sliding-window model has a line for each cache; a recurrent one
// has its own. The lines are in llama.cpp's format, with other numbers.
func TestParseLog(t *testing.T) {
	log := "0.00.1 I llama_kv_cache: size =   12.50 MiB (  4096 cells,   2 layers,  1/1 seqs), K (packed16):    4.25 MiB, V (f16):    8.25 MiB\n" +
		"0.00.2 I llama_kv_cache: size =    3.00 MiB (  1024 cells,   6 layers,  4/4 seqs), K (f16):    1.50 MiB, V (f16):    1.50 MiB\n" +
		"llama_memory_recurrent: size =    7.11 MiB (     1 cells,   8 layers,  1 seqs  0 rs_seq), R (f32):    0.11 MiB, S (f32):    7.00 MiB\n" +
		"llama_kv_cache:        CPU KV buffer size =     9.00 MiB\n"
	if got, want := ParseLog([]byte(log)), (Logged{5.75, 9.75, 7.11, 2, 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// kinds lists the layers of a shape: a for full attention, w for a window.
func kinds(s Shape) string {
	var b strings.Builder
	for _, l := range s.Layers {
		b.WriteByte(map[bool]byte{false: 'a', true: 'w'}[l.Window])
	}
	return b.String()
}

// Which layers keep what, for a model of eight layers. The expectations follow
// from upstream's readers of hyperparameters, written out by hand.
func TestLayouts(t *testing.T) {
	i := func(n int) int64 { return int64(n) }
	list := func(values ...any) []any {
		for k, v := range values {
			if n, ok := v.(int); ok {
				values[k] = int64(n)
			}
		}
		return values
	}
	window := func(more map[string]any) map[string]any {
		m := map[string]any{"attention.sliding_window": i(512)}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	const pattern = "attention.sliding_window_pattern"
	ssm := map[string]any{"ssm.state_size": i(16), "ssm.inner_size": i(64), "ssm.conv_kernel": i(4), "ssm.group_count": i(2)}
	with := func(base map[string]any, more map[string]any) map[string]any {
		m := map[string]any{}
		for k, v := range base {
			m[k] = v
		}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	for name, c := range map[string]struct {
		arch   string
		keys   map[string]any
		want   string
		window int
		state  int // recurrent layers
		draft  int
	}{
		"gemma2 by default":           {arch: "gemma2", want: "wawawawa", window: 4096},
		"gemma3 without a window":     {arch: "gemma3", want: "aaaaaaaa"},
		"gemma3 ignores an array":     {arch: "gemma3", keys: window(map[string]any{pattern: list(0, 0, 0, 0, 0, 0, 0, 0)}), want: "wwwwwaww", window: 512},
		"gemma3 with a period":        {arch: "gemma3", keys: window(map[string]any{pattern: i(2)}), want: "wawawawa", window: 512},
		"gemma4 layer by layer":       {arch: "gemma4", keys: window(map[string]any{pattern: list(true, true, false, true, false, true, false, true), "attention.shared_kv_layers": i(3)}), want: "wwawa", window: 512},
		"gpt-oss":                     {arch: "gpt-oss", keys: window(nil), want: "wawawawa", window: 512},
		"laguna begins dense":         {arch: "laguna", keys: window(nil), want: "awwwawww", window: 512},
		"llama4, its own window":      {arch: "llama4", keys: window(nil), want: "wwwawwwa", window: 8192},
		"llama4 without":              {arch: "llama4", keys: map[string]any{"attention.sliding_window": i(0)}, want: "aaaaaaaa"},
		"phi3 has it switched off":    {arch: "phi3", keys: window(nil), want: "aaaaaaaa"},
		"exaone4 of another size":     {arch: "exaone4", keys: window(nil), want: "aaaaaaaa"},
		"mimo2 leaves its head out":   {arch: "mimo2", keys: window(map[string]any{pattern: list(0, 1, 1, 1, 0, 1, 1, 0), "nextn_predict_layers": i(1)}), want: "awwwaww", window: 512, draft: 1},
		"glm4moe keeps its head":      {arch: "glm4moe", keys: map[string]any{"nextn_predict_layers": i(1)}, want: "aaaaaaaa", draft: 1},
		"qwen35 with a head":          {arch: "qwen35", keys: with(ssm, map[string]any{"nextn_predict_layers": i(1)}), want: "a", state: 6, draft: 1},
		"qwen3next, listed":           {arch: "qwen3next", keys: with(ssm, map[string]any{"attention.recurrent_layers": list(0, 1, 1, 0, 1, 1, 1, 0)}), want: "aaa", state: 5},
		"qwen35moe, another interval": {arch: "qwen35moe", keys: with(ssm, map[string]any{"full_attention_interval": i(2)}), want: "aaaa", state: 4},
		"jamba by its KV heads":       {arch: "jamba", keys: with(ssm, map[string]any{"attention.head_count_kv": list(0, 0, 0, 2, 0, 0, 0, 2)}), want: "aa", state: 6},
		"falcon-h1 does both":         {arch: "falcon-h1", keys: ssm, want: "aaaaaaaa", state: 8},
		"nemotron_h": {arch: "nemotron_h", keys: with(ssm, map[string]any{"attention.head_count_kv": list(0, 0, 2, 0, 0, 0, 2, 0), "feed_forward_length": list(0, 9, 0, 0, 9, 0, 0, 9)}),
			want: "aa", state: 3},
		"lfm2, windowed": {arch: "lfm2", keys: window(map[string]any{"shortconv.l_cache": i(3), "attention.head_count_kv": list(0, 2, 0, 2, 0, 2, 0, 2)}), want: "wwww", window: 512, state: 4},
	} {
		s, err := FromGGUF(modelHeader(c.arch, c.keys))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := kinds(s); got != c.want || s.Window != c.window || s.State.Layers != c.state || len(s.Draft) != c.draft {
			t.Errorf("%s: layers %s, window %d, %d recurrent, %d of the head; want %s, %d, %d, %d", name, got, s.Window, s.State.Layers, len(s.Draft), c.want, c.window, c.state, c.draft)
		}
	}
}

// A header whose numbers make no sense is refused, whatever they are.
func TestNonsense(t *testing.T) {
	for name, keys := range map[string]map[string]any{
		"no layers":       {"block_count": int64(0)},
		"many layers":     {"block_count": int64(1 << 40)},
		"negative heads":  {"attention.head_count_kv": int64(-2)},
		"no heads":        {"attention.head_count": int64(0)},
		"heads too short": {"attention.head_count_kv": []any{int64(2)}},
		"head too large":  {"attention.key_length": int64(1 << 40)},
		"head of nothing": {"attention.value_length": int64(-1)},
	} {
		if s, err := FromGGUF(modelHeader("llama", keys)); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for name, h := range map[string]*gguf.Header{
		"a window of no sense": modelHeader("gemma3", map[string]any{"attention.sliding_window": int64(-5)}),
		"a period of no sense": modelHeader("gemma3", map[string]any{"attention.sliding_window": int64(512), "attention.sliding_window_pattern": int64(-3)}),
		"an interval of zero":  modelHeader("qwen35", map[string]any{"full_attention_interval": int64(0)}),
		"all layers predict":   modelHeader("qwen35", map[string]any{"nextn_predict_layers": int64(8)}),
		"a state of nothing":   modelHeader("qwen35", nil),
		"more shared than any": modelHeader("gemma4", map[string]any{"attention.sliding_window": int64(512), "attention.sliding_window_pattern": int64(1), "attention.shared_kv_layers": int64(9)}),
	} {
		if s, err := FromGGUF(h); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Every pair of types has a colour of its own in the pictures.
func TestColors(t *testing.T) {
	p := plot.Panel{}
	for k := range types {
		for v := range types {
			if v != "packed16" {
				p.Lines = append(p.Lines, plot.Line{Name: k + "/" + v})
			}
		}
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`stroke="(#[0-9a-f]{6})" stroke-width="2"`).FindAllSubmatch(plot.Chart{Panels: []plot.Panel{p}}.SVG(), -1) {
		if seen[string(m[1])] {
			t.Errorf("two pairs have the colour %s", m[1])
		}
		seen[string(m[1])] = true
	}
	if len(seen) != len(p.Lines) {
		t.Errorf("%d colours for %d pairs", len(seen), len(p.Lines))
	}
}
