package vram

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// Every figure equals the line that llama.cpp logs, for plain attention, sliding
// windows, a hybrid with and without MTP head, and MLA; for one and several slots,
// apart and unified.
func TestAgainstLlamaCPP(t *testing.T) {
	bin := os.Getenv("DOT4FA_LLAMA_BIN")
	if bin == "" {
		t.Skip("set DOT4FA_LLAMA_BIN to the build/bin of a patched llama.cpp")
	}
	program := filepath.Join(bin, "llama-perplexity")
	uses := []Use{{Parallel: 1}, {Parallel: 4}, {Parallel: 4, Unified: true}, {Parallel: 1, SWAFull: true}, {Parallel: 1, UBatch: 128}}
	for name, m := range map[string]*tiny{
		"llama": llama(), "gemma3": gemma3(), "gemma2": gemma2(), "qwen35": qwen35(8, 6, 2, false), "qwen35+mtp": qwen35(8, 6, 2, true),
		"deepseek2": deepseek2(),
	} {
		t.Run(name, func(t *testing.T) {
			file := m.write(t)
			for _, u := range uses {
				against(t, program, file, Request{Use: u, Pairs: DefaultPairs, Ctxs: []int{400, 8192}})
			}
		})
	}
	t.Run("27B shape", func(t *testing.T) {
		against(t, program, qwen35(64, 24, 4, false).write(t), Request{Pairs: []Pair{{"f16", "f16"}, {"packed16", "q4_0"}}, Ctxs: []int{32768}})
	})
}

func against(t *testing.T, program, file string, req Request) {
	t.Helper()
	shape, _, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	req.Shape, req.File = shape, file
	rep, err := Compute(req)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Against(context.Background(), program, req, rep, func(int, int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if !c.Equal {
			t.Errorf("%+v, %s at %d: computed K %s V %s state %s, llama.cpp logs %+v", req.Use, c.Pair, c.Ctx, MiB(c.K), MiB(c.V), MiB(c.State), c.Log)
		}
		t.Logf("%s %d slots unified=%v, %s at %d: K %s V %s state %s; log %v %v %v", shape.Arch, req.Use.Parallel, req.Use.Unified, c.Pair, c.Ctx,
			MiB(c.K), MiB(c.V), MiB(c.State), c.Log.K, c.Log.V, c.Log.State)
	}
}
