package plot

import (
	"math"
	"strconv"
)

// scale maps values to pixels.
type scale struct {
	log      bool
	low, top float64 // the range shown; exponents of ten on a logarithmic axis
	from, to float64 // pixels
}

// newScale shows all of values with some room around them.
func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{log: a.Log, from: from, to: to}
	first := true
	for _, v := range values {
		if a.Log {
			v = math.Log10(v)
		}
		if first {
			s.low, s.top, first = v, v, false
		}
		s.low, s.top = min(s.low, v), max(s.top, v)
	}
	room := (s.top - s.low) * 0.05
	if room == 0 {
		room = max(math.Abs(s.top)*0.1, 0.5)
	}
	s.low, s.top = s.low-room, s.top+room
	if a.Zero && !a.Log {
		s.low = min(0, s.low+room)
	}
	return s
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return s.from + (v-s.low)/(s.top-s.low)*(s.to-s.from)
}

// ticks are the round values within the range, at most about eight.
func (s scale) ticks() []float64 {
	if s.log {
		return s.logTicks()
	}
	step := math.Pow(10, math.Floor(math.Log10((s.top-s.low)/2)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (s.top-s.low)/(step*m) <= 7 {
			step *= m
			break
		}
	}
	var out []float64
	for i := math.Ceil(s.low / step); i*step <= s.top; i++ {
		out = append(out, i*step)
	}
	return out
}

// logTicks are the powers of ten; within less than two decades also 2 and 5
// times those, and every second or third power when there are many.
func (s scale) logTicks() []float64 {
	within := []float64{1}
	if s.top-s.low < 2.5 {
		within = []float64{1, 2, 5}
	}
	every := max(1, int((s.top-s.low)/8)+1)
	var out []float64
	for e := int(math.Floor(s.low)); e <= int(math.Ceil(s.top)); e++ {
		if e%every != 0 {
			continue
		}
		for _, m := range within {
			if l := float64(e) + math.Log10(m); l >= s.low && l <= s.top {
				out = append(out, m*math.Pow(10, float64(e)))
			}
		}
	}
	return out
}

// number writes v short, with k, M, G for thousands.
func number(v float64) string {
	if v == 0 {
		return "0" // also of the zero with a sign
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 4, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
