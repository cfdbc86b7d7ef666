package hostrun

import (
	"strings"
	"testing"
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
	found := old == ""
	result := runSource(t, key, "cluster", Options{Traced: true}, func(name, text string) string {
		if old == "" || name != "packed16-cluster.cuh" {
			return text
		}
		found = strings.Contains(text, old)
		return strings.ReplaceAll(text, old, changed)
	})
	if !found {
		t.Fatalf("packed16-cluster.cuh has no %q to break", old)
	}
	if result.Status != 0 {
		return result.Stderr
	}
	t.Logf("%s: %s%s", key, result.Stdout, result.Stderr)
	return string(result.Stdout)
}
