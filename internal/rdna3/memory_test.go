package rdna3

import (
	"encoding/binary"
	"strings"
	"testing"
)

const base = 0x1234_0000_1000

// counting is memory whose dwords count.
func counting(n int) *Buffer {
	b := &Buffer{Name: "a buffer", Addr: base, Data: make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(b.Data[4*i:], uint32(i))
	}
	return b
}

// at points v[0:1] of every lane at its dwords.
func at(w *wave, step int) {
	for l := range lanes {
		a := uint64(base) + uint64(step*l)
		w.v[0][l], w.v[1][l] = uint32(a), uint32(a>>32)
	}
}

const (
	waitAll  = 0x0007        // vmcnt(0) lgkmcnt(0)
	waitVM   = 0x03f7        // vmcnt(0)
	waitVM1  = 0x07f7        // vmcnt(1)
	waitLDS  = 0xfc07        // lgkmcnt(0)
	waitLDS1 = 0xfc07 | 1<<4 // lgkmcnt(1)
)

func TestLoadsArriveWhenWaitedFor(t *testing.T) {
	b := counting(64)
	w := newWave(b)
	at(w, 4)
	do(t, w, "global_load_b32 v2, v[0:1], off offset:4")
	do(t, w, "global_load_b32 v3, v[0:1], off offset:8")
	do(t, w, "v_mov_b32_e32 v4, v2")
	if w.v[4][5] != poison {
		t.Errorf("read before the wait: %d", w.v[4][5])
	}
	do(t, w, "s_waitcnt vmcnt(1)", waitVM1)
	if w.v[2][5] != 6 || w.v[3][5] != poison {
		t.Errorf("after vmcnt(1): %d and %#x", w.v[2][5], w.v[3][5])
	}
	do(t, w, "v_mov_b32_e32 v3, 0") // overwritten by the load that is still under way
	do(t, w, "s_waitcnt vmcnt(0)", waitVM)
	if w.v[3][5] != 7 {
		t.Errorf("after vmcnt(0): %d", w.v[3][5])
	}
	w.s[2], w.s[3] = uint32(base&all), base>>32
	do(t, w, "s_load_b64 s[4:5], s[2:3], 0x8")
	do(t, w, "ds_load_b32 v5, v6")
	do(t, w, "s_waitcnt lgkmcnt(1)", waitLDS1) // the scalar load may still be the one that is left
	if w.s[4] != poison || w.v[5][0] != poison {
		t.Errorf("after lgkmcnt(1): %#x, %#x", w.s[4], w.v[5][0])
	}
	do(t, w, "s_waitcnt lgkmcnt(0)", waitLDS)
	if w.s[4] != 2 || w.s[5] != 3 || w.v[5][0] == poison {
		t.Errorf("after lgkmcnt(0): %d, %d, %#x", w.s[4], w.s[5], w.v[5][0])
	}
}

func TestGlobalMemory(t *testing.T) {
	b := counting(256)
	w := newWave(b)
	at(w, 16)
	all := func() { t.Helper(); do(t, w, "s_waitcnt vmcnt(0) lgkmcnt(0)", waitAll) }
	do(t, w, "global_load_b128 v[4:7], v[0:1], off")
	do(t, w, "global_load_b96 v[8:10], v[0:1], off offset:4")
	do(t, w, "global_load_b64 v[11:12], v[0:1], off offset:2")
	all()
	if w.v[4][3] != 12 || w.v[7][3] != 15 || w.v[10][3] != 15 || w.v[11][3] != 13<<16 || w.v[12][3] != 14<<16 {
		t.Errorf("%v", []uint32{w.v[4][3], w.v[7][3], w.v[10][3], w.v[11][3], w.v[12][3]})
	}
	w.s[2], w.s[3] = uint32(base&0xffffffff), base>>32
	for l := range lanes {
		w.v[2][l], w.v[3][l], w.v[13][l], w.v[14][l] = uint32(4*l), 0x8081fffe, old, old
	}
	do(t, w, "global_store_b16 v2, v3, s[2:3]")
	do(t, w, "global_store_d16_hi_b16 v2, v3, s[2:3] offset:2")
	do(t, w, "global_load_u16 v4, v2, s[2:3]")
	do(t, w, "global_load_i16 v5, v2, s[2:3]")
	do(t, w, "global_load_u8 v6, v2, s[2:3] offset:3")
	do(t, w, "global_load_i8 v7, v2, s[2:3] offset:3")
	do(t, w, "global_load_d16_b16 v13, v2, s[2:3]")
	do(t, w, "global_load_d16_hi_b16 v14, v2, s[2:3]")
	all()
	for _, c := range []struct{ got, want uint32 }{{w.v[4][9], 0xfffe}, {w.v[5][9], 0xfffffffe}, {w.v[6][9], 0x80}, {w.v[7][9], 0xffffff80}, {w.v[13][9], 0x5555fffe}, {w.v[14][9], 0xfffeaaaa}} {
		if c.got != c.want {
			t.Errorf("%#x, want %#x", c.got, c.want)
		}
	}
	if !b.Written {
		t.Error("a store does not mark its buffer")
	}
	do(t, w, "flat_load_b32 v4, v[0:1]")
	all()
	if w.v[4][0] != 0x8081fffe {
		t.Errorf("flat: %#x", w.v[4][0])
	}
	w.s[execLo] = 0xf
	for l := range lanes {
		w.v[2][l], w.v[3][l] = 40, 1
	}
	do(t, w, "global_atomic_add_u32 v5, v2, v3, s[2:3] glc")
	all()
	if got := binary.LittleEndian.Uint32(b.Data[40:]); got != 0x8081fffe+4 || w.v[5][2] != 0x8081fffe+2 {
		t.Errorf("an atomic: %#x, old %#x", got, w.v[5][2])
	}
}

func TestSharedMemory(t *testing.T) {
	w := newWave()
	for l := range lanes {
		w.v[0][l], w.v[1][l], w.v[2][l] = uint32(4*l), uint32(l), uint32(100+l)
	}
	all := func() { t.Helper(); do(t, w, "s_waitcnt lgkmcnt(0)", waitLDS) }
	do(t, w, "ds_store_2addr_b32 v0, v1, v2 offset1:32")
	do(t, w, "ds_load_2addr_b32 v[4:5], v0 offset0:32")
	all()
	if w.v[4][7] != 107 || w.v[5][7] != 7 {
		t.Errorf("%d %d", w.v[4][7], w.v[5][7])
	}
	w.s[execLo] = 0xff
	do(t, w, "ds_load_b128 v[8:11], v0 offset:16")
	do(t, w, "ds_or_b32 v0, v2")
	do(t, w, "ds_add_rtn_u32 v12, v0, v2 offset:4")
	do(t, w, "ds_load_u16_d16_hi v2, v0")
	all()
	if w.v[8][2] != 6 || w.v[11][2] != 9 || w.v[12][2] != 3|103 || w.v[2][1]&0xffff != 101 {
		t.Errorf("%d %d %d %#x", w.v[8][2], w.v[11][2], w.v[12][2], w.v[2][1])
	}
	w.v[3] = vec{0xff, 1, 2, 3}
	do(t, w, "ds_store_b8 v3, v1")
	if w.group.lds[3] != 3 {
		t.Error("a byte store")
	}
}

func TestAccessesThatMustFail(t *testing.T) {
	for _, c := range []struct {
		text, says string
		set        func(w *wave)
	}{
		{"global_load_b32 v2, v[0:1], off", "lane 31 loads 4 bytes at 0x12340000107c, 124 bytes past the end of a buffer", func(w *wave) { w.group.memory.buffers[0].Data = w.group.memory.buffers[0].Data[:0] }},
		{"global_load_b128 v[4:7], v[0:1], off", "lane 29 loads 16 bytes at 0x123400001074, 12 bytes before the end of a buffer", nil},
		{"global_store_b32 v[0:1], v2, off offset:-4", "lane 0 stores 4 bytes at 0x123400000ffc, 4 bytes before a buffer", nil},
		{"global_load_b32 v2, v3, s[2:3]", "near no buffer", nil},
		{"s_load_b32 s4, s[2:3], null", "a scalar load of 4 bytes", func(w *wave) { w.s[2] = 4 }},
		{"s_load_b32 s4, s[6:7], 0x2", "which is not a multiple of 4", func(w *wave) { w.s[6], w.s[7] = uint32(base&all), base>>32 }},
		{"ds_load_b32 v2, v3", "lane 0 loads 4 bytes at 253 of the 256 bytes of shared memory", func(w *wave) { w.v[3][0] = 253 }},
		{"ds_store_b64 v3, v[4:5]", "which is not aligned", func(w *wave) { w.v[3][0] = 2 }},
		{"ds_load_b32 v2, v3", "of the 256 bytes of shared memory", func(w *wave) { w.v[3][0] = poison }},
		{"global_atomic_add_u32 v[0:1], v2, off", "which is not a multiple of 4", func(w *wave) { w.v[0][0]++ }},
		{"scratch_store_b32 off, v2, off offset:16", "of its 16 bytes of scratch", nil},
		{"s_trap 2", "no code for this instance", nil},
	} {
		w := newWave(counting(32))
		at(w, 4)
		for r := range 8 {
			w.s[r] = poison
		}
		if c.set != nil {
			c.set(w)
		}
		if strings.HasPrefix(c.says, "lane 31") {
			w.s[execLo] = 1 << 31
		}
		if said := fails(t, w, c.text); !strings.Contains(said, c.says) || !strings.Contains(said, "test+") {
			t.Errorf("%s: said %q, not %q", c.text, said, c.says)
		}
	}
}

func TestScratch(t *testing.T) {
	w := newWave()
	for l := range lanes {
		w.v[1][l], w.v[2][l] = uint32(l), 4
	}
	w.s[32] = 8
	do(t, w, "scratch_store_b32 off, v1, s32 offset:4")
	do(t, w, "scratch_load_b32 v0, v2, off offset:8")
	do(t, w, "s_waitcnt vmcnt(0)", waitVM)
	if w.v[0] != w.v[1] {
		t.Errorf("%v", w.v[0])
	}
}
