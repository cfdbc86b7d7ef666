package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dot4fa/internal/fault"
	"dot4fa/internal/page"
)

var update = flag.Bool("update", false, "write the golden files")

// sample is a made-up run: packed16 wins deep and loses the short prefill.
func sample() *Result {
	r := &Result{Device: "NVIDIA H200", Backend: "CUDA0", Commit: "test", Upstream: "abc", Recipe: "cuda", Repeat: 3,
		When: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Memory: Memory{GBps: 4000, From: "copy"}, Peak: PeakOf("NVIDIA H200")}
	for _, c := range []struct {
		nk, nq        int
		us, mixed, fl float64
	}{{512, 1, 10, 20, 8}, {512, 512, 90, 45, 40}, {131072, 1, 110, 730, 148}, {131072, 4, 150, 580, 165}, {131072, 512, 9000, 8800, 8500}} {
		for _, b := range []struct {
			name string
			us   float64
		}{{"q8_0/q4_0", c.mixed}, {"f16/f16", c.fl}} {
			r.Rows = append(r.Rows, Row{NK: c.nk, NQ: c.nq, D: 256, GQA: 6, KVHeads: 4, V: "q4_0", US: c.us, Spread: 0.04, Repeat: 3, Route: "some kernel",
				Baseline: b.name, BaseUS: b.us, BaseSpr: 0.01, FloorUS: float64(c.nk) * 4 * 416 / 4e6})
		}
	}
	r.EndToEnd = []Tokens{{Cache: "packed16/q4_0", Gen: 64, Depth: 4096, PerSecond: 100, Spread: 0.02, Repeat: 3}, {Cache: "f16/f16", Gen: 64, Depth: 4096, PerSecond: 90, Repeat: 3}}
	r.Model = &Model{Name: "m", What: "a <model>", Bytes: 1}
	r.Failed = []Failed{{"nk=1 nq=1 d=256 gqa=6 f16/f16", notReached}}
	return r
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values      []float64
		mid, spread float64
	}{{nil, 0, 0}, {[]float64{3}, 3, 0}, {[]float64{4, 2}, 3, 2.0 / 3}, {[]float64{9, 10, 30}, 10, 2.1}, {[]float64{0, 0}, 0, 0}} {
		mid, spread := Median(c.values)
		if mid != c.mid || math.Abs(spread-c.spread) > 1e-12 {
			t.Errorf("%v: %g, %g, want %g, %g", c.values, mid, spread, c.mid, c.spread)
		}
	}
	values := []float64{3, 1, 2}
	if Median(values); values[0] != 3 {
		t.Error("the samples were reordered")
	}
}

func TestBeyond(t *testing.T) {
	for _, c := range []struct {
		a, as, b, bs float64
		want         bool
	}{{101, 0, 100, 0, false}, {103, 0, 100, 0, true}, {105, 0.03, 100, 0.03, false}, {107, 0.03, 100, 0.03, true}, {50, 0, 100, 0, false}} {
		if got := beyond(c.a, c.as, c.b, c.bs); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestStored(t *testing.T) {
	dir := t.TempDir()
	r := sample()
	files, err := r.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", f, len(data), err)
		}
	}
	got, err := Load(filepath.Join(dir, "nvidia-h200.json"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, got); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(*Result){
		"no baseline":           func(r *Result) { r.Rows[0].Baseline = "" },
		"no V":                  func(r *Result) { r.Rows[0].V = "" },
		"no KV heads":           func(r *Result) { r.Rows[0].KVHeads = 0 },
		"a spread below none":   func(r *Result) { r.Rows[0].Spread = -1 },
		"a floor below nothing": func(r *Result) { r.Rows[0].FloorUS = -1 },
		"an escape":             func(r *Result) { r.Device = "\x1b[31mGPU" },
	} {
		bad := sample()
		change(bad)
		data, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "bad.json")
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); fault.Code(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"cut": `{"device": "x", "rows": [`, "empty": `{}`, "a row without times": `{"device":"x","rows":[{"nk":1,"nq":1,"d":64,"gqa":1}]}`} {
		file := filepath.Join(dir, "bad.json")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); fault.Code(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHang: a program that does not end costs its own figures and no others.
func TestHang(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	defer func(d time.Duration) { patience = d }(patience)
	patience = 200 * time.Millisecond
	const script = `#!/bin/sh
case "$PACKED16_PERF_SHAPES" in *,16384,*) exec sleep 600 ;; esac
say() { echo "INSERT INTO test_backend_ops (op_name, op_params, supported, time_us, n_runs) VALUES ('$1', '$2', '1', '5.0', '1');"; }
case "$*" in
*none*) printf 'Backend 1/1: CUDA0\n  Device description: X\n' ;;
*CPY*) say CPY packed16_copy_bytes=1000 ;;
*) for c in packed16 q8_0; do say FLASH_ATTN_EXT "K=$c,V=q8_0,hs=256,nh=4,gqa=6,kv=512,nb=1"; done
   say FLASH_ATTN_EXT "K=f16,V=f16,hs=256,nh=4,gqa=6,kv=512,nb=1" ;;
esac
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test-backend-ops"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	sel, err := ParseShapes("nk=512,16384/nq=1/v=q8_0", false)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{Bin: dir, Backend: "cuda", Recipe: "cuda", Repeat: 2, Least: time.Millisecond, Within: 500 * time.Millisecond}
	r, err := b.Run(context.Background(), Plan{Suites: []string{"attention"}, Shapes: sel})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].NK != 512 || r.Broken() == nil || !strings.Contains(r.Failed[0].Why, "ran on after") {
		t.Errorf("%d rows, failed %+v", len(r.Rows), r.Failed)
	}
}

func TestMerge(t *testing.T) {
	a, b := sample(), sample()
	a.EndToEnd, a.Model = nil, nil
	b.Rows = b.Rows[:2] // nk=512, nq=1
	b.Rows[0].US = 5
	b.Rows = append(b.Rows, Row{NK: 512, NQ: 1, D: 64, GQA: 4, KVHeads: 8, V: "f16", US: 1, Baseline: "f16/f16", BaseUS: 1})
	r, replaced, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 11 || len(r.EndToEnd) != 2 || r.Model == nil || len(a.Rows) != 10 {
		t.Errorf("%d rows, %d tests, %v; the first now has %d rows", len(r.Rows), len(r.EndToEnd), r.Model, len(a.Rows))
	}
	if replaced != 2 {
		t.Errorf("%d figures were replaced, not 2", replaced)
	}
	if row, ok := r.canonical(1, 512, "q8_0/q4_0"); !ok || row.US != 5 {
		t.Errorf("the earlier figure stayed: %+v", row)
	}
	a.EndToEnd, a.Model = sample().EndToEnd[:1], sample().Model
	b.EndToEnd[0].PerSecond = 7
	if r, replaced, err := Merge(a, b); err != nil || replaced != 3 || len(r.EndToEnd) != 2 || r.EndToEnd[0].PerSecond != 7 {
		t.Errorf("%d replaced, tests %+v, %v", replaced, r.EndToEnd, err)
	}
	a.Model.Name = "another"
	if _, _, err := Merge(a, b); fault.Code(err) != fault.Usage {
		t.Errorf("two models: %v", err)
	}
	b.Commit = "another"
	if _, _, err := Merge(a, b); fault.Code(err) != fault.Usage {
		t.Errorf("two commits: %v", err)
	}
}

func TestCompare(t *testing.T) {
	before, now := sample(), sample()
	for i := range now.Rows {
		if now.Rows[i].NK == 131072 && now.Rows[i].NQ == 1 {
			now.Rows[i].US *= 1.2 // beyond 2 × 4 %
		}
		if now.Rows[i].NK == 512 && now.Rows[i].NQ == 1 {
			now.Rows[i].US *= 1.07 // within
		}
	}
	now.EndToEnd[1].PerSecond = 120
	changes, err := Compare(before, now)
	if err != nil {
		t.Fatal(err)
	}
	var slower, faster []string
	for _, c := range changes {
		if c.Slower {
			slower = append(slower, c.What)
		}
		if c.Faster {
			faster = append(faster, c.What)
		}
	}
	if len(changes) != 7 || strings.Join(slower, ";") != "nk=131072 nq=1 d=256 gqa=6 packed16/q4_0" || strings.Join(faster, ";") != "tg64 @ d4096 f16/f16" {
		t.Errorf("%d changes, slower %v, faster %v", len(changes), slower, faster)
	}
	if err := Slower(changes); fault.Code(err) != fault.VerifyFailed || !strings.Contains(err.Error(), "× 1.20") {
		t.Errorf("slower: %v", err)
	}
	if same, err := Compare(before, sample()); err != nil || Slower(same) != nil {
		t.Errorf("a run is slower than itself: %v", err)
	}
	now.Device = "another"
	if _, err := Compare(before, now); fault.Code(err) != fault.Usage {
		t.Errorf("another device: %v", err)
	}
	if _, err := Compare(before, &Result{Device: before.Device}); fault.Code(err) != fault.Usage {
		t.Errorf("nothing in common: %v", err)
	}
}

func TestTargets(t *testing.T) {
	scalar := &Result{Reference: "a table", Rows: []Row{{NK: 131072, NQ: 512, D: 256, GQA: 6, V: "q4_0", Baseline: "q8_0/q4_0", BaseUS: 60000}}}
	goals = append(goals[:len(goals):len(goals)], goal{512, 131072, overScalar, 0.16})
	defer func() { goals = goals[:len(goals)-1] }()
	got := map[string]Target{}
	if _, err := Targets(sample(), scalar); fault.Code(err) != fault.Usage {
		t.Errorf("a run of another device: %v", err)
	}
	scalar.Device = sample().Device
	targets, err := Targets(sample(), scalar)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range targets {
		got[x.Over+" "+page.Thousands(x.NK)+" "+page.Thousands(x.NQ)] = x
	}
	for key, want := range map[string]struct {
		ratio float64
		met   bool
	}{
		"q8_0/q4_0 131,072 1":       {110.0 / 730, true},
		"f16/f16 131,072 1":         {110.0 / 148, true},
		overFloor + " 131,072 1":    {110 / (131072 * 4 * 416 / 4e6), false},
		"nq=1 131,072 4":            {150.0 / 110, true},
		"q8_0/q4_0 16,384 512":      {0, false},
		overScalar + " 131,072 512": {0.15, true},
	} {
		if x := got[key]; math.Abs(x.Ratio-want.ratio) > 1e-9 || x.Met != want.met {
			t.Errorf("%s: %+v, want %+v", key, x, want)
		}
	}
	if slower, all := sample().sameBytes(); slower != 1 || all != 5 {
		t.Errorf("%d of %d shapes lose to the cache of the same bytes, want 1 of 5", slower, all)
	}
	if len(got) != len(goals) {
		t.Errorf("%d targets of %d", len(got), len(goals))
	}
}

func TestParseShapes(t *testing.T) {
	count := func(text string, cpu bool) (int, int) {
		t.Helper()
		sel, err := ParseShapes(text, cpu)
		if err != nil {
			t.Fatal(err)
		}
		return len(sel.Shapes), len(sel.caches())
	}
	for text, want := range map[string]int{"": 12, "canonical": 12, "heads": 48, "all": 60, "small": 6, "nk=512": 3, "nk=512/nq=1,2/d=64,128/gqa=2,4": 8} {
		if n, caches := count(text, false); n != want || caches != 7 {
			t.Errorf("%q: %d shapes and %d caches, want %d and 7", text, n, caches, want)
		}
	}
	if n, _ := count("", true); n != 6 {
		t.Errorf("on a CPU: %d shapes", n)
	}
	if _, caches := count("v=q4_0", false); caches != 4 {
		t.Errorf("one V type: %d caches, want 4", caches)
	}
	for _, bad := range []string{"nk", "nk=", "nk=-1", "nk=a", "x=1", "d=100", "v=q5_0", "canonical/nk=512", "/"} {
		if _, err := ParseShapes(bad, false); fault.Code(err) != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestEnv: a program sees the recipe's environment, and what is set already wins.
func TestEnv(t *testing.T) {
	t.Setenv("DOT4FA_TEST_SET", "mine")
	b := &Bench{Bin: "/b", Env: map[string]string{"DOT4FA_TEST_SET": "recipe", "DOT4FA_TEST_OTHER": "recipe"}}
	if got, want := b.command("p", []string{"X=1"}, "a").String(), "DOT4FA_TEST_OTHER=recipe X=1 /b/p a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for key, want := range map[string]string{"DOT4FA_TEST_SET": "mine", "DOT4FA_TEST_OTHER": "recipe"} {
		if got, set := b.lookup(key); got != want || !set {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for device, want := range map[string]string{"NVIDIA H200": "nvidia-h200", "AMD Radeon RX 7900 XTX": "amd-radeon-rx-7900-xtx", "Intel(R) Xeon(R) @ 2.0GHz": "intel-r-xeon-r-2-0ghz", "路": "device"} {
		if got := Name(device); got != want {
			t.Errorf("%s is %s, want %s", device, got, want)
		}
	}
	for device, want := range map[string]float64{"AMD Radeon RX 7900 XTX": 960, "AMD Radeon RX 7900 XT": 800, "NVIDIA H200": 4800, "NVIDIA RTX 5090": 0} {
		if p := PeakOf(device); (p == nil) != (want == 0) || p != nil && p.GBps != want {
			t.Errorf("%s: %+v, want %g", device, p, want)
		}
	}
}

// TestGolden: page and pictures are byte for byte the stored ones; look at them before updating.
func TestGolden(t *testing.T) {
	r := sample()
	var page, text bytes.Buffer
	if err := r.Markdown(&page, "a.svg"); err != nil {
		t.Fatal(err)
	}
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{
		"page.md": page.Bytes(), "print.txt": text.Bytes(),
		"times.svg": r.Times(Shape{D: 256, KVHeads: 4, GQA: 6}), "roofline.svg": r.Roofline(), "tokens.svg": r.Rates(),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if strings.HasSuffix(name, ".svg") {
			d := xml.NewDecoder(bytes.NewReader(got))
			for err = nil; err == nil; {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
