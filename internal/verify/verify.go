// Package verify checks a built, patched llama.cpp: the cases of its own op test
// on every backend, states that go out and come back, and how far a model's
// predictions move when its cache changes type.
package verify

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
	"dot4fa/internal/input"
	"dot4fa/internal/progress"
	"dot4fa/internal/vram"
)

// The parts of a verification.
const (
	Ops       = "ops"
	State     = "state"
	QualityOf = "quality"
)

// Parts are all of them, in the order they run.
var Parts = []string{Ops, State, Depth, QualityOf}

// Options say what to verify.
type Options struct {
	Program    func(name string) (string, error) // the path of a built program
	Dir        string                            // where results are kept between runs
	Skip       []string                          // parts to leave out
	Quick      bool                              // fewer attention cases
	Fresh      bool                              // take nothing from earlier runs
	Model      string                            // a GGUF file
	Text       string                            // a text file
	Types      []Pair
	Ctxs       []int
	Chunks     int
	Bins       int    // ranges of positions, for each context
	Threads    int    // 0: llama.cpp's choice
	CrossCheck string // "first", "all" or "none": which cells llama-perplexity computes too
	Report     *progress.Reporter
	About      About
}

// Run verifies. What does not hold is in the report's Failures; the error is for
// what could not be judged.
func Run(ctx context.Context, o Options) (*Report, error) {
	rep := &Report{Format: 1, Made: time.Now().UTC().Format(time.RFC3339), About: o.About, LeftOut: []string{}, Failures: []string{}}
	runs := func(part string) bool { return !slices.Contains(o.Skip, part) }
	for _, part := range Parts {
		if !runs(part) {
			rep.LeftOut = append(rep.LeftOut, part)
		}
	}
	if len(rep.LeftOut) == len(Parts) {
		return nil, fault.New(fault.Usage, "everything is left out").Hintf("leave one of the --skip away")
	}
	var q *Quality
	if runs(State) || runs(QualityOf) {
		var err error
		if q, err = o.inputs(runs(QualityOf)); err != nil {
			return nil, err
		}
	}
	program, err := o.Program("test-backend-ops")
	if err != nil {
		return nil, err
	}
	if rep.Programs, err = sumPrograms(program); err != nil {
		return nil, err
	}
	if rep.Backends, err = backends(ctx, program); err != nil {
		return nil, err
	}
	s, err := openStore(o.Dir, o.Fresh)
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, o.Report.Say)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if runs(Ops) {
		if err := o.ops(ctx, s, rep, program); err != nil {
			return nil, err
		}
	}
	if runs(State) {
		if err := o.state(ctx, s, rep); err != nil {
			return nil, err
		}
	}
	if runs(Depth) {
		if err := o.depth(s, rep); err != nil {
			return nil, err
		}
	}
	if runs(QualityOf) {
		rep.Quality = q
		if err := o.quality(ctx, s, rep); err != nil {
			return nil, err
		}
	}
	return rep, o.keep(rep)
}

func (r *Report) fail(problem, what string) {
	if problem != "" {
		r.Failures = append(r.Failures, what+problem)
	}
}

// inputs reads and judges the model and the text.
func (o *Options) inputs(quality bool) (*Quality, error) {
	for _, f := range []struct{ file, flag string }{{o.Model, "--model"}, {o.Text, "--text"}} {
		if f.file == "" {
			return nil, fault.New(fault.Usage, "no %s was given", f.flag[2:]).
				Hintf("name one with %s, or leave the parts that need it out: --skip state,quality", f.flag)
		}
		if err := input.File(f.file, "name one that is there with "+f.flag); err != nil {
			return nil, err
		}
	}
	h, err := gguf.Open(o.Model)
	if err != nil {
		return nil, err
	}
	var shape vram.Shape
	if shape, err = vram.FromGGUF(h); err != nil {
		o.Report.Say("note: the model's layout is not known here, so llama.cpp decides whether packed16 can hold it (%v)", err)
	} else if why := shape.Packable(); why != "" {
		return nil, fault.New(fault.Usage, "packed16 cannot hold this model's K: %s", why).At("%s", o.Model).
			Hintf("take a model with heads of 64, 128 or 256, the same for K and V, and plain attention")
	}
	for _, c := range o.Ctxs {
		if quality && shape.CtxTrain > 0 && c > shape.CtxTrain {
			o.Report.Say("note: the model was trained for a context of %d; what %d says is about the model too", shape.CtxTrain, c)
		}
	}
	return &Quality{Ctxs: o.Ctxs, Chunks: o.Chunks}, nil
}

func (o *Options) quality(ctx context.Context, s *store, rep *Report) error {
	q := rep.Quality
	program, err := o.Program("llama-perplexity")
	if err != nil {
		return err
	}
	o.Report.Status("quality  reading the model, the text and the programs")
	r := &runner{o: o, program: program, q: q}
	if r.sum, err = sumPrograms(program); err != nil {
		return err
	}
	if q.Model, err = fileOf(o.Model); err != nil {
		return err
	}
	if q.Text, err = fileOf(o.Text); err != nil {
		return err
	}
	q.Backend = "CPU"
	for _, b := range rep.Backends {
		if b.Name != "CPU" {
			q.Backend = b.Name
			if b.Device != "" {
				q.Backend += " (" + b.Device + ")"
			}
			break
		}
	}
	bounds, err := LoadBounds()
	if err != nil {
		return err
	}
	o.Types = withMeasure(o.Types, bounds, q, o.Ctxs)
	r.store = s
	for _, c := range o.Ctxs {
		r.total += (1 + len(o.Types) + len(r.crossChecked(c))) * o.Chunks
	}
	count := o.Report.Count("quality")
	r.progress = count.Step
	for _, c := range o.Ctxs {
		if err := r.measure(ctx, c); err != nil {
			return err
		}
	}
	o.Report.Clear()
	order(q, o.Types)
	bounds.judge(q)
	q.agree()
	q.trends()
	for _, c := range q.Cells {
		what := fmt.Sprintf("quality: %s/%s at %d: ", c.K, c.V, c.Ctx)
		rep.fail(c.Problem, what)
		switch {
		case c.Problem != "":
		case c.KLD.N == 0 || math.IsNaN(c.KLD.Mean):
			rep.fail("nothing was measured", what)
		case c.Bound != nil && !c.Bound.Holds:
			rep.fail(fmt.Sprintf("mean KLD %.3g is above %.3g (%s)", c.KLD.Mean, c.Bound.Limit, c.Bound.Source), what)
		}
	}
	for _, x := range q.Checks {
		rep.fail(x.Problem, fmt.Sprintf("cross-check: %s at %d: ", x.Pair, x.Ctx))
	}
	return nil
}

// withMeasure adds the pairs that a packed16 pair is held against where nothing is
// recorded for the setting.
func withMeasure(types []Pair, bounds *Bounds, q *Quality, ctxs []int) []Pair {
	out := slices.Clone(types)
	for _, p := range types {
		needs := Pair{bounds.Relative.To, p.V}
		if !(Cell{K: p.K}).packed() || slices.Contains(out, needs) {
			continue
		}
		for _, c := range ctxs {
			m := bounds.recorded(q, c)
			if m != nil {
				if _, ok := m.KLD[p.String()]; ok {
					continue
				}
			}
			out = append(out, needs)
			break
		}
	}
	return out
}

// order sorts the cells by context and as the types were asked for.
func order(q *Quality, types []Pair) {
	slices.SortStableFunc(q.Cells, func(a, b Cell) int {
		if a.Ctx != b.Ctx {
			return a.Ctx - b.Ctx
		}
		return slices.Index(types, Pair{a.K, a.V}) - slices.Index(types, Pair{b.K, b.V})
	})
}

func fileOf(name string) (File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return File{}, fault.Read(err, name)
	}
	sum, err := sumFile(name, another)
	return File{Name: filepath.Base(name), Bytes: info.Size(), SHA256: sum}, err
}
