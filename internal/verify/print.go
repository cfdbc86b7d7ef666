package verify

import (
	"fmt"
	"io"
	"strings"
	"time"

	"dot4fa/internal/page"
	"dot4fa/internal/progress"
)

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "llama.cpp %s, recipe %s\n", r.About.Upstream, r.About.Recipe)
	for _, b := range r.Backends {
		fmt.Fprintf(w, "backend %s", b.Name)
		if b.Device != "" {
			fmt.Fprintf(w, ": %s", b.Device)
		}
		fmt.Fprintln(w)
	}
	if len(r.Ops) > 0 {
		t := newTable(w, "op", "backend", "OK", "failed", "not supported", "skipped", "")
		for _, o := range r.Ops {
			t.row(strings.TrimSpace(o.Op+" "+o.Params), o.Backend, o.OK, o.Failed, o.Unsupported, o.Skipped, orHolds(o.Problem, o.Reused))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if s := r.State; s != nil {
		fmt.Fprintf(w, "\nstate: %d checks, %d failed, %d that this model cannot: %s\n", s.Checks, s.Failed, s.Skipped, orHolds(s.Problem, s.Reused))
	}
	if len(r.Depth) > 0 {
		if err := r.printDepth(w); err != nil {
			return err
		}
	}
	if r.Quality != nil {
		if err := r.Quality.print(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, part := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", part)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "FAILED %s\n", f)
	}
	verdict := "everything that ran holds"
	if len(r.Failures) > 0 {
		verdict = fmt.Sprintf("%d of the checks do not hold", len(r.Failures))
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// DepthTable is the error of attention by depth: a heading, and a row for each
// depth and each deviation of the logits. Depths between are left out.
func (r *Report) DepthTable() [][]string {
	head := []string{"cells", "logits ±"}
	for _, t := range depthTypes {
		head = append(head, t.name)
	}
	rows := [][]string{head}
	for _, sharp := range []float64{1, 4} {
		for _, nk := range []int{256, 2048, 16384, 131072} {
			row := []string{fmt.Sprint(nk), fmt.Sprint(sharp)}
			for _, t := range depthTypes {
				for _, a := range r.Depth {
					if a.NK == nk && a.Sharp == sharp && a.Types == t.name {
						row = append(row, fmt.Sprintf("%.1e", a.NMSE))
					}
				}
			}
			if len(row) == len(head) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (r *Report) printDepth(w io.Writer) error {
	fmt.Fprint(w, "\ndepth: NMSE of one attention call on random K and V of unit variance, computed from the format's model;\n+q8: the query rounded to int8, as GPUs do\n")
	fmt.Fprintln(w)
	return page.Columns(w, r.DepthTable())
}

func orHolds(problem string, stored bool) string {
	switch {
	case problem != "":
		return problem
	case stored:
		return "holds (stored)"
	}
	return "holds"
}

// table is written when it is whole.
type table struct {
	w    io.Writer
	rows [][]string
}

func newTable(w io.Writer, head ...any) *table {
	t := &table{w: w}
	t.row(head...)
	return t
}

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// flush writes the table below a blank line.
func (t *table) flush() error {
	fmt.Fprintln(t.w)
	return page.Columns(t.w, t.rows)
}

// Sci writes a divergence with two digits after the point.
func Sci(v float64) string { return fmt.Sprintf("%.2e", v) }

// Condition says in one line what the cells were measured with.
func (q *Quality) Condition() string {
	return fmt.Sprintf("%s, %s, %s, %d chunks", q.Backend, q.Model.Name, q.Text.Name, q.Chunks)
}

func (q *Quality) print(w io.Writer) error {
	fmt.Fprintf(w, "\nquality: %s; against f16/f16 of the same run, over the second half of each chunk\n", q.Condition())
	t := newTable(w, "context", "K/V", "perplexity", "mean KLD", "±", "largest", "same top", "bound", "", "time")
	ctx := 0
	for _, c := range q.Cells {
		if c.Ctx != ctx {
			ctx = c.Ctx
			if c.Problem == "" {
				t.row(c.Ctx, "f16/f16", fmt.Sprintf("%.4f", c.BasePPL.Mean), "–", "", "", "", "", "", "")
			}
		}
		if c.Problem != "" {
			t.row(c.Ctx, c.K+"/"+c.V, "–", "–", "", "", "", "", c.Problem, "")
			continue
		}
		bound, verdict := "", ""
		if c.Bound != nil {
			bound, verdict = "≤ "+Sci(c.Bound.Limit), "holds"
			if !c.Bound.Holds {
				verdict = "FAILED"
			}
		}
		took := progress.Duration(time.Duration(c.Seconds * float64(time.Second)))
		if c.Reused {
			took = "stored"
		}
		t.row(c.Ctx, c.K+"/"+c.V, fmt.Sprintf("%.4f", c.PPL.Mean), Sci(c.KLD.Mean), Sci(c.KLD.Err), Sci(c.Largest), fmt.Sprintf("%.2f %%", 100*c.SameTop), bound, verdict, took)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if len(q.Depth) > 0 {
		t = newTable(w, "K/V", "positions", "mean KLD", "positions", "mean KLD", "ratio", "±")
		for _, d := range q.Depth {
			t.row(d.Pair, fmt.Sprintf("%d–%d", d.Shallow.From, d.Shallow.To), Sci(d.Shallow.KLD.Mean), fmt.Sprintf("%d–%d", d.Deep.From, d.Deep.To), Sci(d.Deep.KLD.Mean),
				fmt.Sprintf("%.2f", d.Ratio), fmt.Sprintf("%.2f", d.Err))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, x := range q.Checks {
		if x.Problem == "" {
			fmt.Fprintf(w, "\nllama-perplexity itself, %s at %d: KLD %.6f, perplexity %.6f, same top %.3f %%: agrees\n", x.Pair, x.Ctx, x.KLD, x.PPL, 100*x.SameTop)
		}
	}
	return nil
}
