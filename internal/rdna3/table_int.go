package rdna3

import (
	"math"
	"math/bits"
)

func signed(a uint32, width int) int32 { return int32(a<<(32-width)) >> (32 - width) }

func mulHiI(a, b uint32) uint32 { return uint32(int64(int32(a)) * int64(int32(b)) >> 32) }
func mulHiU(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }

func minI(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }
func maxI(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }
func minU(a, b uint32) uint32 { return min(a, b) }
func maxU(a, b uint32) uint32 { return max(a, b) }

func bfeU(a, b, c uint32) uint32 {
	return a >> (b & 31) & (1<<(c&31) - 1)
}

func bfeI(a, b, c uint32) uint32 {
	if c &= 31; c == 0 {
		return 0
	}
	return uint32(signed(uint32(int32(a)>>(b&31)), int(c)))
}

func med3(a, b, c uint32) uint32 { return max(min(max(a, b), c), min(a, b)) }

func medI(a, b, c uint32) uint32 {
	x, y, z := int32(a), int32(b), int32(c)
	return uint32(max(min(max(x, y), z), min(x, y)))
}

// permute is V_PERM_B32: bytes 0..3 of b, 4..7 of a, then signs and constants.
func permute(a, b, sel uint32) uint32 {
	data := uint64(a)<<32 | uint64(b)
	var r uint32
	for i := 0; i < 32; i += 8 {
		var x uint32
		switch s := sel >> i & 255; {
		case s < 8:
			x = uint32(data>>(s*8)) & 255
		case s < 12: // the sign of a word's upper byte
			x = uint32(int64(data<<(64-16*(s-7)))>>63) & 255
		case s >= 13:
			x = 255
		}
		r |= x << i
	}
	return r
}

func sad8(a, b, c uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		x, y := a>>i&255, b>>i&255
		c += max(x, y) - min(x, y)
	}
	return c
}

var integerOps = map[string]vop{
	"v_mov_b32": {b32, i1, func(d, a, _, _ *vec) { *d = *a }, false},
	"v_add_nc_u32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = a[l] + b[l]
		}
	}, false},
	"v_sub_nc_u32":    {b32, i2, lane2(func(a, b uint32) uint32 { return a - b }), false},
	"v_subrev_nc_u32": {b32, i2, lane2(func(a, b uint32) uint32 { return b - a }), false},
	"v_add_nc_i32":    {b32, i2, lane2(func(a, b uint32) uint32 { return a + b }), false},
	"v_sub_nc_i32":    {b32, i2, lane2(func(a, b uint32) uint32 { return a - b }), false},
	"v_and_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = a[l] & b[l]
		}
	}, false},
	"v_or_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = a[l] | b[l]
		}
	}, false},
	"v_xor_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = a[l] ^ b[l]
		}
	}, false},
	"v_xnor_b32": {b32, i2, lane2(func(a, b uint32) uint32 { return ^(a ^ b) }), false},
	"v_not_b32":  {b32, i1, lane1(func(a uint32) uint32 { return ^a }), false},
	"v_lshlrev_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = b[l] << (a[l] & 31)
		}
	}, false},
	"v_lshrrev_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = b[l] >> (a[l] & 31)
		}
	}, false},
	"v_ashrrev_i32":    {b32, i2, lane2(func(a, b uint32) uint32 { return uint32(int32(b) >> (a & 31)) }), false},
	"v_min_i32":        {b32, i2, lane2(minI), false},
	"v_max_i32":        {b32, i2, lane2(maxI), false},
	"v_min_u32":        {b32, i2, lane2(minU), false},
	"v_max_u32":        {b32, i2, lane2(maxU), false},
	"v_min3_i32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return minI(minI(a, b), c) }), false},
	"v_max3_i32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return maxI(maxI(a, b), c) }), false},
	"v_min3_u32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return min(a, b, c) }), false},
	"v_max3_u32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return max(a, b, c) }), false},
	"v_med3_i32":       {b32, i3, lane3(medI), false},
	"v_med3_u32":       {b32, i3, lane3(med3), false},
	"v_maxmin_i32":     {b32, i3, lane3(func(a, b, c uint32) uint32 { return minI(maxI(a, b), c) }), false},
	"v_minmax_i32":     {b32, i3, lane3(func(a, b, c uint32) uint32 { return maxI(minI(a, b), c) }), false},
	"v_maxmin_u32":     {b32, i3, lane3(func(a, b, c uint32) uint32 { return min(max(a, b), c) }), false},
	"v_minmax_u32":     {b32, i3, lane3(func(a, b, c uint32) uint32 { return max(min(a, b), c) }), false},
	"v_mul_lo_u32":     {b32, i2, lane2(func(a, b uint32) uint32 { return a * b }), false},
	"v_mul_hi_u32":     {b32, i2, lane2(mulHiU), false},
	"v_mul_hi_i32":     {b32, i2, lane2(mulHiI), false},
	"v_mul_u32_u24":    {b32, i2, lane2(func(a, b uint32) uint32 { return a & 0xffffff * (b & 0xffffff) }), false},
	"v_mul_i32_i24":    {b32, i2, lane2(func(a, b uint32) uint32 { return uint32(signed(a, 24) * signed(b, 24)) }), false},
	"v_mul_hi_u32_u24": {b32, i2, lane2(func(a, b uint32) uint32 { return mulHiU(a&0xffffff, b&0xffffff) }), false},
	"v_mul_hi_i32_i24": {b32, i2, lane2(func(a, b uint32) uint32 { return mulHiI(uint32(signed(a, 24)), uint32(signed(b, 24))) }), false},
	"v_mad_u32_u24":    {b32, i3, lane3(func(a, b, c uint32) uint32 { return a&0xffffff*(b&0xffffff) + c }), false},
	"v_mad_i32_i24":    {b32, i3, lane3(func(a, b, c uint32) uint32 { return uint32(signed(a, 24)*signed(b, 24)) + c }), false},
	"v_mad_u32_u16":    {b32, []typ{b16, b16, b32}, lane3(func(a, b, c uint32) uint32 { return a*b + c }), false},
	"v_mad_i32_i16":    {b32, []typ{b16, b16, b32}, lane3(func(a, b, c uint32) uint32 { return uint32(signed(a, 16)*signed(b, 16)) + c }), false},
	"v_add3_u32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return a + b + c }), false},
	"v_lshl_add_u32":   {b32, i3, lane3(func(a, b, c uint32) uint32 { return a<<(b&31) + c }), false},
	"v_add_lshl_u32":   {b32, i3, lane3(func(a, b, c uint32) uint32 { return (a + b) << (c & 31) }), false},
	"v_lshl_or_b32":    {b32, i3, lane3(func(a, b, c uint32) uint32 { return a<<(b&31) | c }), false},
	"v_and_or_b32":     {b32, i3, lane3(func(a, b, c uint32) uint32 { return a&b | c }), false},
	"v_or3_b32":        {b32, i3, lane3(func(a, b, c uint32) uint32 { return a | b | c }), false},
	"v_xor3_b32":       {b32, i3, lane3(func(a, b, c uint32) uint32 { return a ^ b ^ c }), false},
	"v_xad_u32":        {b32, i3, lane3(func(a, b, c uint32) uint32 { return (a ^ b) + c }), false},
	"v_bfe_u32":        {b32, i3, lane3(bfeU), false},
	"v_bfe_i32":        {b32, i3, lane3(bfeI), false},
	"v_bfi_b32":        {b32, i3, lane3(func(a, b, c uint32) uint32 { return a&b | ^a&c }), false},
	"v_bfm_b32":        {b32, i2, lane2(func(a, b uint32) uint32 { return (1<<(a&31) - 1) << (b & 31) }), false},
	"v_alignbit_b32":   {b32, i3, lane3(func(a, b, c uint32) uint32 { return uint32((uint64(a)<<32 | uint64(b)) >> (c & 31)) }), false},
	"v_alignbyte_b32":  {b32, i3, lane3(func(a, b, c uint32) uint32 { return uint32((uint64(a)<<32 | uint64(b)) >> (c & 3 * 8)) }), false},
	"v_perm_b32":       {b32, i3, lane3(permute), false},
	"v_sad_u8":         {b32, i3, lane3(sad8), false},
	"v_sad_u32":        {b32, i3, lane3(func(a, b, c uint32) uint32 { return max(a, b) - min(a, b) + c }), false},
	"v_bfrev_b32":      {b32, i1, lane1(bits.Reverse32), false},
	"v_clz_i32_u32":    {b32, i1, lane1(countLeading), false},
	"v_ctz_i32_b32":    {b32, i1, lane1(countTrailing), false},
	"v_cls_i32":        {b32, i1, lane1(countSign), false},
	"v_bcnt_u32_b32":   {b32, i2, lane2(func(a, b uint32) uint32 { return uint32(bits.OnesCount32(a)) + b }), false},
	"v_mbcnt_lo_u32_b32": {b32, i2, func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = uint32(bits.OnesCount32(a[l]&(1<<l-1))) + b[l]
		}
	}, false},
	"v_mbcnt_hi_u32_b32": {b32, i2, func(d, _, b, _ *vec) { *d = *b }, false}, // lanes 32 and up only
}

// shortOps work on 16 bits.
var shortOps = map[string]vop{
	"v_mov_b16":     {b16, s1, func(d, a, _, _ *vec) { *d = *a }, false},
	"v_not_b16":     {b16, s1, lane1(func(a uint32) uint32 { return ^a & 0xffff }), false},
	"v_and_b16":     {b16, s2, lane2(func(a, b uint32) uint32 { return a & b }), false},
	"v_or_b16":      {b16, s2, lane2(func(a, b uint32) uint32 { return a | b }), false},
	"v_xor_b16":     {b16, s2, lane2(func(a, b uint32) uint32 { return a ^ b }), false},
	"v_add_nc_u16":  {b16, s2, lane2(func(a, b uint32) uint32 { return (a + b) & 0xffff }), false},
	"v_sub_nc_u16":  {b16, s2, lane2(func(a, b uint32) uint32 { return (a - b) & 0xffff }), false},
	"v_add_nc_i16":  {b16, s2, lane2(func(a, b uint32) uint32 { return (a + b) & 0xffff }), false},
	"v_sub_nc_i16":  {b16, s2, lane2(func(a, b uint32) uint32 { return (a - b) & 0xffff }), false},
	"v_mul_lo_u16":  {b16, s2, lane2(func(a, b uint32) uint32 { return a * b & 0xffff }), false},
	"v_mad_u16":     {b16, s3, lane3(func(a, b, c uint32) uint32 { return (a*b + c) & 0xffff }), false},
	"v_mad_i16":     {b16, s3, lane3(func(a, b, c uint32) uint32 { return (a*b + c) & 0xffff }), false},
	"v_lshlrev_b16": {b16, s2, lane2(func(a, b uint32) uint32 { return b << (a & 15) & 0xffff }), false},
	"v_lshrrev_b16": {b16, s2, lane2(func(a, b uint32) uint32 { return b >> (a & 15) }), false},
	"v_ashrrev_i16": {b16, s2, lane2(func(a, b uint32) uint32 { return uint32(signed(b, 16)>>(a&15)) & 0xffff }), false},
	"v_min_u16":     {b16, s2, lane2(minU), false},
	"v_max_u16":     {b16, s2, lane2(maxU), false},
	"v_min_i16":     {b16, s2, lane2(func(a, b uint32) uint32 { return uint32(min(signed(a, 16), signed(b, 16))) & 0xffff }), false},
	"v_max_i16":     {b16, s2, lane2(func(a, b uint32) uint32 { return uint32(max(signed(a, 16), signed(b, 16))) & 0xffff }), false},
	"v_cvt_i32_i16": {b32, s1, lane1(func(a uint32) uint32 { return uint32(signed(a, 16)) }), false},
	"v_cvt_u32_u16": {b32, s1, lane1(func(a uint32) uint32 { return a }), false},

	"v_pk_add_u16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return a + b }), false},
	"v_pk_add_i16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return a + b }), false},
	"v_pk_sub_u16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return a - b }), false},
	"v_pk_sub_i16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return a - b }), false},
	"v_pk_mul_lo_u16":  {pk16, q2, both(func(a, b, _ uint32) uint32 { return a * b }), false},
	"v_pk_mad_u16":     {pk16, q3, both(func(a, b, c uint32) uint32 { return a*b + c }), false},
	"v_pk_mad_i16":     {pk16, q3, both(func(a, b, c uint32) uint32 { return a*b + c }), false},
	"v_pk_lshlrev_b16": {pk16, q2, both(func(a, b, _ uint32) uint32 { return b << (a & 15) }), false},
	"v_pk_lshrrev_b16": {pk16, q2, both(func(a, b, _ uint32) uint32 { return b >> (a & 15) }), false},
	"v_pk_ashrrev_i16": {pk16, q2, both(func(a, b, _ uint32) uint32 { return uint32(signed(b, 16) >> (a & 15)) }), false},
	"v_pk_min_u16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return min(a, b) }), false},
	"v_pk_max_u16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return max(a, b) }), false},
	"v_pk_min_i16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return uint32(min(signed(a, 16), signed(b, 16))) }), false},
	"v_pk_max_i16":     {pk16, q2, both(func(a, b, _ uint32) uint32 { return uint32(max(signed(a, 16), signed(b, 16))) }), false},
}

// wop is an operation with 64-bit lanes among its operands.
type wop struct {
	dst   typ
	src   []typ
	carry bool // a carry register is written between destination and sources
	fn    func(a, b, c uint64) uint64
}

func double(f func(a, b, c float64) float64) func(a, b, c uint64) uint64 {
	return func(a, b, c uint64) uint64 {
		return math.Float64bits(f(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
	}
}

var wides = map[string]wop{
	"v_lshlrev_b64": {b64, []typ{b32, b64}, false, func(a, b, _ uint64) uint64 { return b << (a & 63) }},
	"v_lshrrev_b64": {b64, []typ{b32, b64}, false, func(a, b, _ uint64) uint64 { return b >> (a & 63) }},
	"v_ashrrev_i64": {b64, []typ{b32, b64}, false, func(a, b, _ uint64) uint64 { return uint64(int64(b) >> (a & 63)) }},
	"v_mad_u64_u32": {b64, []typ{b32, b32, b64}, true, func(a, b, c uint64) uint64 { return a*b + c }},
	"v_mad_i64_i32": {b64, []typ{b32, b32, b64}, true, func(a, b, c uint64) uint64 {
		return uint64(int64(int32(a))*int64(int32(b))) + c
	}},
	"v_add_f64":     {tf64, []typ{tf64, tf64}, false, double(func(a, b, _ float64) float64 { return a + b })},
	"v_mul_f64":     {tf64, []typ{tf64, tf64}, false, double(func(a, b, _ float64) float64 { return a * b })},
	"v_fma_f64":     {tf64, []typ{tf64, tf64, tf64}, false, double(math.FMA)},
	"v_cvt_f64_f32": {tf64, []typ{tf32}, false, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(f32(uint32(a)))) }},
	"v_cvt_f64_i32": {tf64, []typ{b32}, false, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(int32(a))) }},
	"v_cvt_f64_u32": {tf64, []typ{b32}, false, func(a, _, _ uint64) uint64 { return math.Float64bits(float64(uint32(a))) }},
	"v_cvt_f32_f64": {tf32, []typ{tf64}, false, func(a, _, _ uint64) uint64 { return uint64(u32(float32(math.Float64frombits(a)))) }},
	"v_cvt_i32_f64": {b32, []typ{tf64}, false, func(a, _, _ uint64) uint64 { return uint64(toI32(math.Float64frombits(a))) }},
	"v_cvt_u32_f64": {b32, []typ{tf64}, false, func(a, _, _ uint64) uint64 { return uint64(toU32(math.Float64frombits(a))) }},
}
