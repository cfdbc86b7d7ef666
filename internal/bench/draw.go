package bench

import (
	"fmt"
	"slices"

	"dot4fa/internal/plot"
	"dot4fa/internal/vram"
)

// Times draws the time of a call against depth, one panel for each number of
// rows, with the floor that reading K and V sets.
func (r *Result) Times(h Shape) []byte {
	c := plot.Chart{
		Title: fmt.Sprintf("%s: attention, D=%d, %d KV heads, GQA %d", r.Device, h.D, h.KVHeads, h.GQA),
		Note:  fmt.Sprintf("median of %s, bars as long as the spread; floor: K and V of packed16/q4_0 read once at %.0f GB/s (%s); %s", r.Repeats(func(row Row) bool { return row.has(h) }), r.Memory.GBps, r.Memory.From, r.Commit),
	}
	for _, nq := range r.rowCounts(h) {
		p := plot.Panel{Title: fmt.Sprintf("nq = %d", nq), X: plot.Axis{Label: "cells (nk)", Log: true}, Y: plot.Axis{Label: "µs per call", Log: true}}
		for _, row := range r.Rows {
			if !row.has(h) || row.NQ != nq {
				continue
			}
			addPoint(&p, "packed16/"+row.V, row.NK, row.US, row.Spread, row.Route)
			addPoint(&p, row.Baseline, row.NK, row.BaseUS, row.BaseSpr, "")
			if row.V == "q4_0" {
				addPoint(&p, "bytes floor", row.NK, row.FloorUS, 0, "")
			}
		}
		for i := range p.Lines {
			p.Lines[i].Dashed = p.Lines[i].Name == "bytes floor"
			slices.SortFunc(p.Lines[i].Points, func(a, b plot.Point) int { return int(a.X - b.X) })
		}
		c.Panels = append(c.Panels, p)
	}
	return c.SVG()
}

// addPoint adds a measurement to the line of its name, once.
func addPoint(p *plot.Panel, name string, nk int, us, spread float64, note string) {
	at := slices.IndexFunc(p.Lines, func(l plot.Line) bool { return l.Name == name })
	if at < 0 {
		p.Lines = append(p.Lines, plot.Line{Name: name})
		at = len(p.Lines) - 1
	}
	l := &p.Lines[at]
	if !slices.ContainsFunc(l.Points, func(q plot.Point) bool { return q.X == float64(nk) }) {
		l.Points = append(l.Points, plot.Point{X: float64(nk), Y: us, Low: us * (1 - spread/2), High: us * (1 + spread/2), Note: note})
	}
}

func (r *Result) rowCounts(h Shape) []int {
	var out []int
	for _, row := range r.Rows {
		if row.has(h) && !slices.Contains(out, row.NQ) {
			out = append(out, row.NQ)
		}
	}
	slices.Sort(out)
	return out
}

// Roofline draws what each call computes a second against its operations per
// byte of K and V. The roofs are the speed of the copy and, where the data
// sheet is known, the arithmetic units.
func (r *Result) Roofline() []byte {
	p := plot.Panel{Title: "operations of QK and PV over bytes of K and V",
		X: plot.Axis{Label: "operations per byte", Log: true}, Y: plot.Axis{Label: "operations a second", Log: true}}
	var low, high float64
	add := func(s Shape, cache string, us float64) {
		pair, err := vram.ParsePair(cache)
		if err != nil {
			return
		}
		bytes, err := s.bytes(pair)
		if err != nil {
			return
		}
		x, y := s.flops()/bytes, s.flops()/us*1e6
		if low == 0 || x < low {
			low = x
		}
		high = max(high, x)
		at := slices.IndexFunc(p.Lines, func(l plot.Line) bool { return l.Name == cache })
		if at < 0 {
			p.Lines = append(p.Lines, plot.Line{Name: cache, Marks: true})
			at = len(p.Lines) - 1
		}
		p.Lines[at].Points = append(p.Lines[at].Points, plot.Point{X: x, Y: y, Note: s.String()})
	}
	seen := map[string]bool{}
	for _, row := range r.Rows {
		for cache, us := range map[string]float64{"packed16/" + row.V: row.US, row.Baseline: row.BaseUS} {
			if key := row.Shape().String() + cache; !seen[key] {
				seen[key] = true
				add(row.Shape(), cache, us)
			}
		}
	}
	slices.SortFunc(p.Lines, func(a, b plot.Line) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if r.Memory.GBps > 0 && low > 0 {
		roof := plot.Line{Name: fmt.Sprintf("memory, %.0f GB/s (%s)", r.Memory.GBps, r.Memory.From), Dashed: true}
		end := high
		if r.Peak != nil {
			end = min(high, r.Peak.Matrix*1000/r.Memory.GBps)
		}
		for _, x := range []float64{low, max(low, end)} {
			roof.Points = append(roof.Points, plot.Point{X: x, Y: x * r.Memory.GBps * 1e9})
		}
		p.Lines = append(p.Lines, roof)
	}
	note := "no data sheet of this device is known here, so no roof for arithmetic"
	if r.Peak != nil {
		note = "roofs of arithmetic: " + r.Peak.Source
		p.Horizontal = []plot.Level{
			{Name: fmt.Sprintf("f16 matrix units, %g TFLOP/s", r.Peak.Matrix), Y: r.Peak.Matrix * 1e12},
			{Name: fmt.Sprintf("f32 vector units, %g TFLOP/s", r.Peak.F32), Y: r.Peak.F32 * 1e12},
		}
	}
	return plot.Chart{Title: r.Device + ": roofline of the attention calls", Note: note, Panels: []plot.Panel{p}}.SVG()
}

// Rates draws tokens per second against depth.
func (r *Result) Rates() []byte {
	var counts []int
	for _, t := range r.EndToEnd {
		counts = append(counts, t.Repeat)
	}
	c := plot.Chart{Title: r.Device + ": tokens per second", Note: "median of " + r.fromTo(counts)}
	if r.Model != nil {
		c.Note = r.Model.Name + ": " + r.Model.What + "; " + c.Note
	}
	for _, gen := range []bool{false, true} {
		p := plot.Panel{Title: "prompt", X: plot.Axis{Label: "depth"}, Y: plot.Axis{Label: "tokens per second", Zero: true}}
		if gen {
			p.Title = "generation"
		}
		for _, t := range r.EndToEnd {
			if (t.Gen > 0) == gen {
				addPoint(&p, t.Cache, t.Depth, t.PerSecond, t.Spread, t.Test())
			}
		}
		for i := range p.Lines {
			slices.SortFunc(p.Lines[i].Points, func(a, b plot.Point) int { return int(a.X - b.X) })
		}
		c.Panels = append(c.Panels, p)
	}
	return c.SVG()
}
