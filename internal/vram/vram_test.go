package vram

import (
	"testing"

	"dot4fa/internal/gguf"
)

const mib = 1 << 20

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
		if got := mustBytes(t, s, pair, u); got != want*mib {
			t.Errorf("%s: %d MiB, want %d", pair, got/mib, want)
		}
	}
	ctx, err := s.LargestCtx(Pair{"packed16", "q4_0"}, u, 832*mib, 1<<20)
	if err != nil || ctx != 32768 {
		t.Errorf("largest context in 832 MiB: %d, %v; want 32768", ctx, err)
	}
}

func header(arch string, more map[string]any) *gguf.Header {
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
	s, err := FromGGUF(header("llama", nil))
	if err != nil || len(s.Layers) != 8 || s.Layers[0] != (Layer{2, 128, 128, false}) {
		t.Fatalf("llama: %+v, %v", s, err)
	}
	s, err = FromGGUF(header("qwen35", map[string]any{"ssm.state_size": int64(16), "full_attention_interval": int64(4)}))
	if err != nil || len(s.Layers) != 2 {
		t.Fatalf("hybrid: %d attention layers, %v; want 2", len(s.Layers), err)
	}
	s, err = FromGGUF(header("gemma3", map[string]any{"attention.sliding_window": int64(512)}))
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
		"MLA":            header("deepseek2", map[string]any{"attention.kv_lora_rank": int64(512)}),
		"unknown window": header("brandnew", map[string]any{"attention.sliding_window": int64(512)}),
		"unknown hybrid": header("brandnew", map[string]any{"ssm.state_size": int64(16)}),
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
