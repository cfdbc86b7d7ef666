package hostrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A kernel broken on purpose is caught: a barrier taken out of the text, and a mask read one cell off.
func TestBrokenKernelsAreCaught(t *testing.T) {
	cases := map[string][]Case{
		"packed16-decode.cuh":     {"nk=513 v=f16 d=64 nq=4 mask=holes", "nk=300 v=f16 d=64"},
		"packed16-decode-mma.cuh": {"nk=300 v=f16 d=64 nq=4 mask=causal", "nk=600 v=f16 d=64 nq=4 cta=8"},
		"packed16-prefill.cuh":    {"route=prefill d=64 v=f16 nq=40 nk=300 gqa=2 mask=holes"},
	}
	amd, nvidia := AMD, []string(nil)
	for _, m := range []struct {
		name, file, old, new string
		nth                  int // which occurrence to change, from 1; 0: all
		says                 string
		defines              []string
	}{
		{"missing barrier in decode", "packed16-decode.cuh", "__syncthreads();", ";", 2, "race on smem|uninitialised", amd},
		{"missing barrier in prefill", "packed16-prefill.cuh", "__syncthreads();", ";", 1, "race on smem|uninitialised", amd},
		{"mask off by one in decode", "packed16-decode.cuh", "args.nbm1))[k]", "args.nbm1))[k + 1]", 0, "NMSE is|not finite|heap-buffer-overflow", amd},
		{"mask of another row in matrix decode", "packed16-decode-mma.cuh", "smem.mask[at][row & 7]", "smem.mask[at][0 & row]", 0, "NMSE is|not finite", nvidia},
		{"copy over what others read in matrix decode", "packed16-decode-mma.cuh", "__syncthreads();\n        }\n        if (next)", "}\n        if (next)", 0, "race on smem", nvidia},
		{"mask off by one in prefill", "packed16-prefill.cuh", "((const uint16_t *) row)[k]", "((const uint16_t *) row)[k + 1]", 0, "NMSE is|not finite|heap-buffer-overflow", amd},
	} {
		t.Run(m.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("skipped: -short")
			}
			changed := 0
			p := compileKernels(t, strings.ReplaceAll(m.name, " ", "-"), []int{64}, []string{"f16"}, nil, KernelOptions{
				Options: Options{Traced: true, Defines: m.defines},
				Mutate: func(name, text string) string {
					if name != m.file {
						return text
					}
					changed = strings.Count(text, m.old)
					if m.nth > 0 && changed >= m.nth {
						parts := strings.SplitN(text, m.old, m.nth+1)
						return strings.Join(parts[:m.nth], m.old) + m.new + parts[m.nth]
					}
					return strings.ReplaceAll(text, m.old, m.new)
				},
			})
			if changed == 0 || changed < m.nth {
				t.Fatalf("%s has no %q to break", m.file, m.old)
			}
			found := caught(t, p, cases[m.file])
			ok := false
			for _, says := range strings.Split(m.says, "|") {
				ok = ok || strings.Contains(found, says)
			}
			if !ok {
				t.Errorf("not caught as %q: %q", m.says, found)
			} else {
				t.Logf("caught: %.300s", found)
			}
		})
	}
}

// caught runs the cases and returns what is wrong with the first bad one, "" when all are good.
func caught(t *testing.T, p *Program, cases []Case) string {
	t.Helper()
	for _, c := range cases {
		outcomes, err := p.RunCases(t.Context(), []Case{c}, 1)
		if err == nil {
			err = c.Judge(outcomes[0])
		}
		if err != nil {
			return err.Error()
		}
	}
	return ""
}

// Every barrier of every kernel is needed: with any one left out, some case fails. (Left out as it runs, so nothing is recompiled.)
// That of packed16-cluster.cuh is left out in cluster_test.go.
func TestEveryBarrierIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	sites := 0
	for _, set := range []struct {
		p     *Program
		holds func(file string) bool // whether these cases are to reach the file's barriers
		cases []string
	}{
		{amd(t), func(file string) bool {
			return file != "packed16-decode-mma.cuh" && file != "packed16-cluster.cuh" && !strings.HasPrefix(file, "packed16-prefill-mma") && file != "packed16-prefill-share.cuh"
		}, []string{
			"d=256 v=q4_0 nq=3 nk=513 mask=holes", "d=64 v=f16 nk=1300 mask=none", "d=256 v=q4_0 nk=1200 gqa=8", "d=128 v=f16 nk=10000 gqa=1 cta=8",
			"route=prefill d=256 v=q4_0 nq=40 nk=300 gqa=2 mask=holes", "route=prefill d=64 v=f16 nq=40 nk=300 gqa=2 mask=causal",
		}},
		{nvidia(t), func(file string) bool { return file == "packed16-decode-mma.cuh" }, []string{
			"d=256 v=q4_0 nq=3 nk=513 mask=holes", "d=64 v=q4_0 nk=1300 mask=none",
		}},
	} {
		sites += missEveryBarrier(t, set.p, set.holds, set.cases)
	}
	t.Logf("%d barriers, each missed", sites)
}

// missEveryBarrier leaves out each barrier of the kernel files that holds says, in turn; returns how many there are.
func missEveryBarrier(t *testing.T, p *Program, holds func(file string) bool, cases []string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(p.Path), "kernels", "*.cuh")) // as they were compiled
	if err != nil {
		t.Fatal(err)
	}
	sites := 0
	for _, name := range names {
		if !holds(filepath.Base(name)) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if !strings.Contains(code, "__syncthreads()") {
				continue
			}
			sites++
			site := fmt.Sprintf("%s:%d", filepath.Base(name), i+1)
			found, skipped := "", int64(0)
			for _, c := range cases {
				broken := Case(c + " skip=" + site)
				outcomes, err := p.RunCases(t.Context(), []Case{broken}, 1)
				if err == nil {
					skipped += outcomes[0].Skipped
					err = broken.Judge(outcomes[0])
				}
				if err != nil {
					found = err.Error()
					break
				}
			}
			switch {
			case found == "" && skipped == 0:
				t.Errorf("%s: no case reaches this barrier", site)
			case found == "":
				t.Errorf("%s: no case fails without this barrier: it is superfluous, or the cases are too weak", site)
			}
		}
	}
	return sites
}
