package verify

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"dot4fa/internal/fault"
)

// CrossCheck is a cell computed a second time, by llama-perplexity itself. It
// prints six digits after the point and no positions; that is why the cells are
// computed here, from the logits that it saves.
type CrossCheck struct {
	Pair     string  `json:"types"`
	Ctx      int     `json:"context"`
	KLD      float64 `json:"kld"` // as llama-perplexity prints it
	PPL      float64 `json:"ppl"`
	SameTop  float64 `json:"same_top"` // a share
	Attempts int     `json:"attempts"` // its logger loses the last lines at times; then it runs once more
	Reused   bool    `json:"reused,omitempty"`
	Problem  string  `json:"problem,omitempty"`
}

var (
	kldLine  = regexp.MustCompile(`(?m)^Mean +KLD: +(-?\d+\.\d+)`)
	pplLine  = regexp.MustCompile(`(?m)^Mean PPL\(Q\) +: +(\d+\.\d+)`)
	sameLine = regexp.MustCompile(`(?m)^Same top p: +(\d+\.\d+)`)
)

// parseDivergence reads the statistics that llama-perplexity prints; ok is false
// when one of them is missing.
func parseDivergence(log []byte) (c CrossCheck, ok bool) {
	for _, f := range []struct {
		re *regexp.Regexp
		to *float64
	}{{kldLine, &c.KLD}, {pplLine, &c.PPL}, {sameLine, &c.SameTop}} {
		m := f.re.FindSubmatch(log)
		if m == nil {
			return c, false
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return c, false
		}
		*f.to = v
	}
	c.SameTop /= 100
	return c, true
}

// crossChecked are the pairs of a context that are computed twice.
func (r *runner) crossChecked(ctx int) []Pair {
	switch {
	case r.o.CrossCheck == "all":
		return r.o.Types
	case r.o.CrossCheck == "first" && ctx == r.o.Ctxs[0]:
		if i := slices.IndexFunc(r.o.Types, func(p Pair) bool { return p.K == "packed16" }); i >= 0 {
			return r.o.Types[i : i+1]
		}
		return r.o.Types[:1]
	}
	return nil
}

// reuseCheck takes a cross-check of an earlier run.
func (r *runner) reuseCheck(p Pair, ctx int) bool {
	var c CrossCheck
	if !r.store.get(r.key("check", p, ctx), &c) || c.Problem != "" || c.Pair == "" {
		return false
	}
	c.Reused = true
	r.q.Checks = append(r.q.Checks, c)
	return true
}

// crossCheck runs a pair again with llama-perplexity's own divergence. Lines that
// are missing are no result: it runs once more, and then it has failed.
func (r *runner) crossCheck(ctx context.Context, p Pair, c int, baseFile string) error {
	cmd := r.command(p, c, baseFile, true)
	check, ok := CrossCheck{}, false
	for attempt := 1; attempt <= 2 && !ok; attempt++ {
		log := &chunkWriter{count: r.counter(p, c)}
		err := cmd.Run(ctx, log)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fault.New(fault.VerifyFailed, "llama-perplexity --kl-divergence failed with %s at a context of %d%s", p, c, because(err, log.all.Bytes())).Hintf("run it by hand: %s", cmd)
		}
		check, ok = parseDivergence(log.all.Bytes())
		check.Attempts = attempt
	}
	check.Pair, check.Ctx = p.String(), c
	r.done += r.o.Chunks
	if !ok {
		check.Problem = "llama-perplexity ended twice without its last lines; the same command tries again, and takes the rest from what is stored"
	}
	r.q.Checks = append(r.q.Checks, check)
	if !ok {
		return nil
	}
	return r.store.put(r.key("check", p, c), check)
}

// agree holds the cross-checks against the cells.
func (q *Quality) agree() {
	for i := range q.Checks {
		x := &q.Checks[i]
		if x.Problem != "" {
			continue
		}
		k := slices.IndexFunc(q.Cells, func(c Cell) bool { return c.K+"/"+c.V == x.Pair && c.Ctx == x.Ctx })
		if k < 0 || q.Cells[k].Problem != "" {
			continue
		}
		c := q.Cells[k]
		// The base is saved in steps of 16/65535, which llama-perplexity takes for exact:
		// each of its values is off by up to half a step, the mean by that over √n.
		room := 1e-6 + 4*16.0/65535/math.Sqrt(float64(c.KLD.N)) + 0.02*c.KLD.Mean
		if math.Abs(c.KLD.Mean-x.KLD) > room || math.Abs(c.PPL.Mean-x.PPL) > 1e-3*x.PPL || math.Abs(c.SameTop-x.SameTop) > 0.005 {
			x.Problem = fmt.Sprintf("computed here: KLD %.3g, PPL %.6g, same top %.4g; llama-perplexity says %.3g, %.6g, %.4g", c.KLD.Mean, c.PPL.Mean, c.SameTop, x.KLD, x.PPL, x.SameTop)
		}
	}
}

// Trend says how the divergence of a pair changes with the position in the
// context: the ratio of the deepest positions to the shallowest.
type Trend struct {
	Pair    string  `json:"types"`
	Shallow Bin     `json:"shallow"`
	Deep    Bin     `json:"deep"`
	Ratio   float64 `json:"ratio"`
	Err     float64 `json:"standard_error"`
}

// trends compares, for each pair, the first and the last range of positions over
// all contexts.
func (q *Quality) trends() {
	q.Depth = nil
	var seen []string
	for _, c := range q.Cells {
		name := c.K + "/" + c.V
		if c.Problem != "" || slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		t := Trend{Pair: name}
		found := false
		for _, o := range q.Cells {
			if o.K != c.K || o.V != c.V || o.Problem != "" {
				continue
			}
			for _, b := range o.Bins {
				if !found || b.From < t.Shallow.From {
					t.Shallow = b
				}
				if !found || b.To > t.Deep.To {
					t.Deep = b
				}
				found = true
			}
		}
		a, b := t.Shallow.KLD, t.Deep.KLD
		if !found || a.Mean <= 0 || b.Mean <= 0 || t.Deep.From == t.Shallow.From {
			continue
		}
		t.Ratio = b.Mean / a.Mean
		t.Err = t.Ratio * math.Hypot(a.Err/a.Mean, b.Err/b.Mean)
		q.Depth = append(q.Depth, t)
	}
}
