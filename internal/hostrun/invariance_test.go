package hostrun

import (
	"fmt"
	"testing"
)

// nvidia is the configuration NVIDIA GPUs run, watched as amd is: matrix tiles (emulated by shuffles), Q in shared memory,
// weights in f32 in the vector kernels.
func nvidia(t *testing.T) *Program {
	return compileKernels(t, "nvidia", []int{64, 256}, []string{"q4_0"}, nil, KernelOptions{Options: Options{Traced: true}})
}

// The same text as NVIDIA GPUs run it: every mask, GQA ratio and number of query rows, with K packed by the call, sinks and
// several sequences among them.
func TestNVIDIAConfiguration(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	cases := []Case{
		"d=256 route=prefill nq=40 nk=320 gqa=2 mask=sequences", "d=64 route=prefill nq=70 nk=390 gqa=2 mask=dead sinks=1",
		"d=256 nk=700 mask=holes", "d=64 nk=257 gqa=2", "d=256 nq=5 nk=300 mask=dead sinks=1", "d=64 nq=8 nk=1025 gqa=8 mask=window",
		"d=256 nk=1025 mask=shuffled cta=2 sinks=1", "d=64 nk=1 gqa=1", "d=64 nk=2049 gqa=16 mask=causal unit=8 cta=8",
		"d=64 nq=2 nk=700 mask=none cta=2", "d=256 nk=300 gqa=6 mask=none",
	}
	for nq := 2; nq <= 8; nq++ {
		cases = append(cases, Case(fmt.Sprintf("d=64 nq=%d nk=%d gqa=%d mask=%s kv=%d seq=%d mask3=%d cta=%d k=%s sinks=%d cols=%d order=%d",
			nq, []int{300, 1152}[nq%2], gqas[nq%len(gqas)], masks[nq%len(masks)], 1+nq%2, 1+nq%3/2, 1+nq%3/2, nq%5, []string{"packed", "f16"}[nq%2], nq%3/2,
			[]int{0, 8, 24, 16}[nq%4], nq)))
	}
	judge(t, nvidia(t), cases)
	p := compileKernels(t, "nvidia-v", []int{128}, []string{"f16", "q8_0"}, nil, KernelOptions{Options: Options{Traced: true}})
	cases = nil
	for _, v := range []string{"f16", "q8_0"} {
		for _, c := range []string{"nk=513 mask=holes", "nq=4 nk=300 gqa=8 mask=window cta=1", "nq=3 nk=700 gqa=6 mask=bias kv=2 seq=2 cta=2 sinks=1", "nq=8 nk=257 mask=sequences"} {
			cases = append(cases, Case("d=128 v="+v+" "+c))
		}
	}
	judge(t, p, cases)
}

func judge(t *testing.T, p *Program, cases []Case) {
	t.Helper()
	for i, o := range run(t, p, cases) {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
	}
}

// For one query row the output bits depend on nothing but its data: not on nq, the rows beside it, the route,
// the split, the size of a partial result, the columns of a block or the order of threads. The split and the
// single pass are therefore not merely within 1e-6 of each other.
func TestBatchInvariance(t *testing.T) {
	shapes := []string{"d=256 v=q4_0 nk=2300 gqa=6 mask=causal", "d=256 v=q4_0 nk=1100 gqa=16 mask=shuffled sinks=1"}
	if !testing.Short() {
		shapes = append(shapes, "d=128 v=f16 nk=1500 gqa=8 kv=2 mask=holes", "d=64 v=q8_0 nk=1290 gqa=1 seq=2 mask=dead", "d=64 v=f16 nk=257 gqa=2 mask=bias")
	}
	for _, shape := range shapes {
		invariant(t, amd(t), shape, "")
	}
}

// The same of the matrix-tile kernel, whose blocks take 8, 16 or 24 columns.
func TestBatchInvarianceOnMatrixTiles(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	for _, shape := range []string{"d=256 v=q4_0 nk=1100 gqa=6 mask=shuffled sinks=1", "d=64 v=q4_0 nk=1290 gqa=5 kv=2 mask=holes", "d=64 v=q4_0 nk=257 gqa=16 mask=bias"} {
		invariant(t, nvidia(t), shape, " cols=8")
	}
}

// invariant runs the 8 query rows of a shape in many ways, the last of them also with the plan `other`.
func invariant(t *testing.T, p *Program, shape, other string) {
	t.Helper()
	var cases []Case
	var first, rows []int
	add := func(from, n int, plan string) {
		cases = append(cases, Case(fmt.Sprintf("%s nq=8 first=%d rows=%d %s order=%d", shape, from, n, plan, len(cases)+1)))
		first, rows = append(first, from), append(rows, n)
	}
	add(0, 8, "cta=4")
	for row := range 8 {
		add(row, 1, []string{"cta=0", "cta=4"}[row%2])
	}
	add(2, 3, "cta=1")
	add(0, 8, "cta=0")
	add(0, 8, "cta=3")
	add(5, 2, "cta=16")
	add(0, 8, "unit=8 cta=8")
	add(1, 6, "unit=8 cta=16")
	add(0, 4, "unit=8")
	if other != "" {
		add(0, 8, "cta=2"+other)
	}
	outcomes := run(t, p, cases)
	want := outcomes[0].Rows
	seqs := len(want) / 8
	for i, o := range outcomes {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
		for seq := range seqs {
			for row := range rows[i] {
				if o.Rows[seq*rows[i]+row] != want[seq*8+first[i]+row] {
					t.Errorf("%s: query row %d of sequence %d has other bits than in the batch of 8", cases[i], first[i]+row, seq)
				}
			}
		}
	}
}
