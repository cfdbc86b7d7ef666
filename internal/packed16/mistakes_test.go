package packed16

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A mistake is an implementation that is almost the format: what a compiler
// or a hurried author makes of it. Most blocks do not show it, so the vector
// file holds some that do.
type mistake struct {
	name     string
	mode     Mode
	quantize func(x *[Block]float32) (q [Block]int8, scale F16)
}

// refitWith is MSE with another way to form the sums or the quotient.
func refitWith(quotient func(x *[Block]float32, q *[Block]int8) float32) func(*[Block]float32) ([Block]int8, F16) {
	return func(x *[Block]float32) ([Block]int8, F16) {
		q, s := QuantizeBlock(x, Absmax)
		if !s.finite() || s == 0 {
			return q, s
		}
		s = ToF16(quotient(x, &q))
		return round(x, s), s
	}
}

func sums(order []int, add func(sum, x, q float32) float32) func(*[Block]float32, *[Block]int8) float32 {
	return func(x *[Block]float32, q *[Block]int8) float32 {
		var xq, qq float32
		for _, i := range order {
			xq = add(xq, x[i], float32(q[i]))
			qq += float32(q[i]) * float32(q[i])
		}
		return xq / qq
	}
}

func mistakes() []mistake {
	var ascending, descending []int
	for i := range Block {
		ascending = append(ascending, i)
		descending = append(descending, Block-1-i)
	}
	separate := func(sum, x, q float32) float32 { return sum + float32(x*q) }
	fused := func(sum, x, q float32) float32 { return float32(float64(x)*float64(q) + float64(sum)) }

	return []mistake{
		{"fused", MSE, refitWith(sums(ascending, fused))},
		{"descending", MSE, refitWith(sums(descending, separate))},
		{"pairwise", MSE, refitWith(func(x *[Block]float32, q *[Block]int8) float32 {
			var xq, qq [Block]float32
			for i := range x {
				xq[i], qq[i] = x[i]*float32(q[i]), float32(q[i])*float32(q[i])
			}
			for n := Block / 2; n > 0; n /= 2 {
				for i := range n {
					xq[i] += xq[i+n]
					qq[i] += qq[i+n]
				}
			}
			return xq[0] / qq[0]
		})},
		{"float64-sums", MSE, refitWith(func(x *[Block]float32, q *[Block]int8) float32 {
			var xq, qq float64
			for i := range x {
				xq += float64(x[i]) * float64(q[i])
				qq += float64(q[i]) * float64(q[i])
			}
			return float32(xq / qq)
		})},
		{"times-reciprocal", MSE, refitWith(func(x *[Block]float32, q *[Block]int8) float32 {
			var xq, qq float32
			for i := range x {
				xq = xq + float32(x[i]*float32(q[i]))
				qq += float32(q[i]) * float32(q[i])
			}
			return xq * (1 / qq)
		})},
		{"unstored-scale", Absmax, func(x *[Block]float32) (q [Block]int8, s F16) {
			_, s = QuantizeBlock(x, Absmax)
			var amax float64
			for _, v := range x {
				amax = max(amax, math.Abs(float64(v)))
			}
			for i, v := range x {
				q[i] = int8(math.RoundToEven(float64(v * float32(127/amax))))
			}
			return q, s
		}},
		{"divided-by-scale", Absmax, func(x *[Block]float32) (q [Block]int8, s F16) {
			_, s = QuantizeBlock(x, Absmax)
			for i, v := range x {
				q[i] = int8(min(max(math.RoundToEven(float64(v/s.Float32())), -127), 127))
			}
			return q, s
		}},
		{"half-away-from-zero", Absmax, func(x *[Block]float32) (q [Block]int8, s F16) {
			_, s = QuantizeBlock(x, Absmax)
			r := 1 / s.Float32()
			for i, v := range x {
				q[i] = int8(min(max(math.Round(float64(float32(v*r))), -127), 127))
			}
			return q, s
		}},
		{"times-1/127", Absmax, func(x *[Block]float32) (q [Block]int8, s F16) {
			var amax float32
			for _, v := range x {
				amax = max(amax, float32(math.Abs(float64(v))))
			}
			s = ToF16(amax * float32(1.0/127))
			return round(x, s), s
		}},
	}
}

// shows reports whether the block tells the mistake from the format.
func (m mistake) shows(x *[Block]float32) bool {
	q, s := QuantizeBlock(x, m.mode)
	if !s.finite() || s == 0 {
		return false
	}
	q2, s2 := m.quantize(x)
	return q != q2 || s != s2
}

// find returns a block that shows the mistake.
func (m mistake) find(rnd *rand.Rand) [Block]float32 {
	for {
		// few significant bits give ties and sums near the middle of two f16
		grid := math.Ldexp(1, rnd.IntN(14))
		x := block(func(int) float64 { return rnd.NormFloat64() })
		if rnd.IntN(2) == 0 {
			x = block(func(i int) float64 { return math.Round(float64(x[i])*grid) / grid })
		}
		if m.shows(&x) {
			return x
		}
	}
}

// TestVectorsShowMistakes: a vector file that everything passes is no proof.
func TestVectorsShowMistakes(t *testing.T) {
	all, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes() {
		n := 0
		for _, v := range all {
			if m.shows(&v.X) {
				n++
			}
		}
		t.Logf("%s: %d of %d vectors differ", m.name, n, len(all))
		if n < 2 {
			t.Errorf("%s: shown by %d vectors, want 2 or more", m.name, n)
		}
	}
}
