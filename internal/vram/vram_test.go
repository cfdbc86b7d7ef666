package vram

import (
	"strings"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
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
