package packed16

import "math"

// F16 holds the bits of an IEEE 754 binary16 number.
type F16 uint16

// ToF16 rounds f to nearest even; beyond 65504 it is an infinity.
func ToF16(f float32) F16 {
	bits := math.Float32bits(f)
	sign := F16(bits >> 16 & 0x8000)
	a := math.Abs(float64(f))

	switch {
	case math.IsNaN(a):
		return sign | 0x7E00
	case a >= 65520: // halfway between 65504 and the next power of two
		return sign | 0x7C00
	}

	// numbers below 2^-14 are multiples of 2^-24, as those just above are
	exponent := max(math.Ilogb(a), -14)
	if a == 0 {
		exponent = -14
	}
	mantissa := math.RoundToEven(math.Ldexp(a, 10-exponent))
	// a subnormal has no leading one, which the exponent field would count
	return sign | F16((exponent+14)<<10+int(mantissa))
}

// Float32 is exact.
func (h F16) Float32() float32 {
	exponent, mantissa := int(h>>10&0x1F), int(h&0x3FF)

	var a float64
	switch exponent {
	case 0x1F:
		a = math.Inf(1)
		if mantissa != 0 {
			a = math.NaN()
		}
	case 0:
		a = math.Ldexp(float64(mantissa), -24)
	default:
		a = math.Ldexp(float64(mantissa+1024), exponent-25)
	}
	if h&0x8000 != 0 {
		a = -a
	}
	return float32(a)
}

func (h F16) finite() bool { return h&0x7C00 != 0x7C00 }
