package isa

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/recipe"
	"dot4fa/internal/upstream"
)

var (
	all    = flag.Bool("all", false, "compile the kernels for every GPU target, not for gfx1100 only")
	update = flag.Bool("update", false, "record the kernels' figures in budgets.yaml")
)

// The recipe's kernels, compiled for gfx1100, keep every budget; with -all, for every target.
func TestKernelsKeepTheirBudgets(t *testing.T) {
	c := compiler(t)
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	assets := os.DirFS(filepath.Join("..", ".."))
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	src, err := Kernels(t.TempDir(), r, assets)
	if err != nil {
		t.Fatal(err)
	}
	targets := Targets[:1]
	if *all {
		targets = Targets
	}
	report, err := Inspect(t.Context(), c, src, targets, runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	budgets, err := LoadBudgets()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		out, err := os.Create("budgets.yaml")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if err := budgets.Record(out, report); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range budgets.Check(report) {
		t.Errorf("%v (%s)", e, e.Hint)
	}
	// Every decode and prefill instance of the recipe is there.
	decode, prefill := 0, 0
	for _, k := range report.Kernels {
		if match("packed16_decode*", k.Name) {
			decode++
		}
		if match("packed16_prefill*", k.Name) {
			prefill++
		}
	}
	pairs := len(r.Kernel.HeadSizes) * len(r.Kernel.VTypes) * len(targets)
	if decode < pairs || prefill < pairs || decode%pairs != 0 || prefill%pairs != 0 {
		t.Errorf("%d decode and %d prefill kernels for %d pairs of head size and V type", decode, prefill, pairs)
	}
	if testing.Verbose() {
		if err := report.Print(os.Stdout); err != nil {
			t.Fatal(err)
		}
	}
}

// With an upstream tree at hand, its own headers give the same machine code as the stand-ins.
func TestUpstreamHeadersGiveTheSameCode(t *testing.T) {
	c := compiler(t)
	location := os.Getenv("DOT4FA_UPSTREAM")
	if location == "" {
		t.Skip("skipped: DOT4FA_UPSTREAM names no llama.cpp repository")
	}
	assets := os.DirFS(filepath.Join("..", ".."))
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	r.Kernel.HeadSizes, r.Kernel.VTypes = []int{256}, []string{"q4_0"}
	src, err := Kernels(t.TempDir(), r, assets)
	if err != nil {
		t.Fatal(err)
	}
	tree := upstreamHeaders(t, r, location)
	var reports [2]*Report
	for i, tree := range []string{"", tree} {
		src.Tree = tree
		if reports[i], err = Inspect(t.Context(), c, src, Targets[:1], runtime.NumCPU()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(reports[0].Kernels, reports[1].Kernels); diff != "" {
		t.Errorf("stand-in and upstream headers differ:\n%s", diff)
	}
}

// upstreamHeaders writes ggml's headers at the recipe's pin to a directory and returns its ggml-cuda.
func upstreamHeaders(t *testing.T, r *recipe.Recipe, location string) string {
	t.Helper()
	up, err := upstream.Open(t.Context(), upstream.Options{Location: location, Commit: r.Upstream.Commit, Exclude: r.Upstream.Exclude})
	if err != nil {
		t.Fatal(err)
	}
	files, err := up.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		ext := filepath.Ext(f.Path)
		if !strings.HasPrefix(f.Path, "ggml/") || ext != ".h" && ext != ".cuh" {
			continue
		}
		data, err := up.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ggml", "src", "ggml-cuda")
}
