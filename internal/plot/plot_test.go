package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func sample() Chart {
	return Chart{
		Title: `time <against> "depth" & more`, Note: "made up for the test",
		Panels: []Panel{
			{Title: "nq = 1", X: Axis{Label: "cells", Log: true}, Y: Axis{Label: "µs", Log: true}, Lines: []Line{
				{Name: "ours", Points: []Point{{X: 512, Y: 12, Low: 11, High: 14}, {X: 16384, Y: 30, Note: "route long"}, {X: 131072, Y: 140}}},
				{Name: "floor", Dashed: true, Points: []Point{{X: 512, Y: 0.2}, {X: 131072, Y: 52}}},
				{Name: "broken", Points: []Point{{X: 0, Y: 1}, {X: 5, Y: math.NaN()}, {X: math.Inf(1), Y: 2}, {X: 5, Y: -1}}},
			}},
			{Title: "nq = 4", X: Axis{Label: "depth"}, Y: Axis{Label: "t/s", Zero: true}, Horizontal: []Level{{"roof", 120}, {"none", math.NaN()}}, Lines: []Line{
				{Name: "ours", Marks: true, Points: []Point{{X: 0, Y: 100}, {X: 32768, Y: 80}}},
			}},
		},
	}
}

// TestGolden: the image is byte for byte the stored one; look at it before updating.
func TestGolden(t *testing.T) {
	got := sample().SVG()
	const name = "testdata/chart.svg"
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func TestWellFormed(t *testing.T) {
	for _, c := range []Chart{sample(), {}, {Panels: []Panel{{}}}, {Panels: []Panel{{Y: Axis{Log: true}, Horizontal: []Level{{"x", -1}}}}}} {
		count := map[string]int{}
		d := xml.NewDecoder(bytes.NewReader(c.SVG()))
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				count[e.Name.Local]++
			}
		}
		if svg := string(c.SVG()); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error("a coordinate is not a number")
		}
		if len(c.Panels) == 2 && (count["circle"] != 5 || count["polyline"] != 2) {
			t.Errorf("%d points and %d lines, want 5 and 2", count["circle"], count["polyline"])
		}
	}
}

// A cache has one colour, whatever else is drawn and in which order, and no two
// lines of a chart have the same.
func TestCacheColors(t *testing.T) {
	seen := map[string]string{}
	for k := range hues {
		for v := range lightness {
			k, note, noted := strings.Cut(k, " ")
			name := k + "/" + v
			if noted {
				name += " " + note
			}
			color, ok := cacheColor(name)
			if !ok || seen[color] != "" || slices.Contains(others, color) {
				t.Errorf("%s has the colour %s, which %q has too", name, color, seen[color])
			}
			seen[color] = name
		}
	}
	one := palette([]string{"f16/f16", "packed16/q4_0", "memory"})
	two := palette([]string{"memory", "a level", "packed16/q4_0", "q8_0/q4_0", "f16/f16"})
	for _, name := range []string{"f16/f16", "packed16/q4_0"} {
		if one[name] != two[name] || one[name] == "" {
			t.Errorf("%s has the colours %s and %s", name, one[name], two[name])
		}
	}
	for _, name := range []string{"memory", "K/V", "f16", "f16/f16 and more"} {
		if _, ok := cacheColor(name); ok {
			t.Errorf("%s is taken for a cache", name)
		}
	}
	if got := hsl(204, 0.85, 0.58); got != "#39a6ef" {
		t.Errorf("hsl(204 85%% 58%%) is %s", got)
	}
}

// No text runs out of the picture, however long it is: in bold and in small
// letters, and in the legend.
func TestFits(t *testing.T) {
	const long = "random weights; 16 attention layers of hidden size 5120, feed-forward 17408, 24 heads on 4 KV heads of 256; no tokenizer; median of 2"
	for panels := range 3 {
		c := Chart{Title: long, Note: long + "; " + long}
		for range panels + 1 {
			c.Panels = append(c.Panels, Panel{Lines: []Line{{Name: "memory, 4199 GB/s (a large copy)"}, {Name: "f16/f16"}, {Name: "q8_0/q4_0"}}})
		}
		d := xml.NewDecoder(bytes.NewReader(c.SVG()))
		var width, x, size, each float64
		texts := 0
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			switch e := tok.(type) {
			case xml.StartElement:
				if e.Name.Local == "text" {
					x, size, each = 0, fontSize, 0.5
				}
				for _, a := range e.Attr {
					v, _ := strconv.ParseFloat(a.Value, 64)
					switch {
					case a.Name.Local == "x":
						x = v
					case a.Name.Local == "width" && width == 0:
						width = v
					case a.Name.Local == "font-size" && e.Name.Local == "text":
						size = v
					case a.Name.Local == "font-weight":
						each = 0.565
					}
				}
			case xml.CharData:
				text := strings.TrimSpace(string(e))
				if text == "" {
					break
				}
				texts++
				if end := x + float64(len(text))*size*each; end > width {
					t.Errorf("%d panels, %g wide: %q ends at %g", panels+1, width, text, end)
				}
			}
		}
		if texts < 5 {
			t.Errorf("%d texts", texts)
		}
	}
}

// TestScale: the ends of the range lie inside, larger values lie further, and
// there are some ticks but not many.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
	}{
		{Axis{}, []float64{0, 1}}, {Axis{}, []float64{5}}, {Axis{}, []float64{-3, 1e6}}, {Axis{Zero: true}, []float64{90, 100}},
		{Axis{Log: true}, []float64{1, 1e9}}, {Axis{Log: true}, []float64{3, 4}}, {Axis{Log: true}, []float64{0.001, 131072}}, {Axis{}, nil},
	} {
		s := newScale(c.axis, c.values, 0, 300)
		sorted := slices.Sorted(slices.Values(c.values))
		for i, v := range sorted {
			if at := s.at(v); at < 0 || at > 300 || i > 0 && at <= s.at(sorted[i-1]) {
				t.Errorf("%v: %g is at %g", c, v, at)
			}
		}
		ticks := s.ticks()
		if len(ticks) > 9 || len(ticks) < 2 && !c.axis.Log {
			t.Errorf("%v: ticks %v", c, ticks)
		}
		for _, v := range ticks {
			if at := s.at(v); at < -0.01 || at > 300.01 {
				t.Errorf("%v: the tick %g is at %g", c, v, at)
			}
		}
	}
	if s := newScale(Axis{Zero: true}, []float64{90, 100}, 0, 300); s.at(0) != 0 {
		t.Error("an axis from zero does not begin there")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 999: "999", 131072: "131.1k", 2e12: "2T", -1500: "-1.5k"} {
		if got := number(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
}
