package rdna3

import (
	"math"
)

// The quarter-rate functions. The ISA guide promises 1 ulp and flushes subnormal numbers; here they are
// rounded correctly (up to the 0.50001 ulp of going through float64).

func exp2of(f float32) float32 {
	return f32(flush(u32(float32(math.Exp2(float64(f))))))
}

func log2of(f float32) float32 {
	return float32(math.Log2(float64(f32(flush(u32(f))))))
}

func rcp(f float32) float32 {
	return f32(flush(u32(float32(1 / float64(f32(flush(u32(f))))))))
}

func rsq(f float32) float32 {
	return float32(1 / math.Sqrt(float64(f32(flush(u32(f))))))
}

func sqrt(f float32) float32 { return float32(math.Sqrt(float64(f))) }

// sine and cosine take turns.
func sine(f float32) float32   { return float32(math.Sin(2 * math.Pi * fraction(float64(f)))) }
func cosine(f float32) float32 { return float32(math.Cos(2 * math.Pi * fraction(float64(f)))) }

func fraction(x float64) float64 { return x - math.Floor(x) }

// approximate are the functions that the ISA guide promises to 1 ulp only, exact up to float64.
var approximate = map[string]func(x float64) float64{
	"v_exp_f32": math.Exp2, "v_log_f32": math.Log2, "v_sqrt_f32": math.Sqrt,
	"v_rcp_f32": func(x float64) float64 { return 1 / x }, "v_rcp_iflag_f32": func(x float64) float64 { return 1 / x },
	"v_rsq_f32": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"v_sin_f32": func(x float64) float64 { return math.Sin(2 * math.Pi * fraction(x)) }, "v_cos_f32": func(x float64) float64 { return math.Cos(2 * math.Pi * fraction(x)) },
}

// perturbed gives inexact results as either of the two floats around them, by a hash of seed and operand: both are
// within 1 ulp. What relies on more than the guide promises then shows.
func perturbed(fn func(d, a, b, c *vec), exact func(float64) float64, seed uint32) func(d, a, b, c *vec) {
	return func(d, a, b, c *vec) {
		in := *a
		fn(d, a, b, c)
		for l := range d {
			u, h := d[l], (in[l]^seed)*0x9e3779b1
			h ^= h >> 15
			h *= 0x85ebca6b
			if e := u & inf32; h>>31 == 0 || e == 0 || e == inf32 {
				continue
			}
			x, r := math.Abs(exact(float64(f32(in[l])))), math.Abs(float64(f32(u)))
			switch {
			case r < x:
				u++
			case r > x:
				u--
			}
			d[l] = u
		}
	}
}
