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
