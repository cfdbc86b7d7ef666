// Package plot draws lines and points over one or more pairs of axes, as a
// stand-alone SVG. What is drawn says its numbers when pointed at.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart is one image: panels side by side with one legend below them.
type Chart struct {
	Title  string
	Note   string // below the legend: conditions, sources
	Panels []Panel
}

// Panel is one pair of axes. A logarithmic axis shows positive values only.
type Panel struct {
	Title      string
	X, Y       Axis
	Lines      []Line
	Horizontal []Level // drawn across the panel
}

// Axis is a label and a scale.
type Axis struct {
	Label string
	Log   bool
	Zero  bool // a linear axis begins at 0
}

// Line is a series. Lines of one name have one colour in all panels, and one
// entry in the legend.
type Line struct {
	Name   string
	Points []Point
	Dashed bool // a bound rather than a measurement: no marks
	Marks  bool // points only, no line
}

// Level is a horizontal line with a name, as a bound that holds for every x.
type Level struct {
	Name string
	Y    float64
}

// Point is one measurement; Low and High, where not both 0, are its spread.
type Point struct {
	X, Y      float64
	Low, High float64
	Note      string
}

const (
	panelWidth, panelHeight = 300, 250
	marginLeft              = 62 // of a panel, for the labels of its y axis
	marginTop               = 56
	marginBottom            = 44
	gap                     = 16
	legendLine              = 16
	legendMark              = 28 // the piece of line before a name
	titleSize, titleLine    = 14, 18
	noteSize, noteLine      = 10, 13
	fontSize                = 11
)

// SVG draws c. Points that are not finite, or not positive on a logarithmic
// axis, are left out.
func (c Chart) SVG() []byte {
	names := c.names()
	colors := palette(names)
	width := max(1, len(c.Panels))*(panelWidth+marginLeft+gap) + gap
	title := wrap(c.Title, float64(width-2*gap), titleSize, widestBold)
	note := wrap(c.Note, float64(width-2*gap), noteSize, widest)
	column := 180
	for _, name := range names {
		column = max(column, legendMark+wide(name, fontSize)+gap)
	}
	perRow := max(1, (width-2*gap)/column)
	top := marginTop + max(0, len(title)-1)*titleLine
	legend := top + panelHeight + marginBottom
	below := legend + (len(names)+perRow-1)/perRow*legendLine
	height := below + len(note)*noteLine + 8

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="%d">`+"\n", width, height, width, height, fontSize)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	for i, line := range title {
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="%d" font-weight="bold">%s</text>`+"\n", gap, 20+i*titleLine, titleSize, escaped(line))
	}
	for i, p := range c.Panels {
		left := gap + i*(panelWidth+marginLeft+gap) + marginLeft
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", left, top)
		p.draw(&b, colors)
		b.WriteString("</g>\n")
	}
	for i, name := range names {
		x := gap + i%perRow*column
		line := legend + 10 + i/perRow*legendLine
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"%s/>`, x, line-4, x+22, line-4, colors[name], dashed(c.dashed(name)))
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", x+legendMark, line, escaped(name))
	}
	for i, line := range note {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555555" font-size="%d">%s</text>`+"\n", gap, below+10+i*noteLine, noteSize, escaped(line))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// names lists what the legend explains, in the order it appears.
func (c Chart) names() []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			add(l.Name)
		}
	}
	for _, p := range c.Panels {
		for _, h := range p.Horizontal {
			add(h.Name)
		}
	}
	return names
}

func (c Chart) dashed(name string) bool {
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			if l.Name == name {
				return l.Dashed
			}
		}
	}
	return true // a level
}

func dashed(on bool) string {
	if on {
		return ` stroke-dasharray="5 3"`
	}
	return ""
}

func (p Panel) draw(b *bytes.Buffer, colors map[string]string) {
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			if !p.shown(pt) {
				continue
			}
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
			if pt.High > 0 && (pt.Low > 0 || !p.Y.Log) {
				ys = append(ys, pt.Low, pt.High)
			}
		}
	}
	for _, h := range p.Horizontal {
		if finite(h.Y) && (!p.Y.Log || h.Y > 0) {
			ys = append(ys, h.Y)
		}
	}
	x, y := newScale(p.X, xs, 0, panelWidth), newScale(p.Y, ys, panelHeight, 0)
	fmt.Fprintf(b, `<text x="%d" y="-10" text-anchor="middle" font-weight="bold">%s</text>`+"\n", panelWidth/2, escaped(p.Title))
	for _, t := range x.ticks() {
		at := x.at(t)
		fmt.Fprintf(b, `<line x1="%s" y1="0" x2="%s" y2="%d" stroke="#e5e5e5"/><text x="%s" y="%d" text-anchor="middle" fill="#555555">%s</text>`+"\n", px(at), px(at), panelHeight, px(at), panelHeight+14, number(t))
	}
	for _, t := range y.ticks() {
		at := y.at(t)
		fmt.Fprintf(b, `<line x1="0" y1="%s" x2="%d" y2="%s" stroke="#e5e5e5"/><text x="-5" y="%s" text-anchor="end" fill="#555555">%s</text>`+"\n", px(at), panelWidth, px(at), px(at+4), number(t))
	}
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="none" stroke="#888888"/>`+"\n", panelWidth, panelHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", panelWidth/2, panelHeight+32, escaped(p.X.Label))
	fmt.Fprintf(b, `<text transform="translate(-48 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", panelHeight/2, escaped(p.Y.Label))
	for _, h := range p.Horizontal {
		if !finite(h.Y) || p.Y.Log && h.Y <= 0 {
			continue
		}
		fmt.Fprintf(b, `<line x1="0" y1="%s" x2="%d" y2="%s" stroke="%s" stroke-width="1.5" stroke-dasharray="5 3"><title>%s: %s</title></line>`+"\n",
			px(y.at(h.Y)), panelWidth, px(y.at(h.Y)), colors[h.Name], escaped(h.Name), number(h.Y))
	}
	for _, l := range p.Lines {
		p.line(b, l, colors[l.Name], x, y)
	}
}

func (p Panel) line(b *bytes.Buffer, l Line, color string, x, y scale) {
	var path []string
	for _, pt := range l.Points {
		if p.shown(pt) {
			path = append(path, px(x.at(pt.X))+","+px(y.at(pt.Y)))
		}
	}
	if !l.Marks && len(path) > 1 {
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(path, " "), color, dashed(l.Dashed))
	}
	if l.Dashed {
		return
	}
	for _, pt := range l.Points {
		if !p.shown(pt) {
			continue
		}
		at := px(x.at(pt.X))
		if pt.High > 0 && (pt.Low > 0 || !p.Y.Log) {
			fmt.Fprintf(b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`, at, px(y.at(pt.Low)), at, px(y.at(pt.High)), color)
		}
		note := fmt.Sprintf("%s: %s at %s", l.Name, number(pt.Y), number(pt.X))
		if pt.Note != "" {
			note += "; " + pt.Note
		}
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3.5" fill="%s"><title>%s</title></circle>`+"\n", at, px(y.at(pt.Y)), color, escaped(note))
	}
}

func (p Panel) shown(pt Point) bool {
	return finite(pt.X) && finite(pt.Y) && (!p.X.Log || pt.X > 0) && (!p.Y.Log || pt.Y > 0)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
