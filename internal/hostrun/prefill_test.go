package hostrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// prefillPrograms are the matrix-tile prefill in each layout of matrix instructions, by its name, and the head sizes and
// V types in each program.
func prefillPrograms(t *testing.T) []struct {
	name  string
	p     *Program
	heads []int
	vs    []string
	async bool // copies past the registers, two tiles in shared memory
} {
	t.Helper()
	traced := KernelOptions{Options: Options{Traced: true}}
	rdna4 := KernelOptions{Options: Options{Traced: true, Defines: []string{"PACKED16_MMA_LAYOUT=3", "PACKED16_DECODE_MATRIX=0"}}}
	type set = struct {
		name  string
		p     *Program
		heads []int
		vs    []string
		async bool
	}
	return []set{
		{"RDNA3", amd(t), []int{64, 128, 256}, []string{"f16", "q8_0", "q4_0"}, false},
		{"sm_80", compileKernels(t, "nvidia", []int{64, 256}, []string{"q4_0"}, nil, traced), []int{64, 256}, []string{"q4_0"}, true},
		{"sm_80", compileKernels(t, "nvidia-v", []int{128}, []string{"f16", "q8_0"}, nil, traced), []int{128}, []string{"f16", "q8_0"}, true},
		{"RDNA4", compileKernels(t, "rdna4", []int{64}, []string{"q8_0"}, nil, rdna4), []int{64}, []string{"q8_0"}, false},
	}
}

// prefillCases takes every mask, GQA ratios, blocks of 4 and of 8 warps, shares of the cells, broken tiles of columns and of
// cells, several KV heads and sequences, sinks and a K packed by the call in turn. from shifts the turns.
func prefillCases(d int, v string, from int) []Case {
	var cases []Case
	n := from
	for i, nk := range []int{9, 64, 320, 511, 700, 1100} {
		gqa := []int{6, 1, 2, 8, 16, 5}[(i+from)%6]
		nq := []int{9, 33, 70, 12}[(i+from)%4]
		if nq*gqa*nk*d > 256*64*700 { // minutes otherwise
			nq = 9
		}
		for _, mask := range []string{masks[(2*n)%len(masks)], masks[(2*n+1)%len(masks)]} {
			cases = append(cases, Case(fmt.Sprintf("route=mma d=%d v=%s nq=%d nk=%d gqa=%d mask=%s kv=%d seq=%d mask3=%d k=%s sinks=%d warps=%d sms=%d order=%d",
				d, v, nq, max(nk, nq), gqa, mask, 1+n%3/2, 1+n%4/3, 1+n%4/3, []string{"packed", "f16"}[n/2%2], n%2, 8-4*(n/3%2), []int{1, 7}[n/4%2], n+1)))
			n++
			if !*full && nk > 64 {
				break
			}
		}
	}
	return cases
}

// The matrix-tile prefill agrees with float64 from the dequantised Q, K and V in every layout, with NaN in every cell that no
// query sees.
func TestMatrixPrefillAgreesWithFloat64(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	worst, n := map[string]float64{}, 0
	for i, set := range prefillPrograms(t) {
		for _, d := range set.heads {
			for _, v := range set.vs {
				cases := prefillCases(d, v, 3*i+n)
				if d == 128 && set.async {
					for _, c := range []string{"nq=33 nk=320 gqa=8 mask=window sms=3", "nq=70 nk=511 gqa=2 mask=dead sinks=1"} {
						cases = append(cases, Case("route=mma d=128 v="+v+" warps=32 "+c))
					}
				}
				for j, o := range run(t, set.p, cases) {
					if err := cases[j].Judge(o); err != nil {
						t.Errorf("%s: %v", set.name, err)
					}
					key := set.name + " " + v
					worst[key] = max(worst[key], o.NMSE)
				}
				n += len(cases)
			}
		}
	}
	t.Logf("%d cases, worst NMSE by layout and V type: %v", n, worst)
}

// With more columns than a line has rows for, every block takes one item: the same results.
func TestMatrixPrefillTakesWholeItems(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	p := compileKernels(t, "nvidia-items", []int{64}, []string{"q4_0"}, nil, KernelOptions{
		Options: Options{Traced: true, Defines: []string{"PACKED16_MMA_MAX_ROWS=1"}}})
	cases := []Case{
		"route=mma d=64 v=q4_0 nq=70 nk=300 gqa=6 kv=2 mask=causal",
		"route=mma d=64 v=q4_0 nq=40 nk=200 gqa=8 seq=2 mask3=2 mask=window sinks=1 warps=4",
	}
	for i, o := range run(t, p, cases) {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
	}
}

// An item without a live tile may lie across the ends of shares like any other: wherever they are cut, its rows are zeros.
func TestMatrixPrefillSharesDeadItems(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	p := prefillPrograms(t)[1].p
	var cases []Case
	for sms := 1; sms <= 8; sms++ { // of 33 rows, 24 see nothing
		for _, warps := range []int{4, 8} {
			cases = append(cases, Case(fmt.Sprintf("route=mma d=64 v=q4_0 nq=33 nk=9 gqa=16 kv=3 mask=causal sinks=%d warps=%d sms=%d", sms%2, warps, sms)))
		}
	}
	for i, o := range run(t, p, cases) {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
	}
}

// D/4 dp4a are executed for each (query, key) pair of whole tiles: a matrix product on bytes is 16 x N x 8 of them.
func TestMatrixPrefillCountsPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	for _, set := range prefillPrograms(t)[:2] {
		const nq, gqa, nk, d = 64, 2, 256, 64
		c := Case(fmt.Sprintf("route=mma d=%d v=q4_0 nq=%d nk=%d gqa=%d mask=none pad=0", d, nq, nk, gqa))
		o := run(t, set.p, []Case{c})[0]
		if got := float64(o.DP4A) / (nq * gqa * nk); got != d/4 {
			t.Errorf("%s: %s: %g dp4a per pair, want %d", set.name, c, got, d/4)
		}
	}
}

// Every barrier of the matrix-tile prefill is needed: with any one left out, some case fails.
func TestMatrixPrefillNeedsItsBarriers(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	sets := prefillPrograms(t)
	cases := map[bool][]string{
		false: {"route=mma d=64 v=f16 nq=40 nk=300 gqa=2 mask=causal", "route=mma d=64 v=f16 nq=150 nk=300 gqa=2 kv=2 mask=causal sms=3"},
		true:  {"route=mma d=64 v=q4_0 nq=40 nk=300 gqa=2 mask=causal", "route=mma d=64 v=q4_0 nq=150 nk=300 gqa=2 kv=2 mask=causal sms=3"},
	}
	sites := barriers(t, sets[0].p, "packed16-prefill-mma.cuh", "packed16-prefill-share.cuh")
	for _, site := range sites {
		found, skipped := "", int64(0)
		for _, set := range sets[:2] {
			for _, c := range cases[set.async] {
				broken := Case(c + " skip=" + site)
				outcomes, err := set.p.RunCases(t.Context(), []Case{broken}, 1)
				if err == nil {
					skipped += outcomes[0].Skipped
					err = broken.Judge(outcomes[0])
				}
				if err != nil {
					found = err.Error()
				}
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

// barriers lists the places of __syncthreads() in kernel files as p has compiled them, file:line; every file has some.
func barriers(t *testing.T, p *Program, names ...string) []string {
	t.Helper()
	var sites []string
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(p.Path), "kernels", name))
		if err != nil {
			t.Fatal(err)
		}
		before := len(sites)
		for i, line := range strings.Split(string(text), "\n") {
			if code, _, _ := strings.Cut(line, "//"); strings.Contains(code, "__syncthreads()") {
				sites = append(sites, fmt.Sprintf("%s:%d", name, i+1))
			}
		}
		if len(sites) == before {
			t.Errorf("%s has no barriers", name)
		}
	}
	return sites
}

// A matrix-tile prefill broken on purpose is caught.
func TestBrokenMatrixPrefillIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	for _, m := range []struct{ name, file, old, new, says string }{
		{"mask one cell off", "packed16-prefill-mma-softmax.cuh", "((const uint16_t *) row)[k]", "((const uint16_t *) row)[k + 1]", "NMSE is|not finite|heap-buffer-overflow"},
		{"copies not waited for", "packed16-prefill-mma.cuh", "packed16_copy_wait<0>();", "", "NMSE is|not finite|uninitialised"},
	} {
		t.Run(m.name, func(t *testing.T) {
			found := 0
			p := compileKernels(t, strings.ReplaceAll(m.name, " ", "-"), []int{64}, []string{"f16"}, nil, KernelOptions{
				Options: Options{Traced: true},
				Mutate: func(name, text string) string {
					if name == m.file {
						found = strings.Count(text, m.old)
						return strings.ReplaceAll(text, m.old, m.new)
					}
					return text
				},
			})
			if found == 0 {
				t.Fatalf("there is no %q to break", m.old)
			}
			wrong := ""
			c := Case("route=mma d=64 v=f16 nq=40 nk=300 gqa=2 mask=holes")
			outcomes, err := p.RunCases(t.Context(), []Case{c}, 1)
			if err == nil {
				err = c.Judge(outcomes[0])
			}
			if err != nil {
				wrong = err.Error()
			}
			for _, says := range strings.Split(m.says, "|") {
				if strings.Contains(wrong, says) {
					t.Logf("caught: %.200s", wrong)
					return
				}
			}
			t.Errorf("not caught as %q: %q", m.says, wrong)
		})
	}
}

// K and V unpacked for a kernel that multiplies hidden cells by 0 and divides by the sum of the weights: NaN in cells that nobody sees
// does not reach the result, and every value is that of the cache.
func TestUnpackedForOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	p := amd(t)
	var cases []Case
	for i, d := range []int{64, 128, 256} {
		for j, v := range []string{"f16", "q8_0", "q4_0"} {
			mask := masks[(3*i+j)%len(masks)]
			cases = append(cases, Case(fmt.Sprintf("route=unpack d=%d v=%s nq=%d nk=%d gqa=%d kv=%d seq=2 mask3=2 mask=%s sinks=%d", d, v, 9+i, 70+31*j, 1+2*j, 1+i, mask, j%2)))
		}
	}
	for i, o := range run(t, p, cases) {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
	}
}
