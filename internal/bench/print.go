package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes a run as text for a terminal.
func (r *Result) Print(w io.Writer) error {
	t := tables{w: w, text: true}
	r.tables(&t)
	return t.err
}

// Markdown writes a run as a page, with pictures where their file names are given.
func (r *Result) Markdown(w io.Writer, pictures ...string) error {
	t := tables{w: w}
	r.tables(&t)
	t.end()
	for _, p := range pictures {
		t.printf("![%s](%s)\n", strings.TrimSuffix(p, ".svg"), p)
	}
	return t.err
}

// PrintTargets writes the table of targets.
func PrintTargets(w io.Writer, r *Result, targets []Target) error {
	t := tables{w: w, text: true}
	t.heading("Targets, " + r.Device + ", D=256, 4 KV heads, GQA 6, packed16/q4_0")
	t.table(targetRows(targets))
	return t.err
}

// PrintChanges writes a comparison: what changed beyond the spread, and how many did not.
func PrintChanges(w io.Writer, before *Result, changes []Change) error {
	t := tables{w: w, text: true}
	t.heading("Against the run of " + before.When.Format("2006-01-02 15:04") + ", commit " + before.Commit)
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
		t.table(rows)
	}
	t.line("%d of %d figures differ by no more than their spread", same, len(changes))
	return t.err
}

func (r *Result) tables(t *tables) {
	title := r.Device + ": one attention call, µs"
	if len(r.Rows) == 0 {
		title = r.Device
	}
	t.heading(title)
	t.line("%s, dot4fa %s, llama.cpp %s, recipe %s, %d repetitions interleaved, %s", r.Backend, r.Commit, r.Upstream, r.Recipe, r.Repeat, r.When.Format("2006-01-02"))
	if r.Memory.GBps > 0 {
		t.line("memory %.0f GB/s (%s%s)", r.Memory.GBps, r.Memory.From, r.peakText())
	}
	for _, h := range r.headShapes() {
		for _, v := range r.values(h) {
			t.heading(fmt.Sprintf("D=%d, %d KV heads, GQA %d, packed16/%s", h.D, h.KVHeads, h.GQA, v))
			t.table(r.timeRows(h, v))
		}
	}
	if slow := r.slower(); len(slow) > 1 {
		t.heading("Slower than a baseline, beyond the spread")
		t.table(slow)
	} else if len(r.Rows) > 0 {
		t.heading("Slower than a baseline, beyond the spread")
		t.line("none of %d figures", len(r.Rows))
	}
	if len(r.EndToEnd) > 0 {
		t.heading("Whole model, tokens per second")
		if r.Model != nil {
			t.line("%s: %s", r.Model.Name, r.Model.What)
		}
		t.table(r.tokenRows())
	}
	if len(r.Failed) > 0 {
		t.heading("Without figures")
		rows := [][]string{{"what", "why"}}
		for _, f := range r.Failed {
			rows = append(rows, []string{f.What, f.Why})
		}
		t.table(rows)
	}
}

func (r *Result) peakText() string {
	if r.Peak == nil {
		return "; no data sheet known here"
	}
	return fmt.Sprintf("; data sheet %.0f, %s", r.Peak.GBps, r.Peak.Source)
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
		line := []string{thousands(row.NK), strconv.Itoa(row.NQ), micros(row.US), percent(row.Spread)}
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
		return thousands(int(v + 0.5))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// tables writes headings and tables, as text or as Markdown, until the first error.
type tables struct {
	w     io.Writer
	text  bool
	begun bool
	para  bool // the last thing written was a paragraph
	err   error
}

// line writes a line of a paragraph. In Markdown it ends with a hard break.
func (t *tables) line(format string, args ...any) {
	if !t.text && t.para {
		t.printf("  \n")
	}
	t.printf(format, args...)
	if t.text {
		t.printf("\n")
	}
	t.para = true
}

// end closes a paragraph.
func (t *tables) end() {
	if !t.text && t.para {
		t.printf("\n\n")
	}
	t.para = false
}

func (t *tables) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

func (t *tables) heading(text string) {
	mark := "## "
	if t.text {
		mark = ""
	} else if !t.begun {
		mark = "# "
	}
	t.end()
	if t.text && t.begun {
		t.printf("\n")
	}
	t.begun = true
	t.printf("%s%s\n", mark, text)
	if !t.text {
		t.printf("\n")
	}
}

func (t *tables) table(rows [][]string) {
	t.end()
	if t.err != nil {
		return
	}
	if t.text {
		w := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
		for _, r := range rows {
			fmt.Fprintln(w, strings.Join(r, "\t"))
		}
		t.err = w.Flush()
		return
	}
	for i, r := range rows {
		cells := make([]string, len(r))
		for j, c := range r {
			cells[j] = strings.ReplaceAll(c, "|", `\|`)
		}
		t.printf("| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			t.printf("|%s\n", strings.Repeat("---|", len(r)))
		}
	}
	t.printf("\n")
}
