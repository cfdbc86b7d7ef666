package rdna3

import (
	"math"
	"math/bits"
)

var (
	f1 = []typ{tf32}
	f2 = []typ{tf32, tf32}
	f3 = []typ{tf32, tf32, tf32}
	h1 = []typ{tf16}
	h2 = []typ{tf16, tf16}
	h3 = []typ{tf16, tf16, tf16}
	p2 = []typ{pkf16, pkf16}
	p3 = []typ{pkf16, pkf16, pkf16}
	i1 = []typ{b32}
	i2 = []typ{b32, b32}
	i3 = []typ{b32, b32, b32}
	s1 = []typ{b16}
	s2 = []typ{b16, b16}
	s3 = []typ{b16, b16, b16}
	q2 = []typ{pk16, pk16}
	q3 = []typ{pk16, pk16, pk16}
)

// vops are the lane-wise operations with 32-bit registers, by mnemonic without encoding suffix.
var vops = merged(floatOps, halfOps, convertOps, integerOps, shortOps)

func merged(tables ...map[string]vop) map[string]vop {
	out := map[string]vop{}
	for _, t := range tables {
		for name, op := range t {
			out[name] = op
		}
	}
	return out
}

func add32(d, a, b, _ *vec) {
	for l := range d {
		d[l] = u32(f32(a[l]) + f32(b[l]))
	}
}

func sub32(d, a, b, _ *vec) {
	for l := range d {
		d[l] = u32(f32(a[l]) - f32(b[l]))
	}
}

func mul32(d, a, b, _ *vec) {
	for l := range d {
		d[l] = u32(f32(a[l]) * f32(b[l]))
	}
}

func fma32s(d, a, b, c *vec) {
	for l := range d {
		p := float64(f32(a[l])) * float64(f32(b[l]))
		s := p + float64(f32(c[l]))
		if u := math.Float64bits(s); u&0x1fffffff != 0x10000000 && u>>52&0x7ff > 0x381 {
			d[l] = u32(float32(s))
		} else {
			d[l] = u32(float32(oddSum(p, float64(f32(c[l])), s)))
		}
	}
}

func max32s(d, a, b, _ *vec) {
	for l := range d {
		x, y := a[l], b[l]
		if fx, fy := f32(x), f32(y); fx > fy {
			d[l] = x
		} else if fx < fy {
			d[l] = y
		} else {
			d[l] = max32(x, y)
		}
	}
}

// zeroTimes is a product in which zero times anything is zero.
func zeroTimes(a, b float32) float32 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

var floatOps = map[string]vop{
	"v_add_f32":          {tf32, f2, add32, false},
	"v_sub_f32":          {tf32, f2, sub32, false},
	"v_subrev_f32":       {tf32, f2, func(d, a, b, _ *vec) { sub32(d, b, a, nil) }, false},
	"v_mul_f32":          {tf32, f2, mul32, false},
	"v_mul_dx9_zero_f32": {tf32, f2, lane2(func(a, b uint32) uint32 { return u32(zeroTimes(f32(a), f32(b))) }), false},
	"v_fma_f32":          {tf32, f3, fma32s, false},
	"v_fmac_f32":         {tf32, f3, fma32s, true},
	"v_fmaak_f32":        {tf32, f3, fma32s, false},
	"v_fmamk_f32":        {tf32, f3, fma32s, false}, // d = a*K + b, written a, K, b
	"v_min_f32":          {tf32, f2, lane2(min32), false},
	"v_max_f32":          {tf32, f2, max32s, false},
	"v_min3_f32":         {tf32, f3, lane3(func(a, b, c uint32) uint32 { return min32(min32(a, b), c) }), false},
	"v_max3_f32":         {tf32, f3, lane3(func(a, b, c uint32) uint32 { return max32(max32(a, b), c) }), false},
	"v_med3_f32":         {tf32, f3, lane3(med32), false},
	"v_maxmin_f32":       {tf32, f3, lane3(func(a, b, c uint32) uint32 { return min32(max32(a, b), c) }), false},
	"v_minmax_f32":       {tf32, f3, lane3(func(a, b, c uint32) uint32 { return max32(min32(a, b), c) }), false},
	"v_exp_f32":          {tf32, f1, float1(exp2of), false},
	"v_log_f32":          {tf32, f1, float1(log2of), false},
	"v_rcp_f32":          {tf32, f1, float1(rcp), false},
	"v_rcp_iflag_f32":    {tf32, f1, float1(rcp), false},
	"v_rsq_f32":          {tf32, f1, float1(rsq), false},
	"v_sqrt_f32":         {tf32, f1, float1(sqrt), false},
	"v_sin_f32":          {tf32, f1, float1(sine), false},
	"v_cos_f32":          {tf32, f1, float1(cosine), false},
	"v_trunc_f32":        {tf32, f1, float1(func(a float32) float32 { return float32(math.Trunc(float64(a))) }), false},
	"v_floor_f32":        {tf32, f1, float1(func(a float32) float32 { return float32(math.Floor(float64(a))) }), false},
	"v_ceil_f32":         {tf32, f1, float1(func(a float32) float32 { return float32(math.Ceil(float64(a))) }), false},
	"v_rndne_f32":        {tf32, f1, float1(func(a float32) float32 { return float32(math.RoundToEven(float64(a))) }), false},
	"v_fract_f32":        {tf32, f1, float1(func(a float32) float32 { return float32(min(fraction(float64(a)), 0x1.fffffep-1)) }), false},
	"v_ldexp_f32":        {tf32, []typ{tf32, b32}, lane2(func(a, b uint32) uint32 { return u32(ldexp(f32(a), int(int32(b)))) }), false},
	"v_frexp_mant_f32": {tf32, f1, float1(func(a float32) float32 {
		if f := float64(a); math.IsInf(f, 0) || math.IsNaN(f) {
			return a
		}
		m, _ := math.Frexp(float64(a))
		return float32(m)
	}), false},
	"v_frexp_exp_i32_f32": {b32, f1, lane1(func(a uint32) uint32 {
		if a&inf32 == inf32 || f32(a) == 0 {
			return 0
		}
		_, e := math.Frexp(float64(f32(a)))
		return uint32(e)
	}), false},
	"v_div_fixup_f32": {tf32, f3, lane3(divFixup), false},
}

// ldexp multiplies by a power of two with one rounding.
func ldexp(f float32, e int) float32 {
	return float32(math.Ldexp(float64(f), max(min(e, 600), -600)))
}

func add16(a, b float32) float32 { return a + b }
func sub16(a, b float32) float32 { return a - b }
func mul16(a, b float32) float32 { return a * b }

func packed(f func(a, b float32) float32) func(d, a, b, c *vec) {
	return both(func(a, b, _ uint32) uint32 { return toHalf(f(half(a), half(b))) })
}

var halfOps = map[string]vop{
	"v_add_f16":    {tf16, h2, half2(add16), false},
	"v_sub_f16":    {tf16, h2, half2(sub16), false},
	"v_subrev_f16": {tf16, h2, half2(func(a, b float32) float32 { return b - a }), false},
	"v_mul_f16":    {tf16, h2, half2(mul16), false},
	"v_fma_f16":    {tf16, h3, lane3(fma16), false},
	"v_fmac_f16":   {tf16, h3, lane3(fma16), true},
	"v_fmaak_f16":  {tf16, h3, lane3(fma16), false},
	"v_fmamk_f16":  {tf16, h3, lane3(fma16), false},
	"v_min_f16":    {tf16, h2, lane2(min16), false},
	"v_max_f16":    {tf16, h2, lane2(max16), false},
	"v_min3_f16":   {tf16, h3, lane3(func(a, b, c uint32) uint32 { return min16(min16(a, b), c) }), false},
	"v_max3_f16":   {tf16, h3, lane3(func(a, b, c uint32) uint32 { return max16(max16(a, b), c) }), false},
	"v_maxmin_f16": {tf16, h3, lane3(func(a, b, c uint32) uint32 { return min16(max16(a, b), c) }), false},
	"v_minmax_f16": {tf16, h3, lane3(func(a, b, c uint32) uint32 { return max16(min16(a, b), c) }), false},
	"v_exp_f16":    {tf16, h1, half1(func(a float32) float32 { return float32(math.Exp2(float64(a))) }), false},
	"v_log_f16":    {tf16, h1, half1(func(a float32) float32 { return float32(math.Log2(float64(a))) }), false},
	"v_rcp_f16":    {tf16, h1, half1(func(a float32) float32 { return 1 / a }), false},
	"v_rsq_f16":    {tf16, h1, half1(func(a float32) float32 { return float32(1 / math.Sqrt(float64(a))) }), false},
	"v_sqrt_f16":   {tf16, h1, half1(sqrt), false},
	"v_trunc_f16":  {tf16, h1, half1(func(a float32) float32 { return float32(math.Trunc(float64(a))) }), false},
	"v_floor_f16":  {tf16, h1, half1(func(a float32) float32 { return float32(math.Floor(float64(a))) }), false},
	"v_ceil_f16":   {tf16, h1, half1(func(a float32) float32 { return float32(math.Ceil(float64(a))) }), false},
	"v_rndne_f16":  {tf16, h1, half1(func(a float32) float32 { return float32(math.RoundToEven(float64(a))) }), false},
	"v_ldexp_f16": {tf16, []typ{tf16, b16}, lane2(func(a, b uint32) uint32 {
		return halfFrom64(math.Ldexp(float64(half(a)), int(int16(b))))
	}), false},
	"v_pack_b32_f16": {b32, h2, lane2(func(a, b uint32) uint32 { return a | b<<16 }), false},

	"v_pk_add_f16":  {pkf16, p2, packed(add16), false},
	"v_pk_mul_f16":  {pkf16, p2, packed(mul16), false},
	"v_pk_fma_f16":  {pkf16, p3, both(fma16), false},
	"v_pk_fmac_f16": {pkf16, p3, both(fma16), true},
	"v_pk_min_f16":  {pkf16, p2, both(func(a, b, _ uint32) uint32 { return min16(a, b) }), false},
	"v_pk_max_f16":  {pkf16, p2, both(func(a, b, _ uint32) uint32 { return max16(a, b) }), false},

	"v_dot2_f32_f16":    {tf32, []typ{pkf16, pkf16, tf32}, dot2, false},
	"v_dot2acc_f32_f16": {tf32, []typ{pkf16, pkf16, tf32}, dot2, true},
	"v_dot2c_f32_f16":   {tf32, []typ{pkf16, pkf16, tf32}, dot2, true},
	"v_fma_mix_f32":     {tf32, []typ{mixed, mixed, mixed}, fma32s, false},
	"v_fma_mixlo_f16":   {tf16, []typ{mixed, mixed, mixed}, fmaMix, false},
	"v_fma_mixhi_f16":   {tf16, []typ{mixed, mixed, mixed}, fmaMix, false},
}

// dot2 adds the products of both halves to c: c first, each product exact and each sum rounded.
func dot2(d, a, b, c *vec) {
	for l := range d {
		x, y := a[l], b[l]
		sum := fma32(half(x), half(y), f32(c[l]))
		d[l] = u32(fma32(half(x>>16), half(y>>16), sum))
	}
}

// fmaMix rounds the f32 result to f16.
func fmaMix(d, a, b, c *vec) {
	for l := range d {
		d[l] = toHalf(fma32(f32(a[l]), f32(b[l]), f32(c[l])))
	}
}

var convertOps = map[string]vop{
	"v_cvt_f32_i32":         {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(int32(a))) }), false},
	"v_cvt_f32_u32":         {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(a)) }), false},
	"v_cvt_i32_f32":         {b32, f1, lane1(func(a uint32) uint32 { return toI32(float64(f32(a))) }), false},
	"v_cvt_u32_f32":         {b32, f1, lane1(func(a uint32) uint32 { return toU32(float64(f32(a))) }), false},
	"v_cvt_nearest_i32_f32": {b32, f1, lane1(func(a uint32) uint32 { return toI32(math.Floor(float64(f32(a)) + 0.5)) }), false},
	"v_cvt_floor_i32_f32":   {b32, f1, lane1(func(a uint32) uint32 { return toI32(math.Floor(float64(f32(a)))) }), false},
	"v_cvt_f16_f32":         {tf16, f1, lane1(func(a uint32) uint32 { return toHalf(f32(a)) }), false},
	"v_cvt_f32_f16":         {tf32, h1, lane1(func(a uint32) uint32 { return u32(half(a)) }), false},
	"v_cvt_f16_i16":         {tf16, s1, lane1(func(a uint32) uint32 { return toHalf(float32(int16(a))) }), false},
	"v_cvt_f16_u16":         {tf16, s1, lane1(func(a uint32) uint32 { return toHalf(float32(uint16(a))) }), false},
	"v_cvt_i16_f16": {b16, h1, lane1(func(a uint32) uint32 {
		return uint32(max(min(int32(toI32(float64(half(a)))), math.MaxInt16), math.MinInt16)) & 0xffff
	}), false},
	"v_cvt_u16_f16":        {b16, h1, lane1(func(a uint32) uint32 { return min(toU32(float64(half(a))), math.MaxUint16) }), false},
	"v_cvt_f32_ubyte0":     {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(a & 255)) }), false},
	"v_cvt_f32_ubyte1":     {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(a >> 8 & 255)) }), false},
	"v_cvt_f32_ubyte2":     {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(a >> 16 & 255)) }), false},
	"v_cvt_f32_ubyte3":     {tf32, i1, lane1(func(a uint32) uint32 { return u32(float32(a >> 24)) }), false},
	"v_cvt_pk_rtz_f16_f32": {b32, f2, lane2(func(a, b uint32) uint32 { return roundHalf(f32(a), false) | roundHalf(f32(b), false)<<16 }), false},
	"v_cvt_pkrtz_f16_f32":  {b32, f2, lane2(func(a, b uint32) uint32 { return roundHalf(f32(a), false) | roundHalf(f32(b), false)<<16 }), false},
	"v_cvt_pk_i16_i32":     {b32, i2, lane2(func(a, b uint32) uint32 { return clampI16(a) | clampI16(b)<<16 }), false},
	"v_cvt_pk_u16_u32":     {b32, i2, lane2(func(a, b uint32) uint32 { return min(a, 0xffff) | min(b, 0xffff)<<16 }), false},
	"v_cvt_pk_u8_f32": {b32, []typ{tf32, b32, b32}, lane3(func(a, b, c uint32) uint32 {
		shift := b & 3 * 8
		return c&^(255<<shift) | min(toU32(math.RoundToEven(float64(f32(a)))), 255)<<shift
	}), false},
}

func clampI16(a uint32) uint32 {
	return uint32(max(min(int32(a), math.MaxInt16), math.MinInt16)) & 0xffff
}

func countLeading(a uint32) uint32 {
	if a == 0 {
		return all
	}
	return uint32(bits.LeadingZeros32(a))
}

func countTrailing(a uint32) uint32 {
	if a == 0 {
		return all
	}
	return uint32(bits.TrailingZeros32(a))
}

// countSign counts the bits that equal the sign, -1 when all do.
func countSign(a uint32) uint32 {
	x := a ^ uint32(int32(a)>>31)
	if x == 0 {
		return all
	}
	return uint32(bits.LeadingZeros32(x))
}
