package rdna3

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dot4fa/internal/rdna3/code"
)

const (
	qnan  = 0x7fc00000
	snan  = 0x7f800001
	ninf  = 0xff800000
	pinf  = 0x7f800000
	nzero = 0x80000000
	tiny  = 0x00000001 // the smallest subnormal
	old   = 0x5555aaaa // what a destination holds before
)

func f(x float64) uint32 { return math.Float32bits(float32(x)) }

// texts are the instructions that tests execute, for TestTextsAreWhatTheDisassemblerPrints.
var texts = map[string]bool{}

// newWave is a wave with every lane on, 32 bytes of shared memory and the given memory.
func newWave(buffers ...*Buffer) *wave {
	m := &Memory{}
	for _, b := range buffers {
		if err := m.Add(b); err != nil {
			panic(err)
		}
	}
	k := &Kernel{Name: "test", Code: &code.Kernel{VGPR: 256}}
	w := &wave{group: &group{lds: make([]byte, 256), cells: make([]cell, 64), epoch: 1, memory: m}, kernel: k, counts: &Counts{}, scratch: make([]byte, 32*16)}
	w.s[execLo] = all
	return w
}

// do executes one instruction; words matter to branches, waits and swizzles.
func do(t *testing.T, w *wave, text string, words ...uint32) {
	t.Helper()
	doIn(t, w, &decoder{}, text, words...)
}

func doIn(t *testing.T, w *wave, d *decoder, text string, words ...uint32) {
	t.Helper()
	texts[text] = true
	op, args, _ := strings.Cut(text, " ")
	if d.kernel == nil {
		d.kernel, d.limit = w.kernel.Code, 256
		d.kernel.Descriptor.DenormMode32, d.kernel.Descriptor.DenormMode64 = 3, 3
	}
	l := code.Line{Op: op, Args: args, Words: words}
	in, err := d.decode(l)
	if op == "ds_swizzle_b32" {
		in, err = d.split(op, args).swizzle(words[0] & 0xffff)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	w.kernel.Code.Code, w.kernel.code, w.pc = []code.Line{l}, []inst{in}, 1
	in.run(w, &in)
}

// fails executes an instruction that must fail, and returns what was said.
func fails(t *testing.T, w *wave, text string, words ...uint32) (said string) {
	t.Helper()
	defer func() {
		p := recover()
		s, ok := p.(stopped)
		if !ok {
			t.Fatalf("%s: did not fail: %v", text, p)
		}
		said = s.err.Error()
	}()
	do(t, w, text, words...)
	return ""
}

// unit is an instruction with v0 as its result and v1, v2, … as sources. A row is the sources of one lane, then its result.
type unit struct {
	text string
	rows [][]uint32
}

func check(t *testing.T, units []unit) {
	t.Helper()
	for _, u := range units {
		for start := 0; start < len(u.rows); start += lanes {
			w := newWave()
			rows := u.rows[start:min(len(u.rows), start+lanes)]
			for l, row := range rows {
				w.v[0][l] = old
				for i, x := range row[:len(row)-1] {
					w.v[1+i][l] = x
				}
			}
			do(t, w, u.text)
			for l, row := range rows {
				got, want := w.v[0][l], row[len(row)-1]
				if got != want && !(want == qnan && isNaN32(got)) {
					t.Errorf("%s of %#x: %#x, want %#x", u.text, row[:len(row)-1], got, want)
				}
			}
		}
	}
}

func TestFloat(t *testing.T) {
	big := f(math.MaxFloat32)
	check(t, []unit{
		{"v_add_f32_e32 v0, v1, v2", [][]uint32{
			{f(1), f(2), f(3)}, {pinf, ninf, qnan}, {qnan, f(1), qnan}, {nzero, nzero, nzero}, {nzero, 0, 0}, {tiny, tiny, 2},
			{f(0x1p24), f(1), f(0x1p24)}, {f(0x1p24 + 2), f(1), f(0x1p24 + 4)}, {big, big, pinf}}},
		{"v_sub_f32_e32 v0, v1, v2", [][]uint32{{f(1), f(3), f(-2)}, {pinf, pinf, qnan}, {0, 0, 0}}},
		{"v_subrev_f32_e32 v0, v1, v2", [][]uint32{{f(1), f(3), f(2)}}},
		{"v_mul_f32_e32 v0, v1, v2", [][]uint32{{f(3), f(-2), f(-6)}, {0, pinf, qnan}, {nzero, f(3), nzero}, {f(0x1p-126), f(0.5), 0x00400000}, {big, f(2), pinf}}},
		{"v_mul_dx9_zero_f32_e32 v0, v1, v2", [][]uint32{{0, pinf, 0}, {f(2), f(3), f(6)}, {qnan, 0, 0}}},
		{"v_fma_f32 v0, v1, v2, v3", [][]uint32{
			{f(2), f(3), f(4), f(10)}, {pinf, 0, f(1), qnan}, {f(1), pinf, ninf, qnan},
			{f(1 + 0x1p-23), f(1 - 0x1p-23), f(-1), f(-0x1p-46)},             // one rounding
			{f(1 + 0x1p-12), f(1 + 0x1p-12), tiny, f(1 + 0x1p-11 + 0x1p-23)}, // half way and a hair: up
			{f(1 + 0x1p-12), f(1 + 0x1p-12), nzero | tiny, f(1 + 0x1p-11)},   // half way less a hair: down
			{f(1 + 0x1p-12), f(1 + 0x1p-12), 0, f(1 + 0x1p-11)},              // half way: to even
			{f(0x1p-100), f(0x1p-49), 0, tiny}, {f(0x1p-100), f(0x1p-50), 0, 0}, {f(0x1p-100), f(0x1.8p-50), 0, tiny}}},
		{"v_fma_f32 v0, -v1, |v2|, v3", [][]uint32{{f(2), f(-3), f(4), f(-2)}}},
		{"v_fmac_f32_e32 v0, v1, v2", [][]uint32{{f(2), f(0), uint32(old)}}},
		{"v_fmaak_f32 v0, v1, v2, 0x40000000", [][]uint32{{f(2), f(3), f(8)}}},
		{"v_fmamk_f32 v0, v1, 0x40000000, v2", [][]uint32{{f(2), f(3), f(7)}}},
		{"v_add_f32_e64 v0, v1, v2 clamp", [][]uint32{{f(1), f(2), f(1)}, {f(-1), f(-2), 0}, {qnan, f(1), 0}, {f(0.25), f(0.5), f(0.75)}}},
		{"v_mul_f32_e64 v0, v1, v2 mul:4", [][]uint32{{f(2), f(3), f(24)}}},
		{"v_mul_f32_e64 v0, v1, v2 div:2", [][]uint32{{f(2), f(3), f(3)}}},
		{"v_max_f32_e32 v0, v1, v2", [][]uint32{
			{f(1), f(2), f(2)}, {qnan, f(2), f(2)}, {f(2), qnan, f(2)}, {nzero, 0, 0}, {0, nzero, 0}, {snan, f(1), snan | quiet32}, {f(1), snan, snan | quiet32}, {ninf, f(-5), f(-5)}}},
		{"v_min_f32_e32 v0, v1, v2", [][]uint32{{f(1), f(2), f(1)}, {qnan, f(2), f(2)}, {nzero, 0, nzero}, {0, nzero, nzero}, {snan, f(1), snan | quiet32}}},
		{"v_max3_f32 v0, v1, v2, v3", [][]uint32{{f(1), f(3), f(2), f(3)}, {qnan, qnan, f(2), f(2)}}},
		{"v_min3_f32 v0, v1, v2, v3", [][]uint32{{f(1), f(3), f(2), f(1)}}},
		{"v_med3_f32 v0, v1, v2, v3", [][]uint32{{f(1), f(3), f(2), f(2)}, {f(5), f(3), f(4), f(4)}, {qnan, f(3), f(2), f(2)}}},
		{"v_maxmin_f32 v0, v1, v2, v3", [][]uint32{{f(1), f(3), f(2), f(2)}, {f(-500), f(-127), f(127), f(-127)}, {qnan, f(-127), f(127), f(-127)}}},
		{"v_minmax_f32 v0, v1, v2, v3", [][]uint32{{f(1), f(3), f(2), f(2)}}},
		{"v_exp_f32_e32 v0, v1", [][]uint32{{0, f(1)}, {nzero, f(1)}, {f(3), f(8)}, {f(-126), f(0x1p-126)}, {f(-127), 0}, {ninf, 0}, {f(-2e30), 0}, {pinf, pinf}, {f(128), pinf}, {qnan, qnan}, {f(0.5), 0x3fb504f3}}},
		{"v_log_f32_e32 v0, v1", [][]uint32{{f(8), f(3)}, {f(1), 0}, {0, ninf}, {tiny, ninf}, {f(-1), qnan}, {pinf, pinf}}},
		{"v_rcp_f32_e32 v0, v1", [][]uint32{{f(4), f(0.25)}, {0, pinf}, {nzero, ninf}, {pinf, 0}, {ninf, nzero}, {f(3), 0x3eaaaaab}, {tiny, pinf}, {f(0x1p127), 0}}},
		{"v_rsq_f32_e32 v0, v1", [][]uint32{{f(4), f(0.5)}, {0, pinf}, {f(-1), qnan}}},
		{"v_sqrt_f32_e32 v0, v1", [][]uint32{{f(4), f(2)}, {f(-1), qnan}, {nzero, nzero}}},
		{"v_trunc_f32_e32 v0, v1", [][]uint32{{f(-1.5), f(-1)}, {f(1.5), f(1)}}},
		{"v_floor_f32_e32 v0, v1", [][]uint32{{f(-1.5), f(-2)}}},
		{"v_ceil_f32_e32 v0, v1", [][]uint32{{f(1.5), f(2)}, {f(-0.5), nzero}}},
		{"v_rndne_f32_e32 v0, v1", [][]uint32{{f(2.5), f(2)}, {f(3.5), f(4)}, {f(-0.5), nzero}}},
		{"v_fract_f32_e32 v0, v1", [][]uint32{{f(1.25), f(0.25)}, {f(-0.25), f(0.75)}, {f(-1e-20), 0x3f7fffff}}},
		{"v_ldexp_f32 v0, v1, v2", [][]uint32{{f(3), 2, f(12)}, {f(1), uint32(0xffffff6b), tiny}, {f(1), 200, pinf}}},
		{"v_frexp_mant_f32_e32 v0, v1", [][]uint32{{f(12), f(0.75)}, {pinf, pinf}}},
		{"v_frexp_exp_i32_f32_e32 v0, v1", [][]uint32{{f(12), 4}, {pinf, 0}, {tiny, 0xffffff6c}}},
		{"v_div_fixup_f32 v0, v1, v2, v3", [][]uint32{
			{f(2), f(3), f(6), f(2)}, {f(2), 0, f(6), pinf}, {f(2), nzero, f(6), ninf}, {f(2), 0, 0, qnan}, {f(2), pinf, pinf, qnan},
			{f(2), f(3), 0, 0}, {f(2), pinf, f(6), 0}, {f(2), f(-3), f(6), f(-2)}, {f(2), qnan, f(6), qnan}}},
		{"v_mov_b32_e32 v0, v1", [][]uint32{{snan, snan}}},
		{"v_mov_b32_e32 v0, 0.5", [][]uint32{{f(0.5)}}},
		{"v_mov_b32_e32 v0, -16", [][]uint32{{0xfffffff0}}},
	})
}

// Both halves read before either writes.
func TestDual(t *testing.T) {
	w := newWave()
	w.v[0][0], w.v[1][0] = 7, 9
	do(t, w, "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0")
	if w.v[0][0] != 9 || w.v[1][0] != 7 {
		t.Errorf("a swap gives %d, %d", w.v[0][0], w.v[1][0])
	}
	w.v[0][0], w.v[1][0], w.v[2][0], w.v[3][0] = f(1), f(2), f(3), f(4)
	do(t, w, "v_dual_fmac_f32 v0, v1, v2 :: v_dual_add_f32 v3, v0, v1")
	if w.v[0][0] != f(7) || w.v[3][0] != f(3) {
		t.Errorf("%v, %v", f32(w.v[0][0]), f32(w.v[3][0]))
	}
	w.s[vccLo], w.s[execLo] = 1, 3
	w.v[1][0], w.v[2][0], w.v[1][1], w.v[2][1] = 10, 20, 11, 21
	do(t, w, "v_dual_cndmask_b32 v0, v1, v2 :: v_dual_lshlrev_b32 v3, 1, v1")
	if w.v[0][0] != 20 || w.v[0][1] != 11 || w.v[3][0] != 20 || w.v[3][1] != 22 || w.v[3][2] != 0 {
		t.Errorf("%v %v", w.v[0][:3], w.v[3][:3])
	}
}

// A lane that does not run keeps its registers.
func TestExec(t *testing.T) {
	for _, text := range []string{"v_mov_b32_e32 v0, v1", "v_add_f16_e32 v0, v1, v2", "v_fma_f32 v0, v1, v2, v3", "v_lshlrev_b64 v[0:1], v2, v[3:4]",
		"v_cndmask_b32_e32 v0, v1, v2, vcc_lo", "v_add_co_u32 v0, vcc_lo, v1, v2", "v_mov_b32_dpp v0, v1 row_ror:1 row_mask:0xf bank_mask:0xf"} {
		w := newWave()
		w.s[execLo] = 0x0000fffe
		for l := range lanes {
			w.v[0][l], w.v[1][l] = old, f(float64(l))
		}
		do(t, w, text)
		for l := range lanes {
			if off := w.s[execLo]>>l&1 == 0; off && w.v[0][l] != old {
				t.Errorf("%s changed lane %d, which is off", text, l)
			}
		}
		if w.v[0][3] == old {
			t.Errorf("%s left lane 3", text)
		}
	}
}

func TestFlushedSubnormals(t *testing.T) {
	w := newWave()
	w.v[1][0], w.v[2][0] = 0x00400000, f(1)
	k := w.kernel.Code
	doIn(t, w, &decoder{kernel: k, flush: true, limit: 256}, "v_mul_f32_e32 v0, v1, v2")
	if w.v[0][0] != 0 {
		t.Errorf("a subnormal operand gives %#x", w.v[0][0])
	}
	w.v[1][0], w.v[2][0] = f(-0x1p-126), f(0.5)
	doIn(t, w, &decoder{kernel: k, flush: true, limit: 256}, "v_mul_f32_e32 v0, v1, v2")
	if w.v[0][0] != nzero {
		t.Errorf("a subnormal result gives %#x", w.v[0][0])
	}
	w.v[1][0] = 0x00400000
	doIn(t, w, &decoder{kernel: k, flush: true, limit: 256}, "v_mov_b32_e32 v0, v1")
	if w.v[0][0] != 0x00400000 {
		t.Errorf("a move flushes")
	}
}

// What is promised to 1 ulp is off by up to that on request, exact results never.
func TestApproximate(t *testing.T) {
	w := newWave()
	for l := range lanes {
		w.v[1][l] = f(float64(l) + 3)
	}
	other := 0
	for seed := range uint32(4) {
		doIn(t, w, &decoder{kernel: w.kernel.Code, limit: 256, approx: seed + 1}, "v_rcp_f32_e32 v0, v1")
		for l := range lanes {
			x := float64(l) + 3
			got, ulp := float64(f32(w.v[0][l])), float64(f32(w.v[0][l]+1)-f32(w.v[0][l]))
			if math.Abs(got-1/x) >= ulp {
				t.Errorf("1/%g = %g is off by more than 1 ulp", x, got)
			}
			if f(1/x) != w.v[0][l] {
				other++
				if math.Log2(x) == math.Trunc(math.Log2(x)) {
					t.Errorf("1/%g = %g, which has an exact answer", x, got)
				}
			}
		}
	}
	if other == 0 || other == 4*lanes {
		t.Errorf("%d results are not the nearest", other)
	}
}

func ExampleCounts() {
	fmt.Println(Dot4, WMMA, VMem)
	// Output: dot4 wmma vmem
}
