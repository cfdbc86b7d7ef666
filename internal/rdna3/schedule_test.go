package rdna3

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"dot4fa/internal/rdna3/code"
)

// program is a kernel of the given instructions, one word each, with a buffer as its only argument.
func program(t *testing.T, lines ...string) (*Kernel, error) {
	t.Helper()
	k := &code.Kernel{Symbol: "test", VGPR: 16, LDS: 64, Kernarg: 8, MaxWorkgroup: 1024, Args: []code.Arg{{Offset: 0, Size: 8, Kind: "global_buffer"}}}
	k.Descriptor = code.Descriptor{DenormMode32: 3, DenormMode64: 3, DX10Clamp: true, IEEE: true, UserSGPRs: 2, WorkgroupID: [3]bool{true, true, false}, Wave32: true, WorkitemIDs: 1}
	for i, text := range lines {
		op, args, _ := strings.Cut(text, " ")
		word := uint32(waitAll)
		if before, offset, ok := strings.Cut(args, " @"); ok { // a branch, in words from the next instruction
			args = before
			for _, c := range offset[1:] {
				word = word&0xffff0000 | uint32(c-'0')
			}
			if offset[0] == '-' {
				word = -word & 0xffff
			}
		}
		k.Code = append(k.Code, code.Line{Op: op, Args: args, Addr: 4 * i, Words: []uint32{word}})
	}
	return Load(k, "test", Options{})
}

func launch(t *testing.T, k *Kernel, threads int, b *Buffer, seed uint64) (*Counts, error) {
	t.Helper()
	m := &Memory{}
	if err := m.Add(b); err != nil {
		t.Fatal(err)
	}
	arg := binary.LittleEndian.AppendUint64(nil, b.Addr)
	return k.Run(Launch{Grid: [3]int{2, 3, 1}, Block: [3]int{threads / 2, 2, 1}, Args: [][]byte{arg}, Memory: m}, Options{Seed: seed})
}

// Each wave writes to shared memory, and after the barrier reads what the next wave wrote.
var handOver = []string{
	"s_load_b64 s[4:5], s[0:1], null",
	"v_bfe_u32 v1, v0, 10, 10",    // y
	"v_and_b32_e32 v0, 0x3ff, v0", // x, of 32: a wave is a y
	"v_lshlrev_b32_e32 v2, 2, v1",
	"v_add_nc_u32_e32 v3, 10, v1",
	"ds_store_b32 v2, v3",
	"s_waitcnt vmcnt(0) lgkmcnt(0)",
	"s_barrier",
	"v_xor_b32_e32 v2, 4, v2",
	"ds_load_b32 v4, v2",
	"s_waitcnt vmcnt(0) lgkmcnt(0)",
	"s_mul_i32 s6, s3, 2", // workgroup (s2, s3) of 2 x 3
	"s_add_u32 s6, s6, s2",
	"v_lshl_add_u32 v5, s6, 1, v1",
	"v_lshlrev_b32_e32 v5, 2, v5",
	"global_store_b32 v5, v4, s[4:5]",
	"s_endpgm",
}

func TestWavesAndBarriers(t *testing.T) {
	k, err := program(t, handOver...)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		b := &Buffer{Name: "out", Addr: base, Data: make([]byte, 4*12)}
		counts, err := launch(t, k, 64, b, seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if got, want := binary.LittleEndian.Uint32(b.Data[4*i:]), uint32(11-i%2); got != want {
				t.Errorf("seed %d: %d at %d, want %d", seed, got, i, want)
			}
		}
		if n := uint64(len(handOver)) * 12; counts.Total() != n || counts.StoreBytes != 4*32*12 {
			t.Errorf("%d instructions, %d bytes stored, want %d and %d", counts.Total(), counts.StoreBytes, n, 4*32*12)
		}
	}
}

func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name, says string
		lines      []string
	}{
		{"ends", "", []string{"s_endpgm"}},
		{"a loop", "", []string{"s_mov_b32 s8, 5", "s_sub_i32 s8, s8, 1", "s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 65533 @-3", "s_endpgm"}},
		{"runs past the end", "ran past its last instruction", []string{"s_nop 0"}},
		{"poisoned scalar", "a scalar load at 0xffedffedffedffed", []string{"s_load_b32 s4, s[8:9], null", "s_endpgm"}},
		{"poisoned vector", "shared memory", []string{"ds_load_b32 v1, v7", "s_endpgm"}},
		{"unknown instruction", "test+0x4: v_frobnicate_b32 v0, v1: an instruction this does not know", []string{"s_nop 0", "v_frobnicate_b32 v0, v1"}},
		{"unknown modifier", "a modifier this does not know: frob", []string{"v_add_f32_e64 v0, v1, v2 frob:1"}},
		{"too many registers", "v16 is past the 16 vector registers of the kernel", []string{"v_mov_b32_e32 v16, v1"}},
		{"wrong operands", "2 operands, not 3", []string{"v_add_f32_e32 v0, v1"}},
		{"branch into nowhere", "where no instruction begins", []string{"s_branch 7 @+7"}},
		{"another rounding mode", "a change of the float mode", []string{"s_round_mode 0x3"}},
	} {
		k, err := program(t, c.lines...)
		if err == nil {
			_, err = launch(t, k, 64, &Buffer{Name: "out", Addr: base, Data: make([]byte, 48)}, 0)
		}
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, not %q", c.name, err, c.says)
		}
	}
}

func TestLaunchesThatDoNotFit(t *testing.T) {
	k, err := program(t, "s_endpgm")
	if err != nil {
		t.Fatal(err)
	}
	m := &Memory{}
	arg := make([]byte, 8)
	for _, c := range []struct {
		says string
		l    Launch
	}{
		{"at most 1024 threads", Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1024, 2, 1}, Args: [][]byte{arg}, Memory: m}},
		{"argument 0 has 8 bytes", Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Args: [][]byte{arg[:4]}, Memory: m}},
		{"takes 1 arguments; the launch gives 2", Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Args: [][]byte{arg, arg}, Memory: m}},
	} {
		if _, err := k.Run(c.l, Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, not %q", err, c.says)
		}
	}
	if err := m.Add(&Buffer{Addr: 16, Data: make([]byte, 16)}); err != nil {
		t.Fatal(err)
	}
	if m.Add(&Buffer{Addr: 24, Data: make([]byte, 4)}) == nil || m.Add(&Buffer{Addr: 8, Data: make([]byte, 9)}) == nil {
		t.Error("buffers may overlap")
	}
}

// Two waves that touch the same bytes of shared memory without a barrier between them are named.
func TestRaces(t *testing.T) {
	lines := slices.Clone(handOver)
	lines[7] = "s_nop 0" // the barrier
	k, err := program(t, lines...)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		_, err = launch(t, k, 64, &Buffer{Name: "out", Addr: base, Data: make([]byte, 48)}, seed)
		if err == nil || !strings.Contains(err.Error(), "a race: lane 0") || !strings.Contains(err.Error(), "since the last barrier") {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	w := newWave()
	w.index = 1
	w.v[1] = vec{8, 12, 13}
	w.s[execLo] = 7
	do(t, w, "ds_store_b8 v1, v2")
	w.index = 2
	w.v[1] = vec{9, 14, 15} // other bytes of the same words
	do(t, w, "ds_store_b8 v1, v2")
	w.v[1] = vec{13}
	w.s[execLo] = 1
	w.group.cells[3].writer = 2
	if said := fails(t, w, "ds_load_u8 v3, v1"); !strings.Contains(said, "wave 1 has written") {
		t.Error(said)
	}
	w.v[1] = vec{32}
	do(t, w, "ds_or_b32 v1, v2")
	do(t, w, "ds_load_b32 v3, v1") // its own
	w.v[1] = vec{36}
	do(t, w, "ds_or_b32 v1, v2")
	w.index = 3
	do(t, w, "ds_or_b32 v1, v2") // atomics may follow each other
	if said := fails(t, w, "ds_load_b32 v3, v1"); !strings.Contains(said, "an atomic has changed") {
		t.Error(said)
	}
	w.group.epoch++ // a barrier
	do(t, w, "ds_load_b32 v3, v1")
	w.index = 4
	if said := fails(t, w, "ds_store_b32 v1, v2"); !strings.Contains(said, "another wave has read") {
		t.Error(said)
	}
}
