package hostrun

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"dot4fa/internal/recipe"
)

var full = flag.Bool("full", false, "run the whole matrix of attention cases, not the sample of it")

var assets = os.DirFS(filepath.Join("..", ".."))

var compiled = map[string]*Program{}

// findCompiler skips by name without a compiler.
func findCompiler(t *testing.T) string {
	t.Helper()
	cxx, err := FindCompiler(t.Context())
	if err != nil {
		t.Skipf("skipped: needs clang++ with AddressSanitizer: %v", err)
	}
	return cxx
}

func loadRecipe(t *testing.T) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Load(assets, "rdna3")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compileKernels builds the rdna3 recipe's kernels once for each key, or skips by name without a compiler.
func compileKernels(t *testing.T, key string, heads []int, vs []string, variant func(*recipe.Kernel), o KernelOptions) *Program {
	t.Helper()
	if p := compiled[key]; p != nil {
		return p
	}
	cxx, r := findCompiler(t), loadRecipe(t)
	if heads != nil {
		r.Kernel.HeadSizes, r.Kernel.VTypes = heads, vs
	}
	if variant != nil {
		variant(&r.Kernel)
	}
	o.Compiler, o.Dir = cxx, filepath.Join(scratch, key)
	p, err := CompileKernels(t.Context(), r, assets, o)
	if err != nil {
		t.Fatal(err)
	}
	compiled[key] = p
	return p
}

// runSource compiles testdata/<name>.cpp with the rdna3 recipe's kernels, changed by mutate if that is not nil, and runs it; it skips by
// name without a compiler. key is the program's own directory.
func runSource(t *testing.T, key, name string, o Options, mutate func(name, text string) string) *Result {
	t.Helper()
	cxx, r := findCompiler(t), loadRecipe(t)
	o.Compiler, o.Dir, o.Name = cxx, filepath.Join(scratch, key), name
	kernels := filepath.Join(o.Dir, "kernels")
	names, err := writeKernels(kernels, r, assets, mutate)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		if err := translate(filepath.Join(kernels, file)); err != nil {
			t.Fatal(err)
		}
	}
	o.Include, o.Sources = []string{kernels}, []string{filepath.Join("testdata", name+".cpp")}
	p, err := Compile(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// amd is the configuration AMD GPUs run, watched for races and uninitialised reads.
func amd(t *testing.T) *Program {
	o := KernelOptions{Options: Options{Traced: true, Defines: AMD}}
	if testing.Short() {
		return compileKernels(t, "amd", []int{256}, []string{"q4_0"}, nil, o)
	}
	return compileKernels(t, "amd", nil, nil, nil, o)
}

var (
	masks = []string{"causal", "none", "window", "shuffled", "sequences", "holes", "dead", "bias"}
	gqas  = []int{6, 1, 2, 8, 16}
	edges = []int{1, 64, 255, 256, 257, 511, 512, 513, 1000, 1023, 1025, 2047, 2048, 2049}
)

// matrix lists the cases of one head size and V type: every route, mask, GQA ratio and edge of nk is in it; -full
// combines them, otherwise they are paired off in turn.
func matrix(d int, v string) []Case {
	var cases []Case
	n := 0
	turn := func(list []int, by int) int { return list[(n/by)%len(list)] }
	add := func(format string, args ...any) {
		c := fmt.Sprintf("d=%d v=%s order=%d ", d, v, n+1) + fmt.Sprintf(format, args...)
		cases = append(cases, Case(c))
		n++
	}
	each := func(nks []int, run func(nk, gqa int, mask string)) {
		for i, nk := range nks {
			switch {
			case *full:
				for _, mask := range masks {
					run(nk, turn(gqas, 1), mask)
				}
			default:
				run(nk, turn(gqas, 1), masks[(i+n/3)%len(masks)])
			}
		}
	}
	// short decode: one block of all chunks, and the split of long decode
	each(edges, func(nk, gqa int, mask string) {
		add("nk=%d gqa=%d mask=%s sinks=%d", nk, gqa, mask, n%2)
		if nk >= 1000 {
			add("nk=%d gqa=%d mask=%s cta=%d kv=%d", nk, gqa, mask, 1+n%5, 1+n%2)
		}
	})
	// a decode row that sees nothing
	add("nq=3 first=1 rows=1 nk=512 mask=dead")
	add("nq=3 first=1 rows=1 nk=512 mask=dead sinks=1 cta=2")
	// verify: 2 to 8 columns, several sequences and KV heads, K packed by the call
	for nq := 2; nq <= 8; nq++ {
		each([]int{300, 1152}, func(nk, gqa int, mask string) {
			add("nq=%d nk=%d gqa=%d mask=%s kv=%d seq=%d cta=%d k=%s sinks=%d", nq, nk, gqa, mask, 1+n%2, 1+n%3/2,
				n%5, []string{"packed", "f16"}[n%2], n%3/2)
		})
	}
	add("nq=4 nk=640 gqa=6 mask=causal kv=2 seq=3 mask3=3 cta=2")
	// prefill: whole and broken tiles of queries and cells
	each([]int{9, 64, 320, 511, 700}, func(nk, gqa int, mask string) {
		for _, nq := range []int{9, 33} {
			add("route=prefill nq=%d nk=%d gqa=%d mask=%s kv=%d seq=%d mask3=%d k=%s sinks=%d", nq, max(nk, nq), min(gqa, 6), mask, 1+n%2,
				1+n%3/2, 1+n%3/2, []string{"packed", "f16"}[n/2%2], n%2)
		}
	})
	add("route=prefill nq=40 nk=700 gqa=2 mask=causal assume_causal=1")
	for i, mask := range masks {
		if *full || i%4 == n%4 {
			add("route=prefill nq=70 nk=390 gqa=2 mask=%s", mask)
		}
	}
	if d == 64 || *full {
		add("route=prefill nq=512 nk=768 gqa=2 mask=causal")
		add("nq=8 nk=768 gqa=2 mask=causal")
	}
	return cases
}

func run(t *testing.T, p *Program, cases []Case) []Outcome {
	t.Helper()
	outcomes, err := p.RunCases(t.Context(), cases, runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// Every route agrees with float64 from the dequantised Q, K and V, under random thread orders, with NaN in
// every cell that no query sees.
func TestRoutesAgreeWithFloat64(t *testing.T) {
	p := amd(t)
	heads, vs := []int{64, 128, 256}, []string{"f16", "q8_0", "q4_0"}
	if testing.Short() {
		heads, vs = []int{256}, []string{"q4_0"}
	}
	var cases []Case
	for _, d := range heads {
		for _, v := range vs {
			cases = append(cases, matrix(d, v)...)
		}
	}
	worst := map[string]float64{}
	for i, o := range run(t, p, cases) {
		if err := cases[i].Judge(o); err != nil {
			t.Error(err)
		}
		route := cases[i].Field("route")
		if route == "" {
			route = "decode"
		}
		key := route + " " + cases[i].Field("v")
		worst[key] = max(worst[key], o.NMSE)
	}
	t.Logf("%d cases, worst NMSE by route and V type: %v", len(cases), worst)
}

// Other tiles than the recipe's are right too: the seed's experiments are variants of one source.
func TestTileVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	cases := []Case{
		"d=128 v=q8_0 nk=1300 mask=holes", "d=128 v=q8_0 nq=5 nk=2049 mask=shuffled gqa=6 cta=8 unit=4 sinks=1", "d=128 v=q8_0 nq=2 nk=257 mask=dead gqa=1",
		"d=128 v=q8_0 route=prefill nq=70 nk=333 gqa=6 mask=holes kv=2", "d=128 v=q8_0 route=prefill nq=33 nk=200 gqa=6 mask=none sinks=1",
		"d=128 v=q8_0 route=prefill nq=20 nk=260 gqa=1 mask=window",
	}
	for i, v := range []struct {
		name string
		set  func(*recipe.Kernel)
	}{
		{"pairs of heads, small tiles", func(k *recipe.Kernel) { k.GQAGroup, k.BM, k.BN, k.DecodeBN, k.VSubTile = "pair", 32, 32, 32, 4 }},
		{"K not staged, long chunks", func(k *recipe.Kernel) {
			k.KStaging, k.Chunk, k.SuperChunk, k.DecodeBN, k.VSubTile = "none", 256, 1024, 128, 16
		}},
		{"triads of heads, least tiles", func(k *recipe.Kernel) { k.GQAGroup, k.BM, k.BN, k.SuperChunk = "triad", 8, 32, 512 }},
	} {
		if i > 0 && !*full {
			t.Logf("%s: with -full only", v.name)
			continue
		}
		p := compileKernels(t, v.name, []int{128}, []string{"q8_0"}, v.set, KernelOptions{Options: Options{Traced: true, Defines: AMD}})
		for i, o := range run(t, p, cases) {
			if err := cases[i].Judge(o); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
		}
	}
}

// D/4 dp4a are executed for each (query, key) pair, counted as they run.
func TestDP4APerPair(t *testing.T) {
	p := amd(t)
	const nk, d = 512, 256
	for c, pairs := range map[Case]int64{
		"nk=512 gqa=6 mask=none":                           6 * nk,
		"nq=8 nk=512 gqa=6 mask=none":                      48 * nk,
		"nk=512 gqa=6 mask=none cta=2":                     6 * nk,
		"route=prefill nq=64 nk=512 gqa=2 mask=none pad=0": 128 * nk,
	} {
		o := run(t, p, []Case{c})[0]
		if got := float64(o.DP4A) / float64(pairs); got != d/4 {
			t.Errorf("%s: %g dp4a per pair, want %d", c, got, d/4)
		}
	}
}
