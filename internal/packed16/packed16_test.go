package packed16

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Results worked out by hand, so that the model is not its own only witness.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     [Block]float32
		mode  Mode
		scale F16
		q     map[int]int8 // values at some places; all others are 0
	}{
		{"zero", [Block]float32{}, Absmax, 0, nil},
		{"scale one", [Block]float32{127, -127, 1.5, 2.5, -0.5, 0.75}, Absmax, 0x3C00, map[int]int8{0: 127, 1: -127, 2: 2, 3: 2, 4: 0, 5: 1}},
		{"scale two", [Block]float32{9: -254, 10: 3}, Absmax, 0x4000, map[int]int8{9: -127, 10: 2}}, // 1.5 to even
		// Σxq = 127*127 + 2*4.5, Σqq = 127*127 + 4+4: 1.000062 is 1 in f16
		{"refit that changes nothing", [Block]float32{127, 2.25, 2.25}, MSE, 0x3C00, map[int]int8{0: 127, 1: 2, 2: 2}},
		// 1.4 steps of 2^-24 round to a scale of one step: all saturate, and the refit finds the same 1.4
		{"saturated", block(func(i int) float64 { return 1.4 * 127 * 0x1p-24 }), MSE, 1, nil},
		{"infinity", [Block]float32{3: float32(math.Inf(-1)), 4: 1}, Absmax, FaultScale, nil},
		{"nan", [Block]float32{31: float32(math.NaN()), 4: 1}, MSE, FaultScale, nil},
		{"largest scale", [Block]float32{65504 * 127}, Absmax, 0x7BFF, map[int]int8{0: 127}},
		{"beyond f16", [Block]float32{65520 * 127}, Absmax, FaultScale, nil},
		{"below f16", [Block]float32{127 * 0x1p-26}, Absmax, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want [Block]int8
			for i, v := range c.q {
				want[i] = v
			}
			if c.name == "saturated" {
				for i := range want {
					want[i] = 127
				}
			}
			if q, s := QuantizeBlock(&c.x, c.mode); s != c.scale || q != want {
				t.Errorf("scale %#04x values %v, want %#04x %v", s, q, c.scale, want)
			}
		})
	}
}

func TestF16(t *testing.T) {
	for h := range 1 << 16 {
		f := F16(h).Float32()
		if f != f {
			if F16(h).finite() || ToF16(f)&0x7C00 != 0x7C00 {
				t.Fatalf("%#04x: NaN is lost", h)
			}
			continue
		}
		if got := ToF16(f); got != F16(h) {
			t.Fatalf("%#04x becomes %v becomes %#04x", h, f, got)
		}
		next := F16(h + 1)
		if h&0x7FFF >= 0x7BFF || h == 1<<16-1 {
			continue // its neighbour is no number
		}
		// between two neighbours: the middle goes to the even one, all else to the nearer one
		middle := float32((float64(f) + float64(next.Float32())) / 2)
		even := F16(h + h&1)
		for _, c := range []struct {
			f    float32
			want F16
		}{
			{middle, even},
			{math.Nextafter32(middle, f), F16(h)},
			{math.Nextafter32(middle, next.Float32()), next},
		} {
			if got := ToF16(c.f); got != c.want {
				t.Fatalf("%v becomes %#04x, want %#04x", c.f, got, c.want)
			}
		}
	}
}

// What holds for every block: an error of half a step at most where nothing
// saturates, and no larger a sum of squares after the refit than f16 rounding
// of the scale explains.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		size := math.Exp(rnd.NormFloat64() * 1.5)
		x := block(func(int) float64 { return size * rnd.NormFloat64() })

		var squares [2]float64
		for m := range squares {
			q, s := QuantizeBlock(&x, Mode(m))
			step := float64(s.Float32())
			if step == 0 || !s.finite() {
				t.Fatalf("%v: scale %#04x", x, s)
			}
			for i, v := range x {
				e := math.Abs(float64(v) - step*float64(q[i]))
				squares[m] += e * e
				if limit := step * 0.50001; e > limit && q[i] != 127 && q[i] != -127 {
					t.Fatalf("%v: value %d is off by %g, a step is %g", x, i, e, step)
				}
			}
		}
		if squares[MSE] > squares[Absmax]*1.1 {
			t.Fatalf("%v: the refit made it worse: %g after %g", x, squares[MSE], squares[Absmax])
		}
	}
}

func TestRow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 256)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	payload, scales, err := QuantizeRow(x, Absmax)
	if err != nil {
		t.Fatal(err)
	}
	if got := 4*len(payload) + 2*len(scales); got != 272 {
		t.Errorf("a row of 256 takes %d bytes, want 272", got)
	}
	back, err := DequantizeRow(payload, scales)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if d := math.Abs(float64(x[i] - back[i])); d > 4.0/254 {
			t.Errorf("value %d: %v comes back as %v", i, x[i], back[i])
		}
	}

	if _, _, err := QuantizeRow(x[:33], Absmax); err == nil {
		t.Error("33 values: no error")
	}
	if _, err := DequantizeRow(payload, scales[1:]); err == nil {
		t.Error("a scale too few: no error")
	}
}
