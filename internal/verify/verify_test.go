package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dot4fa/internal/fault"
)

func mustRun(t *testing.T, o Options) *Report {
	t.Helper()
	rep, err := Run(context.Background(), o)
	if err != nil {
		t.Fatalf("%v\nhint: %s", err, fault.Hint(err))
	}
	return rep
}

// A whole run: cells in the order asked for, q8_0/q4_0 added because a packed16
// cell needs it, bounds relative to q8_0, cross-check equal.
func TestQuality(t *testing.T) {
	o := toy(t)
	rep := mustRun(t, o)
	if len(rep.Failures) > 0 || !slices.Equal(rep.LeftOut, []string{Ops, State, Depth}) {
		t.Errorf("failures %q, left out %q", rep.Failures, rep.LeftOut)
	}
	var got []string
	for _, c := range rep.Quality.Cells {
		got = append(got, c.K+"/"+c.V)
		if c.packed() && (c.Bound == nil || !c.Bound.Holds || !strings.Contains(c.Bound.Source, "1.5")) {
			t.Errorf("%s/%s: bound %+v", c.K, c.V, c.Bound)
		}
		if len(c.Bins) != 4 || c.KLD.N != 2*rows(256) || c.KLD.Mean <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"q8_0/f16", "packed16/f16", "packed16-mse/q4_0", "q8_0/q4_0"}; !slices.Equal(got, want) {
		t.Errorf("cells %q, want %q", got, want)
	}
	if x := rep.Quality.Checks; len(x) != 1 || x[0].Pair != "packed16/f16" || x[0].Problem != "" || x[0].Attempts != 1 {
		t.Errorf("cross-checks %+v", x)
	}
	if len(rep.Quality.Depth) != 4 {
		t.Errorf("depth %+v", rep.Quality.Depth)
	}
	log := strings.Join(runs(t), "\n")
	for _, want := range []string{"llama-perplexity mse ", "llama-perplexity absmax ", "-ctk packed16 -ctv q4_0"} {
		if !strings.Contains(log, want) {
			t.Errorf("no run with %q in\n%s", want, log)
		}
	}
	var text strings.Builder
	if err := rep.Print(&text); err != nil || !strings.Contains(text.String(), "left out: state") || strings.Contains(text.String(), os.TempDir()) {
		t.Errorf("%v, printed:\n%s", err, text.String())
	}
	if svg := string(rep.SVG()); !strings.Contains(svg, "packed16-mse/q4_0") || strings.Contains(svg, "NaN") {
		t.Errorf("picture:\n%s", svg)
	}
}

// The second run measures nothing; after a change of the model, or with Fresh,
// everything.
func TestResume(t *testing.T) {
	o := toy(t)
	first := mustRun(t, o)
	n := len(runs(t))
	again := mustRun(t, o)
	if made := len(runs(t)) - n; made != 1 { // which backends there are
		t.Errorf("the second run called %d programs: %q", made, runs(t)[n:])
	}
	for i, c := range again.Quality.Cells {
		if !c.Reused || c.KLD != first.Quality.Cells[i].KLD {
			t.Errorf("%+v is not %+v", c, first.Quality.Cells[i])
		}
	}
	// one cell more: the base and the others are there
	n = len(runs(t))
	o.Types = append(o.Types, Pair{"q4_0", "f16"})
	mustRun(t, o)
	if made := len(runs(t)) - n; made != 2 {
		t.Errorf("one more cell called %d programs", made)
	}
	n = len(runs(t))
	o.Fresh = true
	mustRun(t, o)
	if made := len(runs(t)) - n; made != 1+1+5+1 {
		t.Errorf("fresh called %d programs: %q", made, runs(t)[n:])
	}
	n = len(runs(t))
	o.Fresh = false
	writeToy(t, o.Model, 128)
	mustRun(t, o)
	if made := len(runs(t)) - n; made != 1+1+5+1 {
		t.Errorf("another model called %d programs", made)
	}
	// half a result is none
	files, err := filepath.Glob(filepath.Join(o.Dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	n = len(runs(t))
	mustRun(t, o)
	if made := len(runs(t)) - n; made != 1+5+1 { // the base's logits are whole
		t.Errorf("damaged results called %d programs", made)
	}
}

// Two runs on the same results: the second waits for the first.
func TestTwoRuns(t *testing.T) {
	o := toy(t)
	s, err := openStore(o.Dir, false)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := s.lock(context.Background(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if _, err := Run(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it did not wait: %v", err)
	}
	unlock()
	mustRun(t, o)
}

// An interrupt ends the run; what was finished is kept.
func TestInterrupted(t *testing.T) {
	o := toy(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Run(ctx, o); err == nil {
		t.Error("an interrupted run has a result")
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dir, "*.part")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestQualityFailures(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		edit func(*Options)
		code int // of the error; 0 when it is in the report
		want string
	}{
		"past the bound":         {env: map[string]string{"FAKE_EPS": "q8_0=0.004 packed16=0.008 q4_0=0.05"}, want: "packed16/f16 at 256: mean KLD"},
		"a pair is refused":      {env: map[string]string{"FAKE_FAIL": "packed16/q4_0"}, want: "refused for toy"},
		"the base is refused":    {env: map[string]string{"FAKE_FAIL": "f16/f16"}, code: fault.VerifyFailed, want: "f16/f16"},
		"logits cut short":       {env: map[string]string{"FAKE_CUT": "packed16/f16"}, want: "cut short"},
		"lines lost twice":       {env: map[string]string{"FAKE_LOSE": "2"}, want: "without its last lines"},
		"text too short":         {env: map[string]string{"FAKE_TEXT": "300"}, code: fault.Usage, want: "needs 512 tokens, and it has only 300"},
		"too few chunks":         {env: map[string]string{"FAKE_TEXT": "600"}, edit: func(o *Options) { o.Chunks = 3 }, code: fault.Usage, want: "holds 2 chunks"},
		"too few, no word of it": {env: map[string]string{"FAKE_TEXT": "600", "FAKE_SILENT": "1"}, edit: func(o *Options) { o.Chunks = 3 }, code: fault.Usage, want: "holds 2 chunks"},
		"no model":               {edit: func(o *Options) { o.Model = "" }, code: fault.Usage, want: "no model was given"},
		"model not there":        {edit: func(o *Options) { o.Model += "x" }, code: fault.Usage, want: "does not exist"},
		"text is a directory":    {edit: func(o *Options) { o.Text = o.Dir + "/.." }, code: fault.Usage, want: "directory"},
		"not a GGUF":             {edit: func(o *Options) { o.Model = o.Text }, code: fault.Usage, want: "not a GGUF"},
		"everything left out":    {edit: func(o *Options) { o.Skip = Parts }, code: fault.Usage, want: "left out"},
		"head size of 80":        {edit: func(o *Options) { o.Model += ".80" }, code: fault.Usage, want: "the head size is 80"},
		"program is not built": {edit: func(o *Options) {
			o.Program = func(string) (string, error) { return "", fault.New(fault.Environment, "not built") }
		}, code: fault.Environment, want: "not built"},
	} {
		t.Run(name, func(t *testing.T) {
			o := toy(t)
			writeToy(t, o.Model+".80", 80)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			if c.edit != nil {
				c.edit(&o)
			}
			rep, err := Run(context.Background(), o)
			switch {
			case c.code == 0 && err != nil:
				t.Fatal(err)
			case c.code == 0:
				if len(rep.Failures) != 1 || !strings.Contains(rep.Failures[0], c.want) {
					t.Errorf("failures %q, want one with %q", rep.Failures, c.want)
				}
			case err == nil:
				t.Fatalf("accepted: %+v", rep)
			case fault.Code(err) != c.code || !strings.Contains(err.Error(), c.want):
				t.Errorf("exit code %d: %v", fault.Code(err), err)
			}
			if err != nil && c.code != fault.Environment && fault.Hint(err) == "" {
				t.Errorf("no hint: %v", err)
			}
		})
	}
}

// Lines lost once are a second attempt, not a failure.
func TestLostLines(t *testing.T) {
	o := toy(t)
	t.Setenv("FAKE_LOSE", "1")
	rep := mustRun(t, o)
	if x := rep.Quality.Checks[0]; len(rep.Failures) > 0 || x.Attempts != 2 {
		t.Errorf("%+v, failures %q", x, rep.Failures)
	}
}

// A cell that says something else than llama-perplexity is a failure.
func TestDisagreement(t *testing.T) {
	o := toy(t)
	rep := mustRun(t, o)
	q := rep.Quality
	for i := range q.Cells {
		q.Cells[i].KLD.Mean *= 3
		q.Cells[i].KLD.Mean += 1e-3
	}
	if q.agree(); q.Checks[0].Problem == "" {
		t.Errorf("%+v agrees with %+v", q.Checks[0], q.Cells)
	}
}

const (
	opsGood = "Backend 2/2: CPU\n  PACK_K_PACKED16(a=1): \x1b[1;32mOK\x1b[0m\n  PACK_K_PACKED16(a=2): \x1b[1;32mOK\x1b[0m\n" +
		"  FLASH_ATTN_EXT(K=packed16): \x1b[1;32mOK\x1b[0m\n  FLASH_ATTN_EXT(K=packed16,b): \x1b[1;32mOK\x1b[0m\n  2/2 tests passed\n  Backend CPU: \x1b[1;32mOK\x1b[0m\n"
	stateGood = "K packed16, V f16\n  ok   one\n  skip two: this model cannot\n  ok   three\ntest-packed16-state: OK (0 failed)\n"
)

func TestOpsAndState(t *testing.T) {
	for name, c := range map[string]struct {
		ops, state, exit string
		want             []string // the beginnings of the failures
	}{
		"good":            {ops: opsGood, state: stateGood},
		"a case fails":    {ops: strings.Replace(opsGood, "(a=2): \x1b[1;32mOK", "(a=2): [PACK] NMSE = 3 > 1 \x1b[1;31mFAIL", 1), state: stateGood, want: []string{"ops: PACK_K_PACKED16", "ops: PACK_K_PACKED16"}},
		"no case":         {ops: "Backend 2/2: CPU\n  0/0 tests passed\n", state: stateGood, want: []string{"ops:", "ops:", "ops:", "ops:"}},
		"none supported":  {ops: "  PACK_K_PACKED16(a=1): not supported [CPU]\n  FLASH_ATTN_EXT(a): not supported [CPU]\n  0/0 tests passed\n", state: stateGood, want: []string{"ops:", "ops:", "ops:", "ops:"}},
		"ends early":      {ops: strings.Split(opsGood, "  2/2")[0], state: stateGood, want: []string{"ops:", "ops:", "ops:", "ops:"}},
		"count differs":   {ops: strings.Replace(opsGood, "2/2 tests", "3/3 tests", 1), state: stateGood, want: []string{"ops:", "ops:", "ops:", "ops:"}},
		"state fails":     {ops: opsGood, state: "  ok   one\n  FAIL two\ntest-packed16-state: FAIL (1 failed)\n", want: []string{"state: 1 of 2"}},
		"state silent":    {ops: opsGood, state: "  ok   one\n", want: []string{"state: the program ended without a verdict"}},
		"state skipped":   {ops: opsGood, state: "test-packed16-state: SKIPPED, no model\n", want: []string{"state: the program's verdict is SKIPPED"}},
		"state counts":    {ops: opsGood, state: "  ok   one\ntest-packed16-state: OK (2 failed)\n", want: []string{"state: the program's verdict"}},
		"state empty":     {ops: opsGood, state: "test-packed16-state: OK (0 failed)\n", want: []string{"state: no check ran"}},
		"bad exit of all": {ops: opsGood, state: stateGood, exit: "3", want: []string{"ops:", "ops:", "ops:", "ops:", "state: the program ended badly"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := toy(t)
			o.Skip = []string{QualityOf, Depth}
			t.Setenv("FAKE_OPS", c.ops)
			t.Setenv("FAKE_STATE", c.state)
			t.Setenv("FAKE_EXIT", c.exit)
			rep := mustRun(t, o)
			if len(rep.Failures) != len(c.want) {
				t.Fatalf("failures %q, want %q", rep.Failures, c.want)
			}
			for i, w := range c.want {
				if !strings.HasPrefix(rep.Failures[i], w) {
					t.Errorf("failure %q, want %q", rep.Failures[i], w)
				}
			}
			if name == "good" && (len(rep.Ops) != 4 || rep.Ops[3].OK != 2 || rep.Ops[0].Backend != "GPU0" || rep.Ops[0].Device != "Toy GPU" || rep.State.Checks != 2 || rep.State.Skipped != 1) {
				t.Errorf("%+v %+v", rep.Ops, rep.State)
			}
		})
	}
}

// What passed is not run again with the same programs; what failed is.
func TestPartsAreKept(t *testing.T) {
	o := toy(t)
	o.Skip = []string{QualityOf, Depth}
	t.Setenv("FAKE_OPS", opsGood)
	t.Setenv("FAKE_STATE", "  FAIL one\ntest-packed16-state: FAIL (1 failed)\n")
	mustRun(t, o)
	t.Setenv("FAKE_STATE", stateGood)
	for i, want := range []int{2, 1, 1} { // which backends, state; which backends
		n := len(runs(t))
		rep := mustRun(t, o)
		if made := len(runs(t)) - n; made != want || len(rep.Failures) > 0 || !rep.Ops[0].Reused || rep.State.Reused != (i > 0) {
			t.Errorf("run %d called %d programs, want %d: %+v %+v", i, made, want, rep.Ops[0], rep.State)
		}
	}
	o.Fresh = true
	n := len(runs(t))
	mustRun(t, o)
	if made := len(runs(t)) - n; made != 1+4+1 {
		t.Errorf("fresh called %d programs", made)
	}
}

func TestParseType(t *testing.T) {
	for text, want := range map[string]Pair{"packed16-mse/q4_0": {"packed16-mse", "q4_0"}, "q8_0/f16": {"q8_0", "f16"}} {
		if got, err := ParseType(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, bad := range []string{"q8_0-mse/f16", "f16", "f16/packed16", "packed17/f16", ""} {
		if _, err := ParseType(bad); err == nil || fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The recorded bounds are those of the small model and hold there only.
func TestRecordedBounds(t *testing.T) {
	b, err := LoadBounds()
	if err != nil {
		t.Fatal(err)
	}
	m := b.Models[0]
	q := &Quality{Model: File{SHA256: m.SHA256}, Text: File{SHA256: m.TextSHA256}, Backend: m.Backend, Chunks: m.Chunks}
	cell := Cell{K: "packed16", V: "f16", Ctx: m.Ctx}
	cell.KLD = Mean{Mean: 2.71e-5, N: 1}
	q.Cells = []Cell{cell}
	if b.judge(q); q.Cells[0].Bound == nil || q.Cells[0].Bound.Holds || q.Cells[0].Bound.Limit != 2.7e-5 {
		t.Errorf("%+v", q.Cells[0])
	}
	q.Backend = "ROCm0"
	q.Cells = []Cell{cell}
	if b.judge(q); q.Cells[0].Bound != nil || q.Cells[0].Problem == "" {
		t.Errorf("on another backend, without q8_0: %+v", q.Cells[0])
	}
}
