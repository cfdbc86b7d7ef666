package rdna3

import "testing"

func TestConversions(t *testing.T) {
	check(t, []unit{
		{"v_cvt_f32_i32_e32 v0, v1", [][]uint32{{0xffffffff, f(-1)}, {0x80000000, f(-0x1p31)}, {0x01000001, f(0x1p24)}, {0x01000003, f(0x1p24 + 4)}}},
		{"v_cvt_f32_u32_e32 v0, v1", [][]uint32{{0xffffffff, f(0x1p32)}, {0, 0}}},
		{"v_cvt_i32_f32_e32 v0, v1", [][]uint32{{f(-1.9), 0xffffffff}, {f(1e20), 0x7fffffff}, {f(-1e20), 0x80000000}, {qnan, 0}, {pinf, 0x7fffffff}}},
		{"v_cvt_u32_f32_e32 v0, v1", [][]uint32{{f(1.9), 1}, {f(-1), 0}, {f(1e20), 0xffffffff}, {qnan, 0}}},
		{"v_cvt_floor_i32_f32_e32 v0, v1", [][]uint32{{f(-1.1), 0xfffffffe}}},
		{"v_cvt_nearest_i32_f32_e32 v0, v1", [][]uint32{{f(2.5), 3}, {f(-2.5), 0xfffffffe}}},
		{"v_cvt_f16_f32_e32 v0, v1", [][]uint32{
			{f(1), 0x55553c00}, {f(65504), 0x55557bff}, {f(65519), 0x55557bff}, {f(65520), 0x55557c00}, {f(0x1p-24), 0x55550001}, {f(0x1p-25), 0x55550000},
			{f(0x1.8p-25), 0x55550001}, {f(-0x1p-14), 0x55558400}, {nzero, 0x55558000}, {f(1 + 0x1p-11), 0x55553c00}, {f(1 + 0x3p-11), 0x55553c02}, {f(0x1.ff8p-15), 0x555503ff}, {f(0x1.ffcp-15), 0x55550400}}},
		{"v_cvt_f32_f16_e32 v0, v1", [][]uint32{{0xffff3c00, f(1)}, {0x0001, f(0x1p-24)}, {0x7c00, pinf}, {0xfc00, ninf}, {0x8000, nzero}, {0x7e00, qnan}, {0x03ff, f(0x1.ff8p-15)}}},
		{"v_cvt_f32_f16_e64 v0, |v1|", [][]uint32{{0xbc00, f(1)}}},
		{"v_cvt_pk_rtz_f16_f32_e32 v0, v1, v2", [][]uint32{{f(1 + 0x1.ffp-10), f(-65519), 0xfbff3c01}}},
		{"v_cvt_pk_i16_i32 v0, v1, v2", [][]uint32{{40000, 0xffff0000, 0x80007fff}}},
		{"v_cvt_pk_u16_u32 v0, v1, v2", [][]uint32{{70000, 3, 0x0003ffff}}},
		{"v_cvt_f32_ubyte0_e32 v0, v1", [][]uint32{{0x040302ff, f(255)}}},
		{"v_cvt_f32_ubyte1_e32 v0, v1", [][]uint32{{0x04030201, f(2)}}},
		{"v_cvt_f32_ubyte2_e32 v0, v1", [][]uint32{{0x04030201, f(3)}}},
		{"v_cvt_f32_ubyte3_e32 v0, v1", [][]uint32{{0xff030201, f(255)}}},
		{"v_cvt_f16_i16_e32 v0, v1", [][]uint32{{0xffff, 0x5555bc00}}},
		{"v_cvt_i16_f16_e32 v0, v1", [][]uint32{{0xbe00, 0x5555ffff}, {0x7bff, 0x55557fff}}},
		{"v_cvt_i32_i16_e32 v0, v1", [][]uint32{{0x1234ffff, 0xffffffff}}},
		{"v_cvt_u32_u16_e32 v0, v1", [][]uint32{{0x1234ffff, 0xffff}}},
	})
}

func TestInteger(t *testing.T) {
	check(t, []unit{
		{"v_add_nc_u32_e32 v0, v1, v2", [][]uint32{{0xffffffff, 2, 1}}},
		{"v_sub_nc_u32_e32 v0, v1, v2", [][]uint32{{1, 2, 0xffffffff}}},
		{"v_subrev_nc_u32_e32 v0, v1, v2", [][]uint32{{1, 2, 1}}},
		{"v_and_b32_e32 v0, v1, v2", [][]uint32{{0xff00, 0x0ff0, 0x0f00}}},
		{"v_or_b32_e32 v0, v1, v2", [][]uint32{{0xff00, 0x0ff0, 0xfff0}}},
		{"v_xor_b32_e32 v0, v1, v2", [][]uint32{{0xff00, 0x0ff0, 0xf0f0}}},
		{"v_xnor_b32_e32 v0, v1, v2", [][]uint32{{0xff00, 0x0ff0, 0xffff0f0f}}},
		{"v_not_b32_e32 v0, v1", [][]uint32{{0, 0xffffffff}}},
		{"v_lshlrev_b32_e32 v0, v1, v2", [][]uint32{{33, 3, 6}}},
		{"v_lshrrev_b32_e32 v0, v1, v2", [][]uint32{{4, 0x80000000, 0x08000000}}},
		{"v_ashrrev_i32_e32 v0, v1, v2", [][]uint32{{4, 0x80000000, 0xf8000000}}},
		{"v_min_i32_e32 v0, v1, v2", [][]uint32{{0xffffffff, 1, 0xffffffff}}},
		{"v_max_i32_e32 v0, v1, v2", [][]uint32{{0xffffffff, 1, 1}}},
		{"v_min_u32_e32 v0, v1, v2", [][]uint32{{0xffffffff, 1, 1}}},
		{"v_max_u32_e32 v0, v1, v2", [][]uint32{{0xffffffff, 1, 0xffffffff}}},
		{"v_max3_u32 v0, v1, v2, v3", [][]uint32{{1, 7, 3, 7}}},
		{"v_min3_i32 v0, v1, v2, v3", [][]uint32{{1, 0xfffffffe, 3, 0xfffffffe}}},
		{"v_med3_i32 v0, v1, v2, v3", [][]uint32{{1, 0xfffffffe, 3, 1}}},
		{"v_med3_u32 v0, v1, v2, v3", [][]uint32{{1, 0xfffffffe, 3, 3}}},
		{"v_mul_lo_u32 v0, v1, v2", [][]uint32{{0x10001, 0x10001, 0x20001}}},
		{"v_mul_hi_u32 v0, v1, v2", [][]uint32{{0xffffffff, 0xffffffff, 0xfffffffe}}},
		{"v_mul_hi_i32 v0, v1, v2", [][]uint32{{0xffffffff, 2, 0xffffffff}}},
		{"v_mul_u32_u24_e32 v0, v1, v2", [][]uint32{{0xff000003, 5, 15}}},
		{"v_mul_i32_i24_e32 v0, v1, v2", [][]uint32{{0x00ffffff, 5, 0xfffffffb}}},
		{"v_mad_u32_u24 v0, v1, v2, v3", [][]uint32{{0xff000003, 5, 1, 16}}},
		{"v_mad_i32_i24 v0, v1, v2, v3", [][]uint32{{0x00ffffff, 5, 6, 1}}},
		{"v_add3_u32 v0, v1, v2, v3", [][]uint32{{0xffffffff, 1, 5, 5}}},
		{"v_lshl_add_u32 v0, v1, v2, v3", [][]uint32{{3, 4, 5, 53}}},
		{"v_add_lshl_u32 v0, v1, v2, v3", [][]uint32{{3, 4, 2, 28}}},
		{"v_lshl_or_b32 v0, v1, v2, v3", [][]uint32{{3, 4, 1, 49}}},
		{"v_and_or_b32 v0, v1, v2, v3", [][]uint32{{0xff, 0x0f0, 0xf00, 0xff0}}},
		{"v_or3_b32 v0, v1, v2, v3", [][]uint32{{1, 2, 4, 7}}},
		{"v_xor3_b32 v0, v1, v2, v3", [][]uint32{{1, 3, 4, 6}}},
		{"v_xad_u32 v0, v1, v2, v3", [][]uint32{{5, 0xffffffff, 1, 0xfffffffb}}},
		{"v_bfe_u32 v0, v1, v2, v3", [][]uint32{{0x12345678, 4, 8, 0x67}, {0x12345678, 4, 0, 0}}},
		{"v_bfe_i32 v0, v1, v2, v3", [][]uint32{{0x12345688, 4, 4, 0xfffffff8}, {0x12345688, 4, 0, 0}}},
		{"v_bfi_b32 v0, v1, v2, v3", [][]uint32{{0xff00, 0x1234, 0xabcd, 0x12cd}}},
		{"v_bfm_b32 v0, v1, v2", [][]uint32{{4, 8, 0xf00}}},
		{"v_alignbit_b32 v0, v1, v2, v3", [][]uint32{{0x1, 0x80000000, 4, 0x18000000}}},
		{"v_alignbyte_b32 v0, v1, v2, v3", [][]uint32{{0x11223344, 0x55667788, 1, 0x44556677}}},
		{"v_perm_b32 v0, v1, v2, v3", [][]uint32{{0x07060504, 0x83020180, 0x04000703, 0x04800783}, {0x80000000, 0x00800000, 0x0d0c0b0a, 0xff00ff00}, {0x8000, 0x8000, 0x0a0a0808, 0xffffffff}}},
		{"v_sad_u8 v0, v1, v2, v3", [][]uint32{{0x01020304, 0x04030201, 10, 18}}},
		{"v_bfrev_b32_e32 v0, v1", [][]uint32{{1, 0x80000000}}},
		{"v_clz_i32_u32_e32 v0, v1", [][]uint32{{1, 31}, {0, 0xffffffff}}},
		{"v_ctz_i32_b32_e32 v0, v1", [][]uint32{{8, 3}, {0, 0xffffffff}}},
		{"v_cls_i32_e32 v0, v1", [][]uint32{{0xf0000000, 4}, {0, 0xffffffff}, {0xffffffff, 0xffffffff}, {1, 31}}},
		{"v_bcnt_u32_b32 v0, v1, v2", [][]uint32{{0xff, 3, 11}}},
		{"v_add_nc_u16 v0, v1, v2", [][]uint32{{0x1ffff, 2, 0x55550001}}},
		{"v_add_nc_u16 v0, v1, v2 op_sel:[1,0,1]", [][]uint32{{0x00070000, 2, 0x0009aaaa}}},
		{"v_mul_lo_u16 v0, v1, v2", [][]uint32{{0x101, 0x101, 0x55550201}}},
		{"v_lshlrev_b16 v0, v1, v2", [][]uint32{{4, 0xf001, 0x55550010}}},
		{"v_ashrrev_i16 v0, v1, v2", [][]uint32{{4, 0x8000, 0x5555f800}}},
		{"v_min_i16 v0, v1, v2", [][]uint32{{0xffff, 1, 0x5555ffff}}},
		{"v_pk_add_u16 v0, v1, v2", [][]uint32{{0xffff0001, 0x00020003, 0x00010004}}},
		{"v_pk_add_u16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", [][]uint32{{0x00100001, 0x00020003, 0x00030013}}},
		{"v_pk_lshlrev_b16 v0, v1, v2", [][]uint32{{0x00040001, 0x00010003, 0x00100006}}},
		{"v_pk_max_i16 v0, v1, v2", [][]uint32{{0xffff0001, 0x00020003, 0x00020003}}},
		{"v_mbcnt_lo_u32_b32 v0, -1, v1", [][]uint32{{10, 10}, {10, 11}, {10, 12}}},
	})
}

func TestHalf(t *testing.T) {
	check(t, []unit{
		{"v_add_f16_e32 v0, v1, v2", [][]uint32{{0x3c00, 0x4000, 0x55554200}, {0x7bff, 0x7bff, 0x55557c00}, {0x0001, 0x0001, 0x55550002}, {0x8000, 0x0000, 0x55550000}}},
		{"v_mul_f16_e32 v0, v1, v2", [][]uint32{{0x4000, 0x4200, 0x55554600}, {0x0400, 0x3800, 0x55550200}}},
		{"v_fma_f16 v0, v1, v2, v3", [][]uint32{{0x3c01, 0x3c01, 0x8001, 0x55553c02}, {0x4000, 0x4000, 0xc400, 0x55550000}}},
		{"v_max_f16_e32 v0, v1, v2", [][]uint32{{0x7e00, 0x3c00, 0x55553c00}, {0x8000, 0x0000, 0x55550000}}},
		{"v_pack_b32_f16 v0, v1, v2", [][]uint32{{0x11112222, 0x33334444, 0x44442222}}},
		{"v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]", [][]uint32{{0x11112222, 0x33334444, 0x44441111}}},
		{"v_pk_mul_f16 v0, v1, v2", [][]uint32{{0x40003c00, 0x42004200, 0x46004200}}},
		{"v_pk_add_f16 v0, v1, v2 neg_lo:[0,1] neg_hi:[1,0]", [][]uint32{{0x40003c00, 0x42004200, 0x3c00c000}}},
		{"v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[0,1,1]", [][]uint32{{0x40003c00, 0x42004000, 0x3c003c00, 0x44004200}}},
		{"v_pk_max_f16 v0, v1, v2", [][]uint32{{0x40007e00, 0x42003c00, 0x42003c00}}},
		{"v_dot2_f32_f16 v0, v1, v2, v3", [][]uint32{{0x40003c00, 0x42004400, f(5), f(15)}}},
		{"v_fma_mix_f32 v0, v1, v2, v3", [][]uint32{{f(2), f(3), f(4), f(10)}}},
		{"v_fma_mix_f32 v0, -v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]", [][]uint32{{0x00004000, 0x42000000, f(4), f(-2)}}},
		{"v_fma_mixlo_f16 v0, v1, v2, v3", [][]uint32{{f(2), f(3), f(4), 0x55554900}}},
		{"v_fma_mixhi_f16 v0, v1, v2, v3", [][]uint32{{f(2), f(3), f(4), 0x4900aaaa}}},
	})
}

// As LLVM 20 and later print 16-bit operands.
func TestTrue16(t *testing.T) {
	check(t, []unit{
		{"v_cvt_f32_f16_e32 v0, v1.h", [][]uint32{{0x40003c00, f(2)}}},
		{"v_cvt_f32_f16_e64 v0, -v1.l", [][]uint32{{0x40003c00, f(-1)}}},
		{"v_cvt_f16_f32_e32 v0.h, v1", [][]uint32{{f(2), 0x4000aaaa}}},
		{"v_mov_b16_e32 v0.l, v1.h", [][]uint32{{0x12345678, 0x55551234}}},
		{"v_mov_b16_e32 v0.h, 0", [][]uint32{{0, 0x0000aaaa}}},
		{"v_add_f16_e32 v0.h, v1.l, v2.h", [][]uint32{{0x3c00, 0x40000000, 0x4200aaaa}}},
		{"v_fma_mixlo_f16 v0, v1, v2, v3", [][]uint32{{f(2), f(3), f(4), 0x55554900}}},
		{"v_add_nc_u16 v0.l, v1.h, v2.l op_sel:[1,0,0]", [][]uint32{{0x00070000, 2, 0x55550009}}},
	})
	w := newWave()
	w.s[execLo] = 3
	w.v[1], w.v[2] = vec{0x3c000000, 0}, vec{0x3c00, 0x3c00}
	do(t, w, "v_cmp_eq_f16_e32 vcc_lo, v1.h, v2.l")
	if w.s[vccLo] != 1 {
		t.Errorf("v_cmp_eq_f16: %#x", w.s[vccLo])
	}
}

func TestDot(t *testing.T) {
	check(t, []unit{
		{"v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]", [][]uint32{{0x01020304, 0x01010101, 5, 15}, {0x80808080, 0x80808080, 0, 65536}, {0x80808080, 0x7f7f7f7f, 0, 0xffff0200}, {0x81000000, 0x02000000, 0, 0xffffff02}, {0x01000000, 0x01000000, 0x7fffffff, 0x80000000}}},
		{"v_dot4_i32_iu8 v0, v1, v2, v3", [][]uint32{{0xffffffff, 0xffffffff, 1, 260101}}},
		{"v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0]", [][]uint32{{0xffffffff, 0xffffffff, 0, 0xfffffc04}}},
		{"v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0] clamp", [][]uint32{{0x01000000, 0x01000000, 0x7fffffff, 0x7fffffff}, {0xff000000, 0x01000000, 0x80000000, 0x80000000}}},
		{"v_dot8_i32_iu4 v0, v1, v2, v3 neg_lo:[1,1,0]", [][]uint32{{0x0000000f, 0x00000002, 0, 0xfffffffe}}},
	})
}
