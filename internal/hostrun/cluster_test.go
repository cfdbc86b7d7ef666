package hostrun

import (
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/recipe"
)

// The merge that the blocks of a cluster do among themselves gives the bits of the merge kernel, and its blocks wait for as many
// bytes as are pushed to them; with one of its steps broken it does not.
func TestClusterMergesAsTheMergeKernel(t *testing.T) {
	const good = "differ 0, wrong byte counts 0\n"
	out := clusterMerge(t, "cluster", "", "")
	if out != good {
		t.Errorf("got %q, want %q", out, good)
	}
	if testing.Short() {
		return
	}
	for name, m := range map[string][2]string{
		"barrier": {"__syncthreads();", ";"},
		"slot":    {"slot*n_units + unit][lane], p", "slot*n_units][lane], p"},
		"bytes":   {"- rank + n_units - 1)/n_units", "+ n_units - 1)/n_units"},
		"dead":    {"if (u >= n_units)", "if (u > n_units)"},
	} {
		if out := clusterMerge(t, "cluster-"+name, m[0], m[1]); out == good {
			t.Errorf("%s: %q for %q is not seen", name, m[1], m[0])
		}
	}
}

// clusterMerge compiles testdata/cluster.cpp with packed16-cluster.cuh changed and returns what it printed.
func clusterMerge(t *testing.T, key, old, changed string) string {
	t.Helper()
	cxx, err := FindCompiler(t.Context())
	if err != nil {
		t.Skipf("skipped: needs clang++ with AddressSanitizer: %v", err)
	}
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(scratch, key)
	kernels := filepath.Join(dir, "kernels")
	found := old == ""
	if _, err := writeKernels(kernels, r, assets, func(name, text string) string {
		if old == "" || name != "packed16-cluster.cuh" {
			return text
		}
		found = strings.Contains(text, old)
		return strings.ReplaceAll(text, old, changed)
	}); err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Fatalf("packed16-cluster.cuh has no %q to break", old)
	}
	p, err := Compile(t.Context(), Options{
		Compiler: cxx, Dir: dir, Name: "cluster", Include: []string{kernels}, Traced: true, Sources: []string{filepath.Join("testdata", "cluster.cpp")},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != 0 {
		return result.Stderr
	}
	t.Logf("%s: %s%s", key, result.Stdout, result.Stderr)
	return string(result.Stdout)
}
