package rdna3

import "testing"

func TestScalar(t *testing.T) {
	for _, c := range []struct {
		text   string
		a, b   uint32 // s1, s2
		scc    uint32 // before
		want   uint32 // s0
		sccOut uint32
	}{
		{"s_mov_b32 s0, s1", 5, 0, 1, 5, 1},
		{"s_add_u32 s0, s1, s2", 0xffffffff, 1, 0, 0, 1},
		{"s_add_u32 s0, s1, s2", 1, 1, 1, 2, 0},
		{"s_addc_u32 s0, s1, s2", 0xffffffff, 0, 1, 0, 1},
		{"s_sub_u32 s0, s1, s2", 1, 2, 0, 0xffffffff, 1},
		{"s_subb_u32 s0, s1, s2", 1, 1, 1, 0xffffffff, 1},
		{"s_add_i32 s0, s1, s2", 0x7fffffff, 1, 0, 0x80000000, 1},
		{"s_add_i32 s0, s1, s2", 0xffffffff, 1, 1, 0, 0},
		{"s_sub_i32 s0, s1, s2", 0x80000000, 1, 0, 0x7fffffff, 1},
		{"s_mul_i32 s0, s1, s2", 0x10001, 0x10001, 1, 0x20001, 1},
		{"s_mul_hi_u32 s0, s1, s2", 0xffffffff, 0xffffffff, 0, 0xfffffffe, 0},
		{"s_mul_hi_i32 s0, s1, s2", 0xffffffff, 2, 0, 0xffffffff, 0},
		{"s_and_b32 s0, s1, s2", 0xf0, 0x0f, 1, 0, 0},
		{"s_or_b32 s0, s1, s2", 0xf0, 0x0f, 0, 0xff, 1},
		{"s_xor_b32 s0, s1, s2", 0xff, 0x0f, 0, 0xf0, 1},
		{"s_and_not1_b32 s0, s1, s2", 0xff, 0x0f, 0, 0xf0, 1},
		{"s_or_not1_b32 s0, s1, s2", 0, 0xffffffff, 1, 0, 0},
		{"s_not_b32 s0, s1", 0xffffffff, 0, 1, 0, 0},
		{"s_lshl_b32 s0, s1, s2", 1, 33, 0, 2, 1},
		{"s_lshr_b32 s0, s1, s2", 1, 1, 1, 0, 0},
		{"s_ashr_i32 s0, s1, s2", 0x80000000, 31, 0, 0xffffffff, 1},
		{"s_min_i32 s0, s1, s2", 0xffffffff, 1, 0, 0xffffffff, 1},
		{"s_max_i32 s0, s1, s2", 0xffffffff, 1, 1, 1, 0},
		{"s_min_u32 s0, s1, s2", 0xffffffff, 1, 1, 1, 0},
		{"s_max_u32 s0, s1, s2", 0xffffffff, 1, 0, 0xffffffff, 1},
		{"s_abs_i32 s0, s1", 0xfffffffb, 0, 0, 5, 1},
		{"s_bfe_u32 s0, s1, s2", 0x12345678, 0x00080004, 0, 0x67, 1},
		{"s_bfe_i32 s0, s1, s2", 0x12345688, 0x00040004, 0, 0xfffffff8, 1},
		{"s_bfe_i32 s0, s1, 0x1001c", 0x10000000, 0, 0, 0xffffffff, 1},
		{"s_bfm_b32 s0, s1, s2", 4, 8, 0, 0xf00, 0},
		{"s_cselect_b32 s0, s1, s2", 1, 2, 1, 1, 1},
		{"s_cselect_b32 s0, s1, s2", 1, 2, 0, 2, 0},
		{"s_ctz_i32_b32 s0, s1", 8, 0, 1, 3, 1},
		{"s_clz_i32_u32 s0, s1", 1, 0, 0, 31, 0},
		{"s_bcnt1_i32_b32 s0, s1", 0xf0f, 0, 0, 8, 1},
		{"s_brev_b32 s0, s1", 1, 0, 0, 0x80000000, 0},
		{"s_sext_i32_i8 s0, s1", 0x1ff, 0, 0, 0xffffffff, 0},
		{"s_sext_i32_i16 s0, s1", 0x18000, 0, 0, 0xffff8000, 0},
		{"s_movk_i32 s0, 0xff01", 0, 0, 1, 0xffffff01, 1},
		{"s_pack_ll_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0, 0x44442222, 0},
		{"s_pack_hh_b32_b16 s0, s1, s2", 0x11112222, 0x33334444, 0, 0x33331111, 0},
		{"s_lshl2_add_u32 s0, s1, s2", 0x40000000, 7, 0, 7, 1},
		{"s_bitset1_b32 s0, s1", 4, 0, 0, 0x55555555 | 16, 0},
		{"s_addk_i32 s0, 0xffff", 0, 0, 0, 0x55555554, 0},
		{"s_mulk_i32 s0, 0x2", 0, 0, 1, 0xaaaaaaaa, 1},
		{"s_cmp_lt_i32 s1, s2", 0xffffffff, 1, 0, 0x55555555, 1},
		{"s_cmp_lt_u32 s1, s2", 0xffffffff, 1, 1, 0x55555555, 0},
		{"s_cmp_lg_u32 s1, s2", 1, 1, 1, 0x55555555, 0},
		{"s_cmpk_eq_i32 s1, 0xffff", 0xffffffff, 0, 0, 0x55555555, 1},
		{"s_cmpk_eq_u32 s1, 0xffff", 0xffffffff, 0, 1, 0x55555555, 0},
		{"s_bitcmp1_b32 s1, 3", 8, 0, 0, 0x55555555, 1},
		{"s_bitcmp0_b32 s1, 3", 8, 0, 1, 0x55555555, 0},
		{"s_mov_b32 s0, 1.0", 0, 0, 0, 0x3f800000, 0},
		{"s_mov_b32 s0, -16", 0, 0, 0, 0xfffffff0, 0},
	} {
		w := newWave()
		w.s[0], w.s[1], w.s[2], w.scc = 0x55555555, c.a, c.b, c.scc
		do(t, w, c.text)
		if w.s[0] != c.want || w.scc != c.sccOut {
			t.Errorf("%s of %#x, %#x: %#x and SCC %d, want %#x and %d", c.text, c.a, c.b, w.s[0], w.scc, c.want, c.sccOut)
		}
	}
}

func TestScalar64(t *testing.T) {
	w := newWave()
	w.s[2], w.s[3], w.s[4], w.s[5] = 0x80000001, 2, 1, 0
	do(t, w, "s_lshl_b64 s[0:1], s[2:3], 1")
	if w.s[0] != 2 || w.s[1] != 5 || w.scc != 1 {
		t.Errorf("%#x %#x", w.s[0], w.s[1])
	}
	do(t, w, "s_and_b64 s[0:1], s[2:3], s[4:5]")
	do(t, w, "s_cmp_eq_u64 s[0:1], 1")
	if w.scc != 1 {
		t.Errorf("%#x %#x", w.s[0], w.s[1])
	}
	w.s[6], w.s[7], w.s[8] = 0x80000000, 1, 0x200000
	do(t, w, "s_bfe_i64 s[0:1], s[6:7], s8") // the lower word, with its sign
	if w.s[0] != 0x80000000 || w.s[1] != all || w.scc != 1 {
		t.Errorf("s_bfe_i64: %#x %#x", w.s[0], w.s[1])
	}
	do(t, w, "s_bfe_u64 s[0:1], s[6:7], 0x20001f")
	if w.s[0] != 3 || w.s[1] != 0 {
		t.Errorf("s_bfe_u64: %#x %#x", w.s[0], w.s[1])
	}
	do(t, w, "s_ctz_i32_b64 s0, s[6:7]")
	do(t, w, "s_bcnt1_i32_b64 s1, s[6:7]")
	if w.s[0] != 31 || w.s[1] != 2 {
		t.Errorf("%d %d", w.s[0], w.s[1])
	}
	do(t, w, "s_mov_b64 s[0:1], -1")
	if w.s[0] != all || w.s[1] != all {
		t.Errorf("%#x %#x", w.s[0], w.s[1])
	}
	w.s[execLo], w.s[2] = 0xff, 0xf
	do(t, w, "s_and_saveexec_b32 s6, s2")
	if w.s[6] != 0xff || w.exec() != 0xf || w.scc != 1 {
		t.Errorf("s_and_saveexec: %#x, %#x", w.s[6], w.exec())
	}
	do(t, w, "s_and_not1_saveexec_b32 s7, s6")
	if w.s[7] != 0xf || w.exec() != 0xf0 {
		t.Errorf("s_and_not1_saveexec: %#x, %#x", w.s[7], w.exec())
	}
	do(t, w, "s_xor_b32 exec_lo, exec_lo, s2")
	do(t, w, "s_or_saveexec_b32 s7, s6")
	if w.s[7] != 0xff || w.exec() != 0xff {
		t.Errorf("s_or_saveexec: %#x, %#x", w.s[7], w.exec())
	}
	w.s[null] = 0
	do(t, w, "s_mov_b32 null, s2")
	if w.s[null] != 0 {
		t.Error("null was written")
	}
}
