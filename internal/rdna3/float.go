package rdna3

import "math"

func f32(u uint32) float32 { return math.Float32frombits(u) }
func u32(f float32) uint32 { return math.Float32bits(f) }

const (
	sign32  = 0x80000000
	inf32   = 0x7f800000
	quiet32 = 0x00400000
	sign16  = 0x8000
	inf16   = 0x7c00
	quiet16 = 0x0200
)

func isNaN32(u uint32) bool  { return u&^sign32 > inf32 }
func isSNaN32(u uint32) bool { return isNaN32(u) && u&quiet32 == 0 }
func isNaN16(u uint32) bool  { return u&0x7fff > inf16 }
func isSNaN16(u uint32) bool { return isNaN16(u) && u&quiet16 == 0 }

// fma32 is a*b+c with one rounding. The product is exact in float64 and the sum is rounded
// there first; rounding again to float32 goes wrong only from exactly half way or below the normal range.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	u := math.Float64bits(s)
	if u&0x1fffffff != 0x10000000 && u>>52&0x7ff > 0x381 {
		return float32(s)
	}
	return float32(oddSum(p, float64(c), s))
}

// oddSum is p+c rounded to odd, given s, the sum rounded to nearest: rounding that to a
// format of at most 51 bits is as good as rounding once.
func oddSum(p, c, s float64) float64 {
	if s == 0 || math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	b := s - p
	err := (p - (s - b)) + (c - b)
	u := math.Float64bits(s)
	if err == 0 || u&1 != 0 {
		return s
	}
	if (err > 0) == (s > 0) {
		u++
	} else {
		u--
	}
	return math.Float64frombits(u)
}

// half is the value of f16 bits; upper bits of h are ignored.
func half(h uint32) float32 {
	f := f32(h&0x7fff<<13) * 0x1p112
	u := u32(f)
	if u >= 0x47800000 { // infinity or NaN
		u = u&0x7fffff | inf32
		if u&0x7fffff != 0 {
			u |= quiet32
		}
	}
	return f32(u | h&sign16<<16)
}

// toHalf rounds to nearest even.
func toHalf(f float32) uint32 { return roundHalf(f, true) }

// roundHalf rounds to nearest even, or toward zero.
func roundHalf(f float32, nearest bool) uint32 {
	u := u32(f)
	sign := u >> 16 & sign16
	u &^= sign32
	switch {
	case u > inf32:
		return sign | inf16 | quiet16 | u>>13&0x3ff
	case u == inf32:
		return sign | inf16
	case u >= 0x47800000: // 65536 and more
		if nearest {
			return sign | inf16
		}
		return sign | 0x7bff
	}
	var h, rest, unit uint32 // the bits that stay, those that go, one of the former in units of the latter
	if u >= 0x38800000 {     // normal
		h, rest, unit = (u-0x38000000)>>13, u&0x1fff, 0x2000
	} else {
		shift := 126 - u>>23 // 14 for the largest subnormals
		if shift > 25 {
			return sign
		}
		m := u&0x7fffff | 0x800000
		h, rest, unit = m>>shift, m&(1<<shift-1), 1<<shift
	}
	if nearest && (rest > unit/2 || rest == unit/2 && h&1 != 0) {
		h++ // into the exponent, and to infinity, where it carries
	}
	return sign | h
}

// halfFrom64 rounds to nearest even.
func halfFrom64(x float64) uint32 {
	f := float32(x)
	if back := float64(f); back != x && !math.IsInf(x, 0) && !math.IsNaN(x) { // to odd
		u := u32(f)
		if math.Abs(back) > math.Abs(x) {
			u-- // toward zero first
		}
		f = f32(u | 1)
	}
	return toHalf(f)
}

// fma16 is a*b+c in f16 with one rounding.
func fma16(a, b, c uint32) uint32 {
	p, x := float64(half(a))*float64(half(b)), float64(half(c))
	return halfFrom64(oddSum(p, x, p+x))
}

// less is a < b where -0 < +0, as minimum and maximum see it.
func less(a, b float32) bool {
	return a < b || a == 0 && b == 0 && math.Signbit(float64(a)) && !math.Signbit(float64(b))
}

// min32 and max32 are V_MIN_F32 and V_MAX_F32 with MODE.IEEE set: a signalling NaN comes out
// quiet, a quiet one gives way to the other operand.
func min32(a, b uint32) uint32 {
	if n, ok := nan32(a, b); ok {
		return n
	}
	if less(f32(a), f32(b)) {
		return a
	}
	return b
}

func max32(a, b uint32) uint32 {
	if n, ok := nan32(a, b); ok {
		return n
	}
	if less(f32(b), f32(a)) {
		return a
	}
	return b
}

func nan32(a, b uint32) (uint32, bool) {
	switch {
	case isSNaN32(a):
		return a | quiet32, true
	case isSNaN32(b):
		return b | quiet32, true
	case isNaN32(b):
		return a, true
	case isNaN32(a):
		return b, true
	}
	return 0, false
}

func min16(a, b uint32) uint32 {
	if n, ok := nan16(a, b); ok {
		return n
	}
	if less(half(a), half(b)) {
		return a
	}
	return b
}

func max16(a, b uint32) uint32 {
	if n, ok := nan16(a, b); ok {
		return n
	}
	if less(half(b), half(a)) {
		return a
	}
	return b
}

func nan16(a, b uint32) (uint32, bool) {
	switch {
	case isSNaN16(a):
		return a | quiet16, true
	case isSNaN16(b):
		return b | quiet16, true
	case isNaN16(b):
		return a, true
	case isNaN16(a):
		return b, true
	}
	return 0, false
}

// med32 is the middle one of three: the minimum of all when one is a NaN.
func med32(a, b, c uint32) uint32 {
	if isNaN32(a) || isNaN32(b) || isNaN32(c) {
		return min32(min32(a, b), c)
	}
	switch top := max32(max32(a, b), c); {
	case f32(top) == f32(a):
		return max32(b, c)
	case f32(top) == f32(b):
		return max32(a, c)
	}
	return max32(a, b)
}

// flush turns a subnormal number into a zero of its sign.
func flush(u uint32) uint32 {
	if u&inf32 == 0 {
		return u & sign32
	}
	return u
}

// clamp32 is the clamp modifier: to 0..1, and a NaN to 0 (MODE.DX10_CLAMP).
func clamp32(u uint32) uint32 {
	switch f := f32(u); {
	case !(f > 0):
		return 0
	case f > 1:
		return u32(1)
	}
	return u
}

func clamp16(u uint32) uint32 {
	switch f := half(u); {
	case !(f > 0):
		return 0
	case f > 1:
		return 0x3c00
	}
	return u
}

// toI32 and toU32 truncate, saturate, and turn a NaN into 0.
func toI32(f float64) uint32 {
	switch {
	case f != f:
		return 0
	case f <= math.MinInt32:
		return 1 << 31
	case f >= math.MaxInt32:
		return math.MaxInt32
	}
	return uint32(int32(f))
}

func toU32(f float64) uint32 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxUint32:
		return math.MaxUint32
	}
	return uint32(f)
}
