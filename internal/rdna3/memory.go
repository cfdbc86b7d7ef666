package rdna3

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Where flat addresses reach shared and private memory instead of global memory.
const (
	sharedBase  = 0x0001_0000_0000_0000
	privateBase = 0x0002_0000_0000_0000
)

// Buffer is a piece of global memory: what a kernel may touch, to the byte.
type Buffer struct {
	Name    string
	Addr    uint64
	Data    []byte
	Written bool // a kernel stored to it
}

// Memory is global memory: some buffers and nothing else.
type Memory struct {
	buffers []*Buffer // by address
	last    *Buffer
}

// Add makes a buffer part of the memory. Buffers must not overlap.
func (m *Memory) Add(b *Buffer) error {
	i, _ := slices.BinarySearchFunc(m.buffers, b.Addr, func(b *Buffer, a uint64) int {
		switch {
		case b.Addr < a:
			return -1
		case b.Addr > a:
			return 1
		}
		return 0
	})
	if i > 0 && m.buffers[i-1].Addr+uint64(len(m.buffers[i-1].Data)) > b.Addr ||
		i < len(m.buffers) && b.Addr+uint64(len(b.Data)) > m.buffers[i].Addr {
		return fmt.Errorf("buffers overlap at %#x", b.Addr)
	}
	m.buffers = slices.Insert(m.buffers, i, b)
	return nil
}

// find returns the bytes of memory from address a to the end of its buffer, nil when fewer than n are there.
func (m *Memory) find(a uint64, n int) ([]byte, *Buffer) {
	if b := m.last; b != nil {
		if off := a - b.Addr; off < uint64(len(b.Data)) && uint64(len(b.Data))-off >= uint64(n) {
			return b.Data[off:], b
		}
	}
	i, found := slices.BinarySearchFunc(m.buffers, a, func(b *Buffer, a uint64) int {
		switch {
		case b.Addr < a:
			return -1
		case b.Addr > a:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil, nil
	}
	b := m.buffers[i]
	off := a - b.Addr
	if off >= uint64(len(b.Data)) || uint64(len(b.Data))-off < uint64(n) {
		return nil, nil
	}
	m.last = b
	return b.Data[off:], b
}

// describe says what is near an address that is in no buffer.
func (m *Memory) describe(a uint64) string {
	for _, b := range m.buffers {
		end := b.Addr + uint64(len(b.Data))
		if a >= b.Addr && a < end {
			return fmt.Sprintf("%d bytes before the end of %s (%d bytes)", end-a, b.Name, len(b.Data))
		}
		if a >= end && a-end < 1<<20 {
			return fmt.Sprintf("%d bytes past the end of %s (%d bytes)", a-end, b.Name, len(b.Data))
		}
		if a < b.Addr && b.Addr-a < 1<<20 {
			return fmt.Sprintf("%d bytes before %s", b.Addr-a, b.Name)
		}
	}
	return "near no buffer"
}

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
