package vram

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is a stored comparison: docs/results/vram-*.json.
type row struct {
	Model string `json:"model"`
	Use   Use    `json:"use"`
	Checked
}

// Every figure equals the line that llama.cpp logs, for plain attention, sliding
// windows, a hybrid with and without MTP head, and MLA; for one and several slots,
// apart and unified.
func TestAgainstLlamaCPP(t *testing.T) {
	bin := os.Getenv("DOT4FA_LLAMA_BIN")
	if bin == "" {
		t.Skip("set DOT4FA_LLAMA_BIN to the build/bin of a patched llama.cpp")
	}
	program := filepath.Join(bin, "llama-perplexity")
	var all []row
	uses := []Use{{Parallel: 1}, {Parallel: 4}, {Parallel: 4, Unified: true}, {Parallel: 1, SWAFull: true}, {Parallel: 1, UBatch: 128}}
	for name, m := range map[string]*tiny{
		"llama": llama(), "gemma3": gemma3(), "gemma2": gemma2(), "qwen35": qwen35(8, 6, 2, false), "qwen35+mtp": qwen35(8, 6, 2, true),
		"deepseek2": deepseek2(),
	} {
		t.Run(name, func(t *testing.T) {
			file := m.write(t)
			for _, u := range uses {
				all = append(all, against(t, name, program, file, Request{Use: u, Pairs: DefaultPairs, Ctxs: []int{400, 8192}})...)
			}
		})
	}
	t.Run("27B shape", func(t *testing.T) {
		const name = "qwen35, 27B shape"
		all = append(all, against(t, name, program, qwen35(64, 24, 4, false).write(t), Request{Pairs: []Pair{{"f16", "f16"}, {"packed16", "q4_0"}}, Ctxs: []int{32768}})...)
	})
	if out := os.Getenv("DOT4FA_VRAM_OUT"); out != "" && !t.Failed() {
		slices.SortStableFunc(all, func(a, b row) int { return strings.Compare(a.Model, b.Model) })
		var b strings.Builder // a line for each row
		for i, r := range all {
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(map[bool]string{true: "[", false: ",\n"}[i == 0] + string(data))
		}
		if err := os.WriteFile(out, []byte(b.String()+"]\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func against(t *testing.T, name, program, file string, req Request) (rows []row) {
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
		rows = append(rows, row{name, rep.Use, c})
	}
	return rows
}
