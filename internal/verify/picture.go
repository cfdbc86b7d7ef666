package verify

import (
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/plot"
	"dot4fa/internal/vram"
)

// SVG draws what was measured: the divergence against the memory that a pair of
// types takes and against the position in the context, and the error of one
// attention call against depth. Without any of it the picture is empty.
func (r *Report) SVG() []byte {
	c := plot.Chart{Title: "Against f16/f16", Note: fmt.Sprintf("llama.cpp %s, recipe %s", r.About.Upstream, r.About.Recipe)}
	if r.Quality != nil {
		c.Panels = append(c.Panels, r.Quality.byTypes(), r.Quality.byPosition())
		c.Note += "; " + r.Quality.Condition() + "; bars: standard error"
	}
	if len(r.Depth) > 0 {
		c.Panels = append(c.Panels, r.byDepth())
	}
	return c.SVG()
}

// byTypes is the divergence in the deepest context over the bytes of a cell.
func (q *Quality) byTypes() plot.Panel {
	p := plot.Panel{Title: "by types", X: plot.Axis{Label: "bytes a cell and KV head of 256"}, Y: plot.Axis{Label: "mean KLD", Log: true}}
	deepest := slices.Max(q.Ctxs)
	for _, c := range q.Cells {
		if c.Ctx != deepest || c.Problem != "" {
			continue
		}
		pair, err := vram.ParsePair(strings.TrimSuffix(c.K, mse) + "/" + c.V)
		if err != nil {
			continue
		}
		k, v, err := vram.Uniform(1, 1, 256).Bytes(pair, vram.Use{Ctx: 256})
		if err != nil {
			continue
		}
		p.Lines = append(p.Lines, plot.Line{Name: c.K + "/" + c.V, Marks: true, Points: []plot.Point{
			{X: float64(k+v) / 256, Y: c.KLD.Mean, Low: c.KLD.Mean - c.KLD.Err, High: c.KLD.Mean + c.KLD.Err}}})
	}
	return p
}

// byPosition is the divergence over the cells before the query, from all contexts.
func (q *Quality) byPosition() plot.Panel {
	p := plot.Panel{Title: "by position", X: plot.Axis{Label: "cells before the query", Log: true}, Y: plot.Axis{Label: "mean KLD", Log: true}}
	for _, c := range q.Cells {
		if c.Problem != "" {
			continue
		}
		name := c.K + "/" + c.V
		i := slices.IndexFunc(p.Lines, func(l plot.Line) bool { return l.Name == name })
		if i < 0 {
			i = len(p.Lines)
			p.Lines = append(p.Lines, plot.Line{Name: name})
		}
		for _, b := range c.Bins {
			p.Lines[i].Points = append(p.Lines[i].Points, plot.Point{X: float64(b.From+b.To) / 2, Y: b.KLD.Mean,
				Low: b.KLD.Mean - b.KLD.Err, High: b.KLD.Mean + b.KLD.Err, Note: fmt.Sprintf("context %d, positions %d to %d", c.Ctx, b.From, b.To)})
		}
	}
	for i := range p.Lines {
		slices.SortFunc(p.Lines[i].Points, func(a, b plot.Point) int { return int(a.X - b.X) })
	}
	return p
}

// byDepth is the computed error of one attention call.
func (r *Report) byDepth() plot.Panel {
	p := plot.Panel{Title: "one attention call, computed", X: plot.Axis{Label: "cells", Log: true}, Y: plot.Axis{Label: "NMSE", Log: true}}
	for _, t := range depthTypes {
		l := plot.Line{Name: t.name}
		for _, a := range r.Depth {
			if a.Types == t.name && a.Sharp == 1 {
				l.Points = append(l.Points, plot.Point{X: float64(a.NK), Y: a.NMSE})
			}
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}
