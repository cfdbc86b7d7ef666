package bench

import (
	"fmt"
	"math"
	"strconv"

	"dot4fa/internal/fault"
	"dot4fa/internal/page"
)

// goal is one of the project's targets: on D=256, 4 KV heads, GQA 6, packed16/q4_0, the
// time at most max times that of something else in the same run.
type goal struct {
	nq, nk int
	over   string // a baseline K/V, overNQ1, overFloor or overScalar
	max    float64
}

// What a target is over besides another cache.
const (
	overNQ1    = "nq=1"                      // one row at the same depth
	overFloor  = "bytes floor (stretch)"     // K and V read once at the speed of a copy
	overScalar = "q8_0/q4_0, no matrix core" // upstream as on RDNA3: a build of its own
)

var goals = []goal{
	{1, 131072, "q8_0/q4_0", 0.16}, {1, 131072, "f16/f16", 0.85}, {1, 131072, overFloor, 1.6},
	{1, 16384, "q8_0/q4_0", 0.30}, {1, 16384, "f16/f16", 0.9},
	{1, 3328, "q8_0/q4_0", 0.55}, {1, 3328, "f16/f16", 1.0},
	{1, 512, "q8_0/q4_0", 0.6},
	{4, 131072, "q8_0/q4_0", 0.30}, {4, 131072, "f16/f16", 1.1}, {4, 131072, overNQ1, 1.5},
	{4, 16384, "q8_0/q4_0", 0.4}, {4, 16384, overNQ1, 1.5},
	{512, 16384, "q8_0/q4_0", 1.3}, {512, 16384, overScalar, 0.16},
}

// Target is a goal and what was measured. Ratio is 0 where the run lacks it.
type Target struct {
	NQ    int     `json:"nq"`
	NK    int     `json:"nk"`
	Over  string  `json:"over"`
	Max   float64 `json:"max"`
	US    float64 `json:"us,omitempty"`
	Other float64 `json:"other_us,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	Met   bool    `json:"met"`
	Apart string  `json:"apart,omitempty"` // where the other figure is from, when not from the same run
}

// Targets holds r against the project's targets. scalar is a run of the same GPU
// with matrix cores off, nil without one: that figure cannot come from the same run.
func Targets(r, scalar *Result) ([]Target, error) {
	if scalar != nil && scalar.Device != r.Device {
		return nil, fault.New(fault.Usage, "the run with matrix cores off is of another device: %s, and this is %s", scalar.Device, r.Device).
			Hintf("leave --no-matrix out")
	}
	var out []Target
	for _, g := range goals {
		t := Target{NQ: g.nq, NK: g.nk, Over: g.over, Max: g.max}
		if mine, ok := r.canonical(g.nq, g.nk, ""); ok {
			t.US = mine.US
			switch g.over {
			case overNQ1:
				if one, ok := r.canonical(1, g.nk, ""); ok {
					t.Other = one.US
				}
			case overFloor:
				t.Other = mine.FloorUS
			case overScalar:
				if scalar != nil {
					if row, ok := scalar.canonical(g.nq, g.nk, "q8_0/q4_0"); ok {
						t.Other, t.Apart = row.BaseUS, "another run"
						if scalar.Reference != "" {
							t.Apart = scalar.Reference
						}
					}
				}
			default:
				if row, ok := r.canonical(g.nq, g.nk, g.over); ok {
					t.Other = row.BaseUS
				}
			}
		}
		if t.Other > 0 {
			t.Ratio = t.US / t.Other
			t.Met = math.Round(t.Ratio*1000)/1000 <= g.max
		}
		out = append(out, t)
	}
	return out, nil
}

// canonical finds a row of the canonical shape with q4_0 V; any baseline when
// none is named.
func (r *Result) canonical(nq, nk int, baseline string) (Row, bool) {
	for _, row := range r.Rows {
		if row.D == 256 && row.GQA == 6 && row.V == "q4_0" && row.NQ == nq && row.NK == nk && (baseline == "" || row.Baseline == baseline) {
			return row, true
		}
	}
	return Row{}, false
}

// targetRows is the table of targets.
func targetRows(targets []Target) [][]string {
	rows := [][]string{{"nq", "nk", "over", "at most", "µs", "its µs", "measured", ""}}
	for _, t := range targets {
		verdict := map[bool]string{true: "met", false: "missed"}[t.Met]
		measured := fmt.Sprintf("%.3f", t.Ratio)
		if t.Ratio == 0 {
			measured, verdict = "–", "not in this run"
		} else if t.Apart != "" {
			verdict += "; against " + t.Apart
		}
		rows = append(rows, []string{strconv.Itoa(t.NQ), page.Thousands(t.NK), t.Over, strconv.FormatFloat(t.Max, 'g', -1, 64) + " ×", micros(t.US), micros(t.Other), measured, verdict})
	}
	return rows
}
