package rdna3

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// lanesOf runs an instruction on v1 with lane numbers in it and returns v0, which held 99 everywhere.
func lanesOf(t *testing.T, exec uint32, text string, words ...uint32) vec {
	t.Helper()
	w := newWave()
	w.s[execLo] = exec
	for l := range lanes {
		w.v[0][l], w.v[1][l], w.v[2][l] = 99, uint32(l), uint32(4*(l+3))
	}
	w.s[4], w.s[5] = 0x76543210, 0xfedcba98
	w.s[6], w.s[7] = 0x01234567, 0x89abcdef
	do(t, w, text, words...)
	for l := range w.vm {
		w.vm[l].waits = 1
	}
	w.waitVM(0)
	w.waitLGKM(0)
	return w.v[0]
}

func TestLaneMoves(t *testing.T) {
	each := func(f func(l int) int) (v vec) {
		for l := range v {
			v[l] = uint32(f(l))
		}
		return v
	}
	const half = 0x0000ffff
	for _, c := range []struct {
		text string
		exec uint32
		word uint32
		want func(l int) int
	}{
		{"v_mov_b32_dpp v0, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l ^ 3 }},
		{"v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xf bank_mask:0xf", all, 0, func(l int) int {
			if l%16 == 15 {
				return 99
			}
			return l + 1
		}},
		{"v_mov_b32_dpp v0, v1 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:1", all, 0, func(l int) int {
			if l%16 < 2 {
				return 0
			}
			return l - 2
		}},
		{"v_mov_b32_dpp v0, v1 row_ror:4 row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l&16 | (l-4)&15 }},
		{"v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l ^ 15 }},
		{"v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l ^ 7 }},
		{"v_mov_b32_dpp v0, v1 row_share:5 row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l&16 | 5 }},
		{"v_mov_b32_dpp v0, v1 row_xmask:8 row_mask:0xf bank_mask:0xf", all, 0, func(l int) int { return l ^ 8 }},
		{"v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0x2 bank_mask:0xf", all, 0, func(l int) int {
			if l < 16 {
				return 99
			}
			return l ^ 1
		}},
		{"v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0x1", all, 0, func(l int) int {
			if l%16 >= 4 {
				return 99
			}
			return l ^ 1
		}},
		{"v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf", 0x55555555, 0, func(l int) int { return 99 }},
		{"v_mov_b32_dpp v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf fi:1", 0x55555555, 0, func(l int) int {
			if l%2 == 1 {
				return 99
			}
			return l ^ 1
		}},
		{"v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]", all, 0, func(l int) int { return l ^ 7 }},
		{"v_permlane16_b32 v0, v1, s4, s5", all, 0, func(l int) int { return l }},
		{"v_permlanex16_b32 v0, v1, s4, s5", all, 0, func(l int) int { return l ^ 16 }},
		{"v_permlane16_b32 v0, v1, s6, s7", all, 0, func(l int) int { return l ^ 7 }},
		{"v_permlanex16_b32 v0, v1, s4, s5", half, 0, func(l int) int { return 99 }},
		{"v_permlanex16_b32 v0, v1, s4, s5 op_sel:[1,0]", half, 0, func(l int) int {
			if l >= 16 {
				return 99
			}
			return l + 16
		}},
		{"v_permlanex16_b32 v0, v1, s4, s5 op_sel:[0,1]", half, 0, func(l int) int {
			if l >= 16 {
				return 99
			}
			return 0
		}},
		{"ds_bpermute_b32 v0, v2, v1", all, 0, func(l int) int { return (l + 3) % 32 }},
		{"ds_bpermute_b32 v0, v2, v1", half, 0, func(l int) int {
			switch {
			case l >= 16:
				return 99
			case l+3 >= 16:
				return 0 // from a lane that is off
			}
			return l + 3
		}},
		{"ds_permute_b32 v0, v2, v1", all, 0, func(l int) int { return (l + 29) % 32 }},
		{"ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,1)", all, 0x041f, func(l int) int { return l ^ 1 }},
		{"ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,3,2,1,0)", all, 0x801b, func(l int) int { return l ^ 3 }},
		{"ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,1)", all, 0x0038, func(l int) int { return l&24 | 1 }},
	} {
		if got, want := lanesOf(t, c.exec, c.text, c.word), each(c.want); got != want {
			t.Errorf("%s with EXEC %#x: %v, want %v", c.text, c.exec, got, want)
		}
	}
}

func TestLanesAndScalars(t *testing.T) {
	w := newWave()
	for l := range lanes {
		w.v[1][l] = uint32(100 + l)
	}
	w.s[execLo] = 0xfff0
	do(t, w, "v_readfirstlane_b32 s0, v1")
	w.s[2] = 37
	do(t, w, "v_readlane_b32 s1, v1, s2")
	do(t, w, "v_writelane_b32 v1, s2, 3")
	if w.s[0] != 104 || w.s[1] != 105 || w.v[1][3] != 37 {
		t.Errorf("%d %d %d", w.s[0], w.s[1], w.v[1][3])
	}
	w.s[execLo] = 0
	do(t, w, "v_readfirstlane_b32 s0, v1")
	if w.s[0] != 100 {
		t.Errorf("with no lane on: %d", w.s[0])
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		text string
		a, b []uint32
		want uint32
	}{
		{"v_cmp_lt_f32_e32 vcc_lo, v1, v2", []uint32{f(1), f(2), qnan, nzero}, []uint32{f(2), f(1), f(1), 0}, 1},
		{"v_cmp_nlt_f32_e32 vcc_lo, v1, v2", []uint32{f(1), f(2), qnan, nzero}, []uint32{f(2), f(1), f(1), 0}, 14},
		{"v_cmp_eq_f32_e32 vcc_lo, v1, v2", []uint32{nzero, qnan, f(1)}, []uint32{0, qnan, f(1)}, 5},
		{"v_cmp_neq_f32_e32 vcc_lo, v1, v2", []uint32{nzero, qnan, f(1)}, []uint32{0, qnan, f(2)}, 6},
		{"v_cmp_lg_f32_e32 vcc_lo, v1, v2", []uint32{qnan, f(1)}, []uint32{qnan, f(2)}, 2},
		{"v_cmp_nlg_f32_e32 vcc_lo, v1, v2", []uint32{qnan, f(1)}, []uint32{qnan, f(2)}, 1},
		{"v_cmp_o_f32_e32 vcc_lo, v1, v2", []uint32{qnan, f(1)}, []uint32{f(1), f(2)}, 2},
		{"v_cmp_u_f32_e32 vcc_lo, v1, v2", []uint32{qnan, f(1)}, []uint32{f(1), f(2)}, 1},
		{"v_cmp_nlg_f16_e32 vcc_lo, v1, v2", []uint32{0x7e00, 0x3c00, 0x12343c00}, []uint32{0x3c00, 0x4000, 0x3c00}, 5},
		{"v_cmp_gt_i32_e32 vcc_lo, v1, v2", []uint32{1, 0xffffffff}, []uint32{0xffffffff, 1}, 1},
		{"v_cmp_gt_u32_e32 vcc_lo, v1, v2", []uint32{1, 0xffffffff}, []uint32{0xffffffff, 1}, 2},
		{"v_cmp_lt_u16_e32 vcc_lo, v1, v2", []uint32{0xf0001, 5}, []uint32{2, 5}, 1},
		{"v_cmp_lt_i16_e32 vcc_lo, v1, v2", []uint32{0xffff, 5}, []uint32{2, 5}, 1},
		{"v_cmp_class_f32_e32 vcc_lo, v1, v2", []uint32{qnan, snan, ninf, f(-1), nzero | tiny, nzero, 0, tiny, f(1), pinf}, []uint32{2, 1, 4, 8, 16, 32, 64, 128, 256, 512}, 0x3ff},
		{"v_cmp_class_f32_e32 vcc_lo, v1, v2", []uint32{qnan, snan, ninf, f(-1), nzero | tiny, nzero, 0, tiny, f(1), pinf}, []uint32{1, 2, 8, 4, 32, 16, 128, 64, 512, 256}, 0},
	} {
		w := newWave()
		w.s[execLo] = 1<<len(c.a) - 1
		copy(w.v[1][:], c.a)
		copy(w.v[2][:], c.b)
		do(t, w, c.text)
		if w.s[vccLo] != c.want {
			t.Errorf("%s: %#x, want %#x", c.text, w.s[vccLo], c.want)
		}
	}
	w := newWave()
	w.s[execLo] = 0xff
	for l := range lanes {
		w.v[1][l] = uint32(l)
	}
	do(t, w, "v_cmpx_gt_u32_e32 4, v1")
	if w.exec() != 0xf {
		t.Errorf("v_cmpx: EXEC is %#x", w.exec())
	}
	w.s[execLo], w.v[1], w.v[2] = 1, vec{}, vec{1}
	w.s[2], w.s[3] = 0xffffffff, 0
	do(t, w, "v_cmp_gt_i64_e32 vcc_lo, s[2:3], v[1:2]")
	if w.s[vccLo] != 0 {
		t.Error("v_cmp_gt_i64: 2^32-1 > 2^32")
	}
}

func TestCarries(t *testing.T) {
	w := newWave()
	w.s[execLo] = 7
	w.v[1], w.v[2], w.v[3] = vec{0xffffffff, 1, 5}, vec{1, 1, 5}, vec{1, 2, 3}
	do(t, w, "v_add_co_u32 v0, vcc_lo, v1, v2")
	do(t, w, "v_add_co_ci_u32_e32 v4, vcc_lo, v3, v2, vcc_lo")
	if w.v[0][0] != 0 || w.v[4][0] != 3 || w.v[4][1] != 3 || w.s[vccLo] != 0 {
		t.Errorf("%v %v %#x", w.v[0][:3], w.v[4][:3], w.s[vccLo])
	}
	do(t, w, "v_sub_co_u32 v0, s2, v2, v1")
	do(t, w, "v_subrev_co_ci_u32_e64 v4, s3, v3, v2, s2")
	if w.v[0][0] != 2 || w.s[2] != 1 || w.v[4] != (vec{0xffffffff, 0xffffffff, 2}) || w.s[3] != 3 {
		t.Errorf("%v %#x %v %#x", w.v[0][:3], w.s[2], w.v[4][:3], w.s[3])
	}
	w.v[5], w.v[6] = vec{0xffffffff}, vec{0xffffffff}
	do(t, w, "v_mad_u64_u32 v[8:9], null, v5, v6, v[1:2]")
	if w.v[8][0] != 0 || w.v[9][0] != 0 { // (2^32-1)^2 + 2^32 + 2^32-1 = 2^64
		t.Errorf("v_mad_u64_u32: %#x %#x", w.v[8][0], w.v[9][0])
	}
	do(t, w, "v_mad_i64_i32 v[8:9], null, v5, v6, v[1:2]")
	if w.v[8][0] != 0 || w.v[9][0] != 2 { // 1 + 2^32 + 2^32-1
		t.Errorf("v_mad_i64_i32: %#x %#x", w.v[8][0], w.v[9][0])
	}
	w.v[1], w.v[2] = vec{0x80000000}, vec{1}
	do(t, w, "v_lshlrev_b64 v[8:9], 1, v[1:2]")
	do(t, w, "v_ashrrev_i64 v[10:11], 32, v[1:2]")
	if w.v[8][0] != 0 || w.v[9][0] != 3 || w.v[10][0] != 1 || w.v[11][0] != 0 {
		t.Errorf("%#x %#x %#x %#x", w.v[8][0], w.v[9][0], w.v[10][0], w.v[11][0])
	}
}

// The whole expansion of a division, as the compiler writes it, rounds correctly at every scale.
func TestDivision(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := newWave()
	for range 200 {
		var num, den vec
		for l := range lanes {
			num[l], den[l] = r.Uint32(), r.Uint32()
			if l < 4 {
				den[l] = den[l] &^ inf32 // subnormal
			}
			if l >= 4 && l < 8 {
				num[l] = num[l] &^ inf32
			}
		}
		w.v[1], w.v[2] = num, den
		do(t, w, "v_div_scale_f32 v3, null, v2, v2, v1")
		do(t, w, "v_div_scale_f32 v4, vcc_lo, v1, v2, v1")
		do(t, w, "v_rcp_f32_e32 v5, v3")
		do(t, w, "v_fma_f32 v6, -v3, v5, 1.0")
		do(t, w, "v_fmac_f32_e32 v5, v6, v5")
		do(t, w, "v_mul_f32_e32 v6, v4, v5")
		do(t, w, "v_fma_f32 v7, -v3, v6, v4")
		do(t, w, "v_fmac_f32_e32 v6, v7, v5")
		do(t, w, "v_fma_f32 v4, -v3, v6, v4")
		do(t, w, "v_div_fmas_f32 v4, v4, v5, v6")
		do(t, w, "v_div_fixup_f32 v0, v4, v2, v1")
		for l := range lanes {
			want := u32(f32(num[l]) / f32(den[l]))
			got := w.v[0][l]
			off := int64(got) - int64(want)
			if subnormal := want&inf32 == 0; off != 0 && !(isNaN32(got) && isNaN32(want)) && !(subnormal && off >= -1 && off <= 1) {
				t.Errorf("%g / %g = %g, want %g", f32(num[l]), f32(den[l]), f32(got), f32(want))
			}
		}
	}
}

func TestMatrixProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	w := newWave()
	for i := range 16 { // A and B: 8 registers each, both halves of the wave alike
		for l := range 16 {
			x := r.Uint32()
			if i < 8 {
				x = toHalf(float32(r.NormFloat64())) | toHalf(float32(r.NormFloat64()))<<16
			}
			w.v[16+i][l], w.v[16+i][l+16] = x, x
		}
	}
	for i := range 8 {
		for l := range lanes {
			w.v[i][l] = uint32(i*lanes + l)
		}
	}
	c := w.v
	at := func(m, n int) (reg, lane int) { return m / 2, m%2*16 + n }
	do(t, w, "v_wmma_i32_16x16x16_iu8 v[0:7], v[24:27], v[28:31], v[0:7] neg_lo:[1,0,0]")
	for m := range 16 {
		for n := range 16 {
			reg, lane := at(m, n)
			want := int32(c[reg][lane])
			for k := range 16 {
				want += int32(int8(c[24+k/4][m]>>(k%4*8))) * int32(uint8(c[28+k/4][n]>>(k%4*8)))
			}
			if got := int32(w.v[reg][lane]); got != want {
				t.Fatalf("iu8 row %d column %d: %d, want %d", m, n, got, want)
			}
		}
	}
	for i := range 8 {
		for l := range lanes {
			w.v[24+i][l] = c[16+i][(l+5)%16]
			w.v[i][l] = f(float64(l))
		}
	}
	c = w.v
	do(t, w, "v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7]")
	for m := range 16 {
		for n := range 16 {
			reg, lane := at(m, n)
			want := float64(f32(c[reg][lane]))
			for k := range 16 {
				want += float64(half(c[16+k/2][m]>>(k%2*16))) * float64(half(c[24+k/2][n]>>(k%2*16)))
			}
			if got := w.v[reg][lane]; got != f(want) {
				t.Fatalf("f16 row %d column %d: %g, want %g", m, n, f32(got), want)
			}
		}
	}
	do(t, w, "v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], 0")
	w.s[execLo] = 1
	if said := fails(t, w, "v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7]"); !strings.Contains(said, "lanes off") {
		t.Error(said)
	}
	w.s[execLo] = all
	w.v[17][3]++
	if said := fails(t, w, "v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7]"); !strings.Contains(said, "lanes 3 and 19 hold different rows") {
		t.Error(said)
	}
}
