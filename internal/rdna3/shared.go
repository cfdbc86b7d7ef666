package rdna3

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

// shared decodes the LDS instructions.
func (l *line) shared() (inst, error) {
	in := inst{class: LDS}
	m := access{space: shared, addr: -1, data: -1}
	name := strings.TrimPrefix(l.op, "ds_")
	switch name {
	case "bpermute_b32", "permute_b32":
		return l.lanePermute(name == "permute_b32")
	case "nop":
		in.run = runNothing
		return in, nil
	}
	var err error
	if m.offset, err = l.number("offset"); err != nil {
		return in, err
	}
	verb, suffix, _ := strings.Cut(name, "_")
	two := 0
	if rest, ok := strings.CutPrefix(suffix, "2addr_"); ok {
		suffix, two = rest, 1
		if rest, ok := strings.CutPrefix(suffix, "stride64_"); ok {
			suffix, two = rest, 64
		}
	}
	width, known := widths[suffix]
	if known {
		m.size, m.signed, m.d16, m.high = width.size, width.signed, width.d16, width.high
	}
	if two > 0 {
		if m.offset, err = l.number("offset0"); err != nil {
			return in, err
		}
		if m.offset2, err = l.number("offset1"); err != nil {
			return in, err
		}
		m.offset *= int64(m.size * two)
		m.offset2 *= int64(m.size * two)
	}
	addr, data := 0, 1
	switch {
	case verb == "load" && known && len(l.args) == 2:
		addr, data = 1, 0
		in.run = runSharedLoad
	case verb == "store" && known && (len(l.args) == 2 || two > 0 && len(l.args) == 3):
		in.run = runSharedStore
	default:
		return l.sharedAtomic(in, m, name)
	}
	o, err := parseOperand(l.args[addr], b32)
	if err != nil || o.kind != vgpr || o.width != 1 {
		return in, fmt.Errorf("%s is not an LDS address", l.args[addr])
	}
	m.addr = o.reg
	if m.data, err = l.dataRegisters(l.args[data], m.size); err != nil {
		return in, err
	}
	if two > 0 {
		m.data2 = m.data + m.size/4
		if verb == "store" {
			if m.data2, err = l.dataRegisters(l.args[2], m.size); err != nil {
				return in, err
			}
			in.run = runSharedStore2
		} else {
			in.run = runSharedLoad2
		}
	}
	in.mem = &m
	return in, nil
}

func (l *line) sharedAtomic(in inst, m access, name string) (inst, error) {
	first := 0
	if rest, ok := strings.CutPrefix(name, "storexchg_rtn_b32"); ok {
		name = "swap_rtn_b32" + rest
	}
	if before, after, ok := strings.Cut(name, "_rtn"); ok {
		m.returns, name, first = true, before+after, 1
	}
	a, ok := atomics[name]
	if !ok || a.n != 1 || len(l.args) != first+2 {
		return in, l.unknown()
	}
	m.atomic, m.operands, m.size = a.fn, a.n, 4
	var err error
	if m.returns {
		if in.dst, err = l.dest(b32); err != nil {
			return in, err
		}
	}
	o, err := parseOperand(l.args[first], b32)
	if err != nil || o.kind != vgpr {
		return in, fmt.Errorf("%s is not an LDS address", l.args[first])
	}
	m.addr = o.reg
	if m.data, err = l.dataRegisters(l.args[first+1], 4); err != nil {
		return in, err
	}
	in.mem = &m
	in.run = func(w *wave, in *inst) {
		m := in.mem
		for e := w.exec(); e != 0; e &= e - 1 {
			l := bits.TrailingZeros32(e) & 31
			w.modify(in, l, w.lds(w.v[m.addr][l]+uint32(m.offset), 4, l, changes))
		}
		w.returned(in, false)
	}
	return in, nil
}

// lds returns the shared memory of one lane's access; it fails when any of it is outside of
// what the kernel declared. Accesses must be aligned to their size, at most to 4 bytes: the
// hardware does not demand it, the kernels' layouts do.
func (w *wave) lds(a uint32, size, l int, u use) []byte {
	mem := w.group.lds
	if uint64(a)+uint64(size) > uint64(len(mem)) {
		w.fail("lane %d %s %d bytes at %d of the %d bytes of shared memory", l, u, size, a, len(mem))
	}
	if a&uint32(min(size, 4)-1) != 0 {
		w.fail("lane %d %s %d bytes at %d of shared memory, which is not aligned", l, u, size, a)
	}
	w.watch(a, size, l, u)
	return mem[a:]
}

func runSharedLoad(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	addr := &w.v[m.addr]
	w.counts.SharedBytes += uint64(m.size * bits.OnesCount32(exec))
	p := w.newPending(m.data, (m.size+3)/4)
	p.half = m.half()
	defer w.issue(p, false, true)
	if m.size == 4 {
		d := &p.data[0]
		for e := exec; e != 0; e &= e - 1 {
			l := bits.TrailingZeros32(e) & 31
			d[l] = binary.LittleEndian.Uint32(w.lds(addr[l]+uint32(m.offset), 4, l, loads))
		}
		return
	}
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		m.toRegisters(&p.data, 0, l, w.lds(addr[l]+uint32(m.offset), m.size, l, loads))
	}
}

func runSharedLoad2(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	addr := &w.v[m.addr]
	w.counts.SharedBytes += uint64(2 * m.size * bits.OnesCount32(exec))
	p := w.newPending(m.data, m.size/2)
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		m.toRegisters(&p.data, 0, l, w.lds(addr[l]+uint32(m.offset), m.size, l, loads))
		m.toRegisters(&p.data, m.size/4, l, w.lds(addr[l]+uint32(m.offset2), m.size, l, loads))
	}
	w.issue(p, false, true)
}

func runSharedStore(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	w.counts.SharedBytes += uint64(m.size * bits.OnesCount32(exec))
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		w.fromRegisters(m, m.data, l, w.lds(w.v[m.addr][l]+uint32(m.offset), m.size, l, stores))
	}
}

func runSharedStore2(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	w.counts.SharedBytes += uint64(2 * m.size * bits.OnesCount32(exec))
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		w.fromRegisters(m, m.data, l, w.lds(w.v[m.addr][l]+uint32(m.offset), m.size, l, stores))
		w.fromRegisters(m, m.data2, l, w.lds(w.v[m.addr][l]+uint32(m.offset2), m.size, l, stores))
	}
}

// lanePermute decodes ds_bpermute_b32 (each lane fetches) and ds_permute_b32 (each lane sends): lane numbers
// times 4, modulo the wave; lanes that do not run hold 0.
func (l *line) lanePermute(send bool) (inst, error) {
	in := inst{class: LDS}
	err := l.registers(&in, 2, b32)
	if err != nil {
		return in, err
	}
	offset, err := l.number("offset")
	if err != nil {
		return in, err
	}
	in.run = func(w *wave, in *inst) {
		a, x, exec := w.vector(in, 0), w.vector(in, 1), w.exec()
		w.out = vec{}
		for l := range a {
			at := (a[l] + uint32(offset)) / 4 % lanes
			switch {
			case send && exec>>l&1 != 0:
				w.out[at] = x[l]
			case !send && exec>>at&1 != 0:
				w.out[l] = x[at]
			}
		}
		w.deliver(in.dst.reg)
	}
	return in, nil
}

// swizzle decodes ds_swizzle_b32 from its 16-bit pattern.
func (l *line) swizzle(pattern uint32) (inst, error) {
	in := inst{class: LDS}
	err := l.want(2)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(b32); err != nil {
		return in, err
	}
	if in.src[0], err = l.source(1, b32); err != nil {
		return in, err
	}
	var from [lanes]int
	for l := range from {
		if pattern&0x8000 != 0 { // four lanes among themselves
			if pattern&0x7f00 != 0 {
				return in, fmt.Errorf("a swizzle of a kind this does not know")
			}
			from[l] = l&^3 | int(pattern>>(l%4*2)&3)
		} else {
			from[l] = (l&int(pattern&31) | int(pattern>>5&31)) ^ int(pattern>>10&31)
		}
	}
	in.run = func(w *wave, in *inst) {
		a, exec := w.vector(in, 0), w.exec()
		for l := range w.out {
			w.out[l] = 0
			if exec>>from[l]&1 != 0 {
				w.out[l] = a[from[l]]
			}
		}
		w.deliver(in.dst.reg)
	}
	return in, nil
}

// deliver sends w.out on its way, as LDS returns it.
func (w *wave) deliver(reg int) {
	p := w.newPending(reg, 1)
	p.data[0] = w.out
	w.issue(p, false, true)
}
