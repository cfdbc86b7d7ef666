package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"dot4fa/internal/page"
)

// Print writes a run as text for a terminal.
func (r *Result) Print(w io.Writer) error {
	p := page.Text(w)
	r.tables(p)
	return p.Err()
}

// Markdown writes a run as a page, with pictures where their file names are given.
func (r *Result) Markdown(w io.Writer, pictures ...string) error {
	p := page.Markdown(w)
	r.tables(p)
	for _, file := range pictures {
		p.Picture(file)
	}
	return p.Err()
}

// PrintTargets writes the table of targets.
func PrintTargets(w io.Writer, r *Result, targets []Target) error {
	p := page.Text(w)
	p.Heading("Targets, " + r.Device + ", D=256, 4 KV heads, GQA 6, packed16/q4_0")
	p.Table(targetRows(targets))
	slow, all := r.sameBytes()
	p.Line("shapes slower than the stock cache of the same bytes (q8_0 K with the same V), beyond the spread: %d of %d", slow, all)
	return p.Err()
}

// PrintChanges writes a comparison: what changed beyond the spread, and how many did not.
func PrintChanges(w io.Writer, before *Result, changes []Change) error {
	p := page.Text(w)
	p.Heading("Against the run of " + before.When.Format("2006-01-02 15:04") + ", commit " + before.Commit)
	rows := [][]string{{"", "before", "now", "time", ""}}
	same := 0
	for _, c := range changes {
		verdict := map[bool]string{true: "slower", false: "faster"}[c.Slower]
		if !c.Slower && !c.Faster {
			same++
			continue
		}
		rows = append(rows, []string{c.What, micros(c.Before) + " " + c.Unit, micros(c.After) + " " + c.Unit, fmt.Sprintf("× %.2f", c.Ratio), verdict})
	}
	if len(rows) > 1 {
		p.Table(rows)
	}
	p.Line("%d of %d figures differ by no more than their spread", same, len(changes))
	return p.Err()
}

func (r *Result) tables(p *page.Page) {
	title := r.Device + ": one attention call, µs"
	if len(r.Rows) == 0 {
		title = r.Device
	}
	p.Heading(title)
	if r.Reference != "" {
		p.Line("%s", r.Reference)
	} else {
		p.Line("%s, dot4fa %s, llama.cpp %s, recipe %s, %s, %s", r.Backend, r.Commit, r.Upstream, r.Recipe, r.repeatText(), r.When.Format("2006-01-02"))
	}
	if r.Memory.GBps > 0 {
		p.Line("memory %.0f GB/s (%s%s)", r.Memory.GBps, r.Memory.From, r.peakText())
	}
	for _, h := range r.headShapes() {
		for _, v := range r.values(h) {
			p.Heading(fmt.Sprintf("D=%d, %d KV heads, GQA %d, packed16/%s", h.D, h.KVHeads, h.GQA, v))
			p.Table(r.timeRows(h, v))
		}
	}
	if slow := r.slower(); len(slow) > 1 {
		p.Heading("Slower than a baseline, beyond the spread")
		p.Table(slow)
	} else if len(r.Rows) > 0 {
		p.Heading("Slower than a baseline, beyond the spread")
		p.Line("none of %d figures", len(r.Rows))
	}
	if len(r.EndToEnd) > 0 {
		p.Heading("Whole model, tokens per second")
		if r.Model != nil {
			p.Line("%s: %s", r.Model.Name, r.Model.What)
		}
		p.Table(r.tokenRows())
	}
	if len(r.Failed) > 0 {
		p.Heading("Without figures")
		rows := [][]string{{"what", "why"}}
		for _, f := range r.Failed {
			rows = append(rows, []string{f.What, f.Why})
		}
		p.Table(rows)
	}
}

func (r *Result) peakText() string {
	if r.Peak == nil {
		return "; no data sheet known here"
	}
	return fmt.Sprintf("; data sheet %.0f, %s", r.Peak.GBps, r.Peak.Source)
}

// repeatText says how often the rows were timed.
func (r *Result) repeatText() string {
	return r.Repeats(func(Row) bool { return true }) + " repetitions interleaved"
}

// Repeats says how often the rows that are kept were timed: a run that was put
// together or ended early has rows of fewer repetitions. "1 to 3".
func (r *Result) Repeats(keep func(Row) bool) string {
	var counts []int
	for _, row := range r.Rows {
		if keep(row) {
			counts = append(counts, row.Repeat)
		}
	}
	return r.fromTo(counts)
}

// fromTo is the range of counts, or the repetitions asked for when there is none.
func (r *Result) fromTo(counts []int) string {
	if len(counts) == 0 {
		return strconv.Itoa(r.Repeat)
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least != most {
		return fmt.Sprintf("%d to %d", least, most)
	}
	return strconv.Itoa(most)
}

// spreadText is the spread of a row; one repetition has none.
func (row Row) spreadText() string {
	if row.Repeat < 2 {
		return "–"
	}
	return percent(row.Spread)
}

// headShapes are the head shapes of the rows, NK and NQ left out.
func (r *Result) headShapes() []Shape {
	var out []Shape
	for _, row := range r.Rows {
		if h := (Shape{D: row.D, KVHeads: row.KVHeads, GQA: row.GQA}); !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

func (row Row) has(h Shape) bool { return row.D == h.D && row.GQA == h.GQA && row.KVHeads == h.KVHeads }

func (r *Result) values(h Shape) []string {
	var out []string
	for _, row := range r.Rows {
		if row.has(h) && !slices.Contains(out, row.V) {
			out = append(out, row.V)
		}
	}
	return out
}

// timeRows is the table of one head shape and V type: a line per depth and batch.
func (r *Result) timeRows(h Shape, v string) [][]string {
	head := []string{"nk", "nq", "packed16/" + v, "spread"}
	for _, b := range baselines(v) {
		head = append(head, b.String(), "ratio")
	}
	rows := [][]string{append(head, "floor", "route")}
	for i, row := range r.Rows {
		if !row.has(h) || row.V != v || slices.ContainsFunc(r.Rows[:i], func(o Row) bool { return o.Shape() == row.Shape() && o.V == v }) {
			continue
		}
		line := []string{page.Thousands(row.NK), strconv.Itoa(row.NQ), micros(row.US), row.spreadText()}
		for _, b := range baselines(v) {
			at := slices.IndexFunc(r.Rows, func(o Row) bool { return o.Shape() == row.Shape() && o.V == v && o.Baseline == b.String() })
			if at < 0 {
				line = append(line, "–", "–")
				continue
			}
			line = append(line, micros(r.Rows[at].BaseUS), fmt.Sprintf("%.2f", r.Rows[at].Ratio()))
		}
		rows = append(rows, append(line, micros(row.FloorUS), row.Route))
	}
	return rows
}

// sameBytes counts the shapes that lose to the stock cache of the same bytes.
func (r *Result) sameBytes() (slower, all int) {
	for _, row := range r.Rows {
		if row.Baseline == "q8_0/"+row.V {
			all++
			if row.Slower() {
				slower++
			}
		}
	}
	return slower, all
}

// slower lists every row whose baseline is faster.
func (r *Result) slower() [][]string {
	rows := [][]string{{"shape", "packed16", "slower than", "by"}}
	for _, row := range r.Rows {
		if row.Slower() {
			rows = append(rows, []string{row.Shape().String(), "packed16/" + row.V + " " + micros(row.US), "slower than " + row.Baseline + " " + micros(row.BaseUS), fmt.Sprintf("× %.2f", row.Ratio())})
		}
	}
	return rows
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// micros writes a time, or a rate, with three digits.
func micros(v float64) string {
	switch {
	case v == 0:
		return "–"
	case v >= 1000:
		return page.Thousands(int(v + 0.5))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
