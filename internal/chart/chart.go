// Package chart draws line charts as stand-alone SVG images: a title that says
// the condition, two axes, linear or logarithmic, a line for each series, and
// level lines. Every point says its value when pointed at.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Point is one value of a series.
type Point struct{ X, Y float64 }

// Series is one line of a chart.
type Series struct {
	Name   string
	Points []Point
}

// Level is a horizontal line that values are held against.
type Level struct {
	Name string
	Y    float64
}

// Chart is what to draw. A logarithmic axis leaves out values that are not
// greater than zero.
type Chart struct {
	Title, Note    string // Note: the condition of the values, in a smaller line
	XName, YName   string
	LogX, LogY     bool
	XLabels        []string // names in place of numbers, for X = 0, 1, 2 …
	Dots           bool     // points without lines between them
	Series         []Series
	Levels         []Level
	Ticks          []float64 // values to name on the X axis; empty: chosen
	FormatX, Label func(float64) string
}

const (
	width, height            = 760, 420
	left, right, top, bottom = 74, 190, 50, 52
)

// colors differ in hue and lightness, so that they can be told apart by the
// colour-blind; dashes tell the rest.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b4513", "#7f7f7f", "#6a3d9a", "#1b7837", "#b2182b"}

type axis struct {
	lo, hi   float64
	log      bool
	from, to float64 // pixels
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

func (a axis) holds(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

// span finds the ends of an axis; one that is empty or flat is given room.
func span(log bool, values []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	switch {
	case lo > hi:
		return 1, 2
	case lo == hi && log:
		return lo / 2, hi * 2
	case lo == hi:
		return lo - 1, hi + 1
	}
	return lo, hi
}

// SVG draws the chart.
func (c Chart) SVG() []byte {
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	for _, l := range c.Levels {
		ys = append(ys, l.Y)
	}
	if !c.LogY {
		ys = append(ys, 0)
	}
	x := axis{log: c.LogX, from: left, to: width - right}
	y := axis{log: c.LogY, from: height - bottom, to: top}
	x.lo, x.hi = span(c.LogX, xs)
	y.lo, y.hi = span(c.LogY, ys)
	if c.XLabels != nil {
		x.lo, x.hi = -0.5, float64(len(c.XLabels))-0.5
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>`+"\n", left, escaped(c.Title))
	fmt.Fprintf(&b, `<text x="%d" y="36" fill="#555555">%s</text>`+"\n", left, escaped(c.Note))
	c.axes(&b, x, y)
	for i, l := range c.Levels {
		if !y.holds(l.Y) {
			continue
		}
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#b2182b" stroke-dasharray="6 3"/>`+"\n", left, width-right, y.at(l.Y), y.at(l.Y))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" fill="#b2182b">%s</text>`+"\n", width-right+4, y.at(l.Y)-3+float64(i%2)*12, escaped(l.Name))
	}
	for i, s := range c.Series {
		c.line(&b, x, y, i, s)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (c Chart) line(b *bytes.Buffer, x, y axis, i int, s Series) {
	color := colors[i%len(colors)]
	dash := ""
	if i%2 == 1 {
		dash = ` stroke-dasharray="5 2"`
	}
	var path strings.Builder
	var dots bytes.Buffer
	for _, p := range s.Points {
		if !x.holds(p.X) || !y.holds(p.Y) {
			continue
		}
		fmt.Fprintf(&path, "%.1f,%.1f ", x.at(p.X), y.at(p.Y))
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %s</title></circle>`+"\n",
			x.at(p.X), y.at(p.Y), color, escaped(s.Name), escaped(c.nameX(p.X)), escaped(c.nameY(p.Y)))
	}
	if !c.Dots {
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.6"%s points="%s"/>`+"\n", color, dash, strings.TrimSpace(path.String()))
	}
	b.Write(dots.Bytes())
	row := top + 16 + 16*(i+len(c.Levels))
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d">%s</text>`+"\n",
		width-right+8, width-right+28, row, row, color, dash, width-right+34, row+4, escaped(s.Name))
}

func (c Chart) axes(b *bytes.Buffer, x, y axis) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#333333"/>`+"\n", left, top, width-right-left, height-bottom-top)
	ticks := c.Ticks
	if c.XLabels != nil {
		ticks = nil
		for i := range c.XLabels {
			ticks = append(ticks, float64(i))
		}
	} else if len(ticks) == 0 {
		ticks = choose(x)
	}
	for _, v := range ticks {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#dddddd"/>`+"\n", x.at(v), x.at(v), top, height-bottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x.at(v), height-bottom+16, escaped(c.nameX(v)))
	}
	for _, v := range choose(y) {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", left, width-right, y.at(v), y.at(v))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-5, y.at(v)+4, escaped(c.nameY(v)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-12, escaped(c.XName))
	fmt.Fprintf(b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, escaped(c.YName))
}

// choose picks round values on an axis.
func choose(a axis) []float64 {
	var out []float64
	if a.log {
		decades := math.Log10(a.hi / a.lo)
		steps := []float64{1}
		if decades < 3 {
			steps = []float64{1, 2, 5}
		}
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, s := range steps {
				if v := s * math.Pow(10, e); v >= a.lo*0.999 && v <= a.hi*1.001 {
					out = append(out, v)
				}
			}
		}
		return out
	}
	raw := (a.hi - a.lo) / 6
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := unit
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * unit; step >= raw {
			break
		}
	}
	for v := math.Ceil(a.lo/step) * step; v <= a.hi+step/1e6; v += step {
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		out = append(out, v)
	}
	return out
}

func (c Chart) nameX(v float64) string {
	if i := int(v); c.XLabels != nil && i >= 0 && i < len(c.XLabels) {
		return c.XLabels[i]
	}
	if c.FormatX != nil {
		return c.FormatX(v)
	}
	return short(v)
}

func (c Chart) nameY(v float64) string {
	if c.Label != nil {
		return c.Label(v)
	}
	return short(v)
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
