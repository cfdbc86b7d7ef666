package rdna3

import (
	"fmt"
	"math/bits"
	"strings"
)

var sops = scalarTable()

func scalarTable() map[string]sop {
	t := map[string]sop{
		"s_mov_b32":  {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return a })},
		"s_mov_b64":  {dst: 2, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) { return a, keep }},
		"s_movk_i32": {dst: 1, src: 1, n: 1, short: true, fn: plain(func(a, _ uint32) uint32 { return a })},
		"s_cmov_b32": {dst: 1, src: 1, n: 2, acc: true, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return b, keep
			}
			return a, keep
		}},
		"s_add_u32":  {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return a + b, uint32((a + b) >> 32) }},
		"s_addc_u32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) { r := a + b + uint64(w.scc); return r, uint32(r >> 32) }},
		"s_sub_u32":  {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return a - b, flag(b > a) }},
		"s_subb_u32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			return a - b - uint64(w.scc), flag(b+uint64(w.scc) > a)
		}},
		"s_add_i32":    {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return addI(a, b) }},
		"s_sub_i32":    {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return subI(a, b) }},
		"s_addk_i32":   {dst: 1, src: 1, n: 2, short: true, acc: true, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return addI(a, b) }},
		"s_mulk_i32":   {dst: 1, src: 1, n: 2, short: true, acc: true, fn: plain(func(a, b uint32) uint32 { return a * b })},
		"s_mul_i32":    {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a * b })},
		"s_mul_hi_u32": {dst: 1, src: 1, n: 2, fn: plain(mulHiU)},
		"s_mul_hi_i32": {dst: 1, src: 1, n: 2, fn: plain(mulHiI)},
		"s_abs_i32": {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 {
			if int32(a) < 0 {
				return -a
			}
			return a
		})},
		"s_absdiff_i32": {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 {
			if int32(a-b) < 0 {
				return b - a
			}
			return a - b
		})},
		"s_bfm_b32":         {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return (1<<(a&31) - 1) << (b & 31) })},
		"s_bfe_u32":         {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return scalarField(a, b, false) })},
		"s_bfe_i32":         {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return scalarField(a, b, true) })},
		"s_brev_b32":        {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return bits.Reverse32(a) })},
		"s_ctz_i32_b32":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countTrailing(a) })},
		"s_clz_i32_u32":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countLeading(a) })},
		"s_cls_i32":         {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countSign(a) })},
		"s_bcnt1_i32_b32":   {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) })},
		"s_bcnt0_i32_b32":   {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return uint32(bits.OnesCount32(^a)) })},
		"s_sext_i32_i8":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return uint32(int32(int8(a))) })},
		"s_sext_i32_i16":    {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return uint32(int32(int16(a))) })},
		"s_bitset0_b32":     {dst: 1, src: 1, n: 2, acc: true, fn: plain(func(a, b uint32) uint32 { return a &^ (1 << (b & 31)) })},
		"s_bitset1_b32":     {dst: 1, src: 1, n: 2, acc: true, fn: plain(func(a, b uint32) uint32 { return a | 1<<(b&31) })},
		"s_pack_ll_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a&0xffff | b<<16 })},
		"s_pack_lh_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a&0xffff | b&0xffff0000 })},
		"s_pack_hh_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a>>16 | b&0xffff0000 })},
		"s_pack_hl_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a>>16 | b<<16 })},
		"s_cselect_b32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return a, keep
			}
			return b, keep
		}},
		"s_cselect_b64": {dst: 2, src: 2, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return a, keep
			}
			return b, keep
		}},
		"s_bitcmp0_b32":           {src: 1, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&31)&1 == 0 })},
		"s_bitcmp1_b32":           {src: 1, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&31)&1 != 0 })},
		"s_cmp_eq_u64":            {src: 2, n: 2, fn: test(func(a, b uint64) bool { return a == b })},
		"s_cmp_lg_u64":            {src: 2, n: 2, fn: test(func(a, b uint64) bool { return a != b })},
		"s_and_not0_saveexec_b32": {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return ^s & e })},
		"s_and_not1_saveexec_b32": {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return s &^ e })},
		"s_or_not0_saveexec_b32":  {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return ^s | e })},
		"s_or_not1_saveexec_b32":  {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return s | ^e })},
		"s_and_not1_wrexec_b32": {dst: 1, src: 1, n: 1, fn: func(w *wave, a, _ uint64) (uint64, uint32) {
			w.s[execLo] = uint32(a) &^ w.s[execLo]
			return uint64(w.s[execLo]), flag(w.s[execLo] != 0)
		}},
		"s_and_not0_wrexec_b32": {dst: 1, src: 1, n: 1, fn: func(w *wave, a, _ uint64) (uint64, uint32) {
			w.s[execLo] = ^uint32(a) & w.s[execLo]
			return uint64(w.s[execLo]), flag(w.s[execLo] != 0)
		}},
	}
	for name, f := range map[string]func(a, b uint64) uint64{
		"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b }, "xor": func(a, b uint64) uint64 { return a ^ b },
		"and_not1": func(a, b uint64) uint64 { return a &^ b }, "or_not1": func(a, b uint64) uint64 { return a | ^b },
		"nand": func(a, b uint64) uint64 { return ^(a & b) }, "nor": func(a, b uint64) uint64 { return ^(a | b) }, "xnor": func(a, b uint64) uint64 { return ^(a ^ b) },
	} {
		short := func(a, b uint32) uint32 { return uint32(f(uint64(a), uint64(b))) }
		t["s_"+name+"_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(short)}
		t["s_"+name+"_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(f)}
		if !strings.Contains(name, "not") {
			t["s_"+name+"_saveexec_b32"] = sop{dst: 1, src: 1, n: 1, fn: saveexec(short)}
		}
	}
	t["s_not_b32"] = sop{dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return ^a })}
	t["s_not_b64"] = sop{dst: 2, src: 2, n: 1, fn: logic64(func(a, _ uint64) uint64 { return ^a })}
	t["s_lshl_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return a << (b & 31) })}
	t["s_lshr_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return a >> (b & 31) })}
	t["s_ashr_i32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return uint32(int32(a) >> (b & 31)) })}
	t["s_lshl_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return a << (b & 63) })}
	t["s_lshr_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return a >> (b & 63) })}
	t["s_ashr_i64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return uint64(int64(a) >> (b & 63)) })}
	t["s_bfe_u64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return scalarField64(a, uint32(b), false) })}
	t["s_bfe_i64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return scalarField64(a, uint32(b), true) })}
	t["s_bitcmp0_b64"] = sop{src: 2, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&63)&1 == 0 })}
	t["s_bitcmp1_b64"] = sop{src: 2, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&63)&1 != 0 })}
	t["s_brev_b64"] = sop{dst: 2, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) { return bits.Reverse64(a), keep }}
	t["s_bcnt1_i32_b64"] = sop{dst: 1, src: 2, n: 1, fn: logic64(func(a, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) })}
	t["s_ctz_i32_b64"] = sop{dst: 1, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) {
		if a == 0 {
			return all, keep
		}
		return uint64(bits.TrailingZeros64(a)), keep
	}}
	t["s_clz_i32_u64"] = sop{dst: 1, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) {
		if a == 0 {
			return all, keep
		}
		return uint64(bits.LeadingZeros64(a)), keep
	}}
	for n := range 4 {
		by := n + 1
		t[fmt.Sprintf("s_lshl%d_add_u32", by)] = sop{dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) {
			r := a<<by + b
			return r, flag(r>>32 != 0)
		}}
	}
	for name, f := range map[string]func(a, b uint32) bool{"min_i32": orderI["lt"], "max_i32": orderI["gt"], "min_u32": orderU["lt"], "max_u32": orderU["gt"]} {
		t["s_"+name] = sop{dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) {
			if f(uint32(a), uint32(b)) {
				return a, 1
			}
			return b, 0
		}}
	}
	for _, p := range []string{"eq", "lg", "gt", "ge", "lt", "le"} {
		name := p
		if p == "lg" {
			name = "ne"
		}
		i, u := orderI[name], orderU[name]
		compare := func(f func(a, b uint32) bool) func(w *wave, a, b uint64) (uint64, uint32) {
			return test(func(a, b uint64) bool { return f(uint32(a), uint32(b)) })
		}
		t["s_cmp_"+p+"_i32"], t["s_cmp_"+p+"_u32"] = sop{src: 1, n: 2, fn: compare(i)}, sop{src: 1, n: 2, fn: compare(u)}
		t["s_cmpk_"+p+"_i32"], t["s_cmpk_"+p+"_u32"] = sop{src: 1, n: 2, short: true, fn: compare(i)}, sop{src: 1, n: 2, short: true, fn: compare(u)}
	}
	return t
}

// scalarField extracts bits: offset in bits 0 to 4 of how, width in bits 16 to 22.
func scalarField(a, how uint32, signExtend bool) uint32 {
	offset, width := how&31, how>>16&127
	switch {
	case width == 0:
		return 0
	case width >= 32-offset:
		width = 32 - offset
	}
	if signExtend {
		return uint32(signed(a>>offset, int(width)))
	}
	return a >> offset & (1<<width - 1)
}

// scalarField64 does the same in 64 bits; the offset has a bit more.
func scalarField64(a uint64, how uint32, signExtend bool) uint64 {
	offset, width := how&63, how>>16&127
	switch {
	case width == 0:
		return 0
	case width >= 64-offset:
		width = 64 - offset
	}
	if signExtend {
		return uint64(int64(a<<(64-offset-width)) >> (64 - width))
	}
	return a >> offset & (1<<width - 1)
}
