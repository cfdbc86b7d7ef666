package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
	}
}

func TestSVG(t *testing.T) {
	for name, c := range map[string]Chart{
		"empty":  {},
		"flat":   {LogX: true, LogY: true, Series: []Series{{"a", []Point{{1, 5}}}}},
		"zero":   {LogY: true, Series: []Series{{"a", []Point{{1, 0}, {2, math.NaN()}, {3, 1e-5}}}}},
		"named":  {XLabels: []string{"q8_0/f16", "<&>"}, Dots: true, Series: []Series{{"a<b", []Point{{0, 1}, {1, 2}}}}},
		"levels": {Levels: []Level{{"card", 24}}, Series: []Series{{"a", []Point{{4096, 1}, {8192, 2}}}}, LogX: true, Ticks: []float64{4096, 8192}},
	} {
		svg := c.SVG()
		wellFormed(t, svg)
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s: a coordinate is no number:\n%s", name, svg)
		}
	}
}

// A point twice as high lies twice as far from the axis, and a logarithmic axis
// spaces equal ratios equally.
func TestScale(t *testing.T) {
	a := axis{lo: 0, hi: 10, from: 100, to: 0}
	if a.at(5) != 50 || a.at(10) != 0 {
		t.Errorf("linear: %v %v", a.at(5), a.at(10))
	}
	l := axis{lo: 1, hi: 100, log: true, from: 0, to: 200}
	if math.Abs(l.at(10)-100) > 1e-9 {
		t.Errorf("logarithmic: %v", l.at(10))
	}
	if got := choose(axis{lo: 0, hi: 24}); len(got) < 4 || got[0] != 0 {
		t.Errorf("ticks %v", got)
	}
}
