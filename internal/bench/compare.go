package bench

import (
	"fmt"

	"dot4fa/internal/fault"
)

// Change is one figure beside that of a stored run.
type Change struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Ratio  float64 `json:"ratio"`  // of the times: above 1 is slower
	Slower bool    `json:"slower"` // beyond the spreads of both and 2 %
	Faster bool    `json:"faster"`
}

// Compare sets the figures of now beside those that before has too.
func Compare(before, now *Result) ([]Change, error) {
	if before.Device != now.Device {
		return nil, fault.New(fault.Usage, "the stored run is of another device: %s, and this is %s", before.Device, now.Device).
			Hintf("compare runs of the same GPU")
	}
	var out []Change
	type key struct {
		Shape
		v string
	}
	old := map[key]Row{}
	for _, r := range before.Rows {
		old[key{r.Shape(), r.V}] = r
	}
	seen := map[key]bool{}
	for _, r := range now.Rows {
		k := key{r.Shape(), r.V}
		o, there := old[k]
		if !there || seen[k] {
			continue
		}
		seen[k] = true
		out = append(out, Change{fmt.Sprintf("%s packed16/%s", k.Shape, k.v), "µs", o.US, r.US, r.US / o.US,
			beyond(r.US, r.Spread, o.US, o.Spread), beyond(o.US, o.Spread, r.US, r.Spread)})
	}
	for _, t := range now.EndToEnd {
		for _, o := range before.EndToEnd {
			if o.Test() == t.Test() && o.Cache == t.Cache && sameModel(before, now) {
				out = append(out, Change{t.Test() + " " + t.Cache, "t/s", o.PerSecond, t.PerSecond, o.PerSecond / t.PerSecond,
					beyond(o.PerSecond, o.Spread, t.PerSecond, t.Spread), beyond(t.PerSecond, t.Spread, o.PerSecond, o.Spread)})
			}
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Usage, "the two runs have no shape in common").Hintf("run the stored one's shapes: --shapes")
	}
	return out, nil
}

func sameModel(a, b *Result) bool {
	return a.Model != nil && b.Model != nil && a.Model.Name == b.Model.Name && a.Model.Bytes == b.Model.Bytes
}

// Slower is an error of exit code 6 when something got slower.
func Slower(changes []Change) error {
	n, worst := 0, Change{}
	for _, c := range changes {
		if c.Slower {
			n++
			if c.Ratio > worst.Ratio {
				worst = c
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fault.New(fault.VerifyFailed, "%d of %d figures are slower than the stored run, beyond the spread; most: %s, × %.2f", n, len(changes), worst.What, worst.Ratio).
		Hintf("run it again with more --repeat to tell a change from noise")
}
