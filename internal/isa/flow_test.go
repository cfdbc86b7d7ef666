package isa

import "testing"

// A register that held a logit and got a new value since is no part of it, also where the block that reads it stands in
// the file before the one that wrote it.
func TestSumsFollowTheFlow(t *testing.T) {
	const text = `
kernel:
	s_mov_b32 s0, 0
.LBB0_1:
	global_load_b128 v[0:3], v[8:9], off
	v_dot4_i32_iu8 v4, v0, s4, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v0, s5, 0 neg_lo:[1,1,0]
	v_cvt_f32_i32_e32 v6, v4
	v_cvt_f32_i32_e32 v7, v5
	ds_store_b64 v10, v[6:7]
	s_branch .LBB0_3
.LBB0_2:
	v_fma_f32 v11, v6, v7, v11
	s_cbranch_scc1 .LBB0_4
.LBB0_3:
	ds_load_b64 v[6:7], v12
	s_branch .LBB0_2
.LBB0_4:
	s_cbranch_scc0 .LBB0_1
	s_endpgm
.Lfunc_end0:
; Occupancy: 16
`
	functions, err := parseAsm([]byte(text), func(s string) bool { return s == "kernel" })
	if err != nil {
		t.Fatal(err)
	}
	if len(functions) != 1 {
		t.Fatalf("%d functions", len(functions))
	}
	f := functions[0]
	if use := f.dot4s(f.hotLoop()); use.count != 2 || use.pairs != 2 {
		t.Errorf("%d dot4 add up to %d logits, want 2 to 2", use.count, use.pairs)
	}
}
