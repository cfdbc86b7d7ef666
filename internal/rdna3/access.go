package rdna3

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// access is a memory instruction, decoded.
type access struct {
	space    space
	size     int  // bytes of a lane
	signed   bool // a byte or a short that is extended with its sign
	d16      bool // 16 bits of the register only
	high     bool // the upper ones
	addr     int  // VGPR of the address, or of the offset from saddr; -1: none
	saddr    int  // SGPR pair of the base; for scratch, SGPR of an offset; -1: none
	data     int  // VGPR of the data
	data2    int  // of the second data
	offset   int64
	offset2  int64
	atomic   func(old, x, y uint32) uint32
	operands int // data operands of the atomic
	returns  bool
}

type space uint8

const (
	global space = iota
	flat
	shared
	private
)

// widths are the sizes of loads and stores by the end of their names.
var widths = map[string]access{
	"b8": {size: 1}, "b16": {size: 2}, "b32": {size: 4}, "b64": {size: 8}, "b96": {size: 12}, "b128": {size: 16},
	"u8": {size: 1}, "i8": {size: 1, signed: true}, "u16": {size: 2}, "i16": {size: 2, signed: true},
	"d16_b16": {size: 2, d16: true}, "d16_hi_b16": {size: 2, d16: true, high: true},
	"d16_u8": {size: 1, d16: true}, "d16_hi_u8": {size: 1, d16: true, high: true},
	"d16_i8": {size: 1, d16: true, signed: true}, "d16_hi_i8": {size: 1, d16: true, high: true, signed: true},
	"d16_hi_b8": {size: 1, d16: true, high: true},
	// the same as DS instructions are called
	"u16_d16": {size: 2, d16: true}, "u16_d16_hi": {size: 2, d16: true, high: true},
	"u8_d16": {size: 1, d16: true}, "u8_d16_hi": {size: 1, d16: true, high: true},
	"i8_d16": {size: 1, d16: true, signed: true}, "i8_d16_hi": {size: 1, d16: true, high: true, signed: true},
	"b16_d16_hi": {size: 2, d16: true, high: true}, "b8_d16_hi": {size: 1, d16: true, high: true},
}

// memory decodes global, flat, scratch and LDS instructions.
func (l *line) memory() (inst, error) {
	if err := l.checkMods(); err != nil {
		return inst{}, err
	}
	if strings.HasPrefix(l.op, "buffer_gl") { // buffer_gl0_inv: caches are not modelled
		return inst{run: runNothing, class: Wait}, nil
	}
	if strings.HasPrefix(l.op, "ds_") {
		return l.shared()
	}
	kind, op, _ := strings.Cut(l.op, "_")
	in := inst{class: classOf(l.op)}
	m := access{addr: -1, saddr: -1, data: -1}
	switch kind {
	case "global":
		m.space = global
	case "flat":
		m.space = flat
	case "scratch":
		m.space = private
	default:
		return in, l.unknown()
	}
	offset, err := l.number("offset")
	if err != nil {
		return in, err
	}
	verb, suffix, _ := strings.Cut(op, "_")
	args := l.args
	if m.space == flat {
		args = append(slices.Clone(args), "off")
	}
	width, ok := widths[suffix]
	switch {
	case verb == "load" && ok && len(args) == 3:
		in.run = runLoad
		args = []string{args[1], args[2], args[0]}
	case verb == "store" && ok && len(args) == 3:
		in.run = runStore
		args = []string{args[0], args[2], args[1]}
	case verb == "atomic" && atomics[suffix].fn != nil && m.space != private:
		_, m.returns = l.mods["glc"]
		in.run = runAtomic
		a := atomics[suffix]
		m.atomic, m.operands = a.fn, a.n
		width = access{size: 4}
		if m.returns && len(args) == 4 {
			in.dst, err = l.dest(b32)
			args = args[1:]
		}
		if err != nil || len(args) != 3 {
			return in, fmt.Errorf("operands of an atomic: %v", l.args)
		}
		args = []string{args[0], args[2], args[1]}
	default:
		return in, l.unknown()
	}
	m.size, m.signed, m.d16, m.high = width.size, width.signed, width.d16, width.high
	m.offset = offset
	if args[0] != "off" {
		o, err := parseOperand(args[0], b32)
		if err != nil || o.kind != vgpr {
			return in, fmt.Errorf("%s is not an address", args[0])
		}
		m.addr = o.reg
		if want := 2; m.space != private && args[1] == "off" && o.width != want {
			return in, fmt.Errorf("%s is not a 64-bit address", args[0])
		}
	}
	if args[1] != "off" {
		o, err := parseOperand(args[1], b32)
		if err != nil || o.kind != sgpr {
			return in, fmt.Errorf("%s is not a scalar address", args[1])
		}
		m.saddr = o.reg
	}
	if m.data, err = l.dataRegisters(args[2], m.size); err != nil {
		return in, err
	}
	in.mem = &m
	return in, nil
}

// dataRegisters checks that text names as many vector registers as size bytes take, and returns the first.
func (l *line) dataRegisters(text string, size int) (int, error) {
	o, err := parseOperand(text, b32)
	if err != nil {
		return 0, err
	}
	if o.kind != vgpr || o.width != (size+3)/4 && o.width != 2*((size+3)/4) || o.reg+o.width > l.d.limit {
		return 0, fmt.Errorf("%s does not hold %d bytes", text, size)
	}
	return o.reg, nil
}

func (l *line) number(mod string) (int64, error) {
	text, ok := l.mods[mod]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s:%s", mod, text)
	}
	return n, nil
}

// address is the address of lane l.
func (w *wave) address(m *access, l int) uint64 {
	a := uint64(m.offset)
	switch {
	case m.space == private:
		if m.addr >= 0 {
			a += uint64(w.v[m.addr][l])
		}
		if m.saddr >= 0 {
			a += uint64(w.s[m.saddr])
		}
	case m.saddr >= 0:
		a += uint64(w.s[m.saddr]) | uint64(w.s[m.saddr+1])<<32
		if m.addr >= 0 {
			a += uint64(w.v[m.addr][l])
		}
	default:
		a += uint64(w.v[m.addr][l]) | uint64(w.v[m.addr+1][l])<<32
	}
	return a
}

// bytes returns the memory of one lane's access; it fails when any of it may not be touched.
func (w *wave) bytes(m *access, l int, store bool) []byte {
	a := w.address(m, l)
	verb := loads
	if store {
		verb = stores
	}
	switch {
	case m.space == private:
		size := uint64(len(w.scratch) / lanes)
		if a+uint64(m.size) > size || a > size {
			w.fail("lane %d %s %d bytes at %d of its %d bytes of scratch", l, verb, m.size, a, size)
		}
		return w.scratch[uint64(l)*size+a:]
	case m.space == flat && a>>32 == sharedBase>>32:
		return w.lds(uint32(a), m.size, l, verb)
	}
	p, b := w.group.memory.find(a, m.size)
	if p == nil {
		w.fail("lane %d %s %d bytes at %#x, %s", l, verb, m.size, a, w.group.memory.describe(a))
	}
	if store {
		b.Written = true
	}
	return p
}

func runLoad(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	w.counts.load(m, bits.OnesCount32(exec))
	p := w.newPending(m.data, (m.size+3)/4)
	p.half, p.loose = m.half(), m.space == flat
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		m.toRegisters(&p.data, 0, l, w.bytes(m, l, false))
	}
	w.issue(p, true, m.space == flat)
}

// half says which half of a register a load writes.
func (m *access) half() half16 {
	switch {
	case m.d16 && m.high:
		return upper
	case m.d16:
		return lower
	}
	return whole
}

// toRegisters puts what a lane loaded where it waits, from register `at` on.
func (m *access) toRegisters(d *[4]vec, at, l int, p []byte) {
	switch m.size {
	case 4:
		d[at&3][l] = binary.LittleEndian.Uint32(p)
		return
	case 8, 12, 16:
		for i := range m.size / 4 {
			d[(at+i)&3][l] = binary.LittleEndian.Uint32(p[4*i:])
		}
		return
	}
	x := uint32(p[0])
	if m.size == 2 {
		x = uint32(binary.LittleEndian.Uint16(p))
	}
	if m.signed {
		x = uint32(signed(x, 8*m.size))
	}
	d[at][l] = x
}

// fromRegisters puts a lane's registers into memory.
func (w *wave) fromRegisters(m *access, reg, l int, p []byte) {
	x := w.v[reg][l]
	if m.high {
		x >>= 16
	}
	switch m.size {
	case 1:
		p[0] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(x))
	default:
		for i := range m.size / 4 {
			binary.LittleEndian.PutUint32(p[4*i:], w.v[reg+i][l])
		}
	}
}

func runStore(w *wave, in *inst) {
	m, exec := in.mem, w.exec()
	w.counts.store(m, bits.OnesCount32(exec))
	for e := exec; e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		w.fromRegisters(m, m.data, l, w.bytes(m, l, true))
	}
}
