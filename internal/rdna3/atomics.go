package rdna3

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// atomics are read-modify-write operations: of what is there and the data.
var atomics = map[string]struct {
	n  int // data operands
	fn func(old, x, y uint32) uint32
}{
	"add_u32": {1, func(o, x, _ uint32) uint32 { return o + x }}, "sub_u32": {1, func(o, x, _ uint32) uint32 { return o - x }},
	"and_b32": {1, func(o, x, _ uint32) uint32 { return o & x }}, "or_b32": {1, func(o, x, _ uint32) uint32 { return o | x }},
	"xor_b32": {1, func(o, x, _ uint32) uint32 { return o ^ x }}, "swap_b32": {1, func(_, x, _ uint32) uint32 { return x }},
	"min_i32": {1, func(o, x, _ uint32) uint32 { return minI(o, x) }}, "max_i32": {1, func(o, x, _ uint32) uint32 { return maxI(o, x) }},
	"min_u32": {1, func(o, x, _ uint32) uint32 { return min(o, x) }}, "max_u32": {1, func(o, x, _ uint32) uint32 { return max(o, x) }},
	"inc_u32": {1, func(o, x, _ uint32) uint32 {
		if o >= x {
			return 0
		}
		return o + 1
	}},
	"dec_u32": {1, func(o, x, _ uint32) uint32 {
		if o == 0 || o > x {
			return x
		}
		return o - 1
	}},
	"add_f32": {1, func(o, x, _ uint32) uint32 { return u32(f32(o) + f32(x)) }},
	"cmpswap_b32": {2, func(o, x, y uint32) uint32 { // x: new, y: what must be there
		if o == y {
			return x
		}
		return o
	}},
}

func runAtomic(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	w.counts.store(m, bits.OnesCount32(exec))
	defer w.returned(in, m.space == flat)
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		if a := w.address(m, l); a%4 != 0 {
			w.fail("lane %d: an atomic at %#x, which is not a multiple of 4", l, a)
		}
		w.modify(in, l, w.bytes(m, l, true))
	}
}

// modify does one lane's atomic.
func (w *wave) modify(in *inst, l int, p []byte) {
	m := in.mem
	old := binary.LittleEndian.Uint32(p)
	var y uint32
	if m.operands == 2 {
		y = w.v[m.data+1][l]
	}
	binary.LittleEndian.PutUint32(p, m.atomic(old, w.v[m.data][l], y))
	w.out[l] = old
}

// returned sends the old values of an atomic on their way.
func (w *wave) returned(in *inst, flat bool) {
	if !in.mem.returns {
		return
	}
	p := w.newPending(in.dst.reg, 1)
	p.data[0], p.loose = w.out, flat
	w.issue(p, in.mem.space != shared, flat || in.mem.space == shared)
}

// scalarLoad decodes s_load_b32 … s_load_b512.
func (l *line) scalarLoad() (inst, error) {
	in := inst{class: SMem}
	n, err := strconv.Atoi(strings.TrimPrefix(l.op, "s_load_b"))
	if err != nil || n%32 != 0 || len(l.args) != 3 {
		return in, l.unknown()
	}
	if in.dst, err = parseOperand(l.args[0], b32); err != nil {
		return in, err
	}
	if in.src[0], err = parseOperand(l.args[1], b64); err != nil {
		return in, err
	}
	if in.src[1], err = parseOperand(l.args[2], b32); err != nil {
		return in, err
	}
	words := n / 32
	if in.dst.kind != sgpr || in.dst.width != words || in.src[0].kind != sgpr || in.src[0].width != 2 || in.src[1].isVector() {
		return in, fmt.Errorf("operands of a scalar load of %d words: %v", words, l.args)
	}
	offset, err := l.number("offset")
	if err != nil {
		return in, err
	}
	if in.src[1].kind == constant { // 21 bits with a sign
		in.src[1].raw = uint64(int64(in.src[1].raw<<43) >> 43)
	}
	in.run = func(w *wave, in *inst) {
		a := w.read64(&in.src[0]) + uint64(offset)
		if in.src[1].kind == constant {
			a += in.src[1].raw
		} else if in.src[1].reg != null {
			a += uint64(w.read(&in.src[1]))
		}
		if a%4 != 0 {
			w.fail("a scalar load at %#x, which is not a multiple of 4", a)
		}
		p, _ := w.group.memory.find(a, 4*words)
		if p == nil {
			w.fail("a scalar load of %d bytes at %#x, %s", 4*words, a, w.group.memory.describe(a))
		}
		w.counts.ScalarBytes += uint64(4 * words)
		wait := w.newPending(in.dst.reg, words)
		wait.scalar, wait.loose = true, true
		for i := range words {
			wait.words[i] = binary.LittleEndian.Uint32(p[4*i:])
		}
		w.issue(wait, false, true)
	}
	return in, nil
}
