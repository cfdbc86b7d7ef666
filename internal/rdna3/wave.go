package rdna3

import (
	"math/bits"
)

const lanes = 32 // of a wave

// vec is one vector register: 32 bits for each lane.
type vec [lanes]uint32

const all = 0xffffffff // every lane

type state uint8

const (
	running state = iota
	waiting       // at a barrier
	ended
)

// wave is one wave of 32 lanes.
type wave struct {
	v       [256]vec
	s       [128]uint32
	scc     uint32
	pc      int // index of the next instruction
	state   state
	group   *group
	index   int // within the workgroup
	kernel  *Kernel
	counts  *Counts
	scratch []byte // private memory, lane after lane
	queues

	// of the instruction at work
	temp    [3]vec
	out     vec
	allowed uint32 // lanes that DPP lets through
}

// run executes at most n instructions, until the wave waits or ends.
func (w *wave) run(n int) {
	code, seen := w.kernel.code, w.counts.Executed
	for ; n > 0 && w.state == running; n-- {
		in := &code[w.pc]
		seen[w.pc]++
		w.pc++
		in.run(w, in)
	}
}

func (w *wave) exec() uint32 { return w.s[execLo] }

// Scalar reads and writes.

func (w *wave) read(o *operand) uint32 {
	switch o.kind {
	case sgpr:
		return w.s[o.reg]
	case constant:
		return uint32(o.raw)
	}
	return w.readRare(o)
}

func (w *wave) readRare(o *operand) uint32 {
	yes := false
	switch o.kind {
	case vccZero:
		yes = w.s[vccLo] == 0
	case execZero:
		yes = w.exec() == 0
	case sccBit:
		return w.scc
	default:
		w.fail("a vector register where a scalar belongs")
	}
	if yes {
		return 1
	}
	return 0
}

func (w *wave) read64(o *operand) uint64 {
	switch o.kind {
	case sgpr:
		if o.reg == null {
			return 0
		}
		return uint64(w.s[o.reg]) | uint64(w.s[o.reg+1])<<32
	case constant:
		return o.raw
	}
	return uint64(w.readRare(o))
}

func (w *wave) write(reg int, x uint32) {
	if reg != null {
		w.s[reg] = x
	}
}

func (w *wave) write64(reg int, x uint64) {
	if reg != null {
		w.s[reg], w.s[reg+1] = uint32(x), uint32(x>>32)
	}
}

// vector returns the lanes of source i, in place where nothing has to be done to them.
func (w *wave) vector(in *inst, i int) *vec {
	o := &in.src[i]
	switch {
	case o.prepare:
		return w.prepare(o, &w.temp[i])
	case o.kind == vgpr:
		return &w.v[o.reg]
	case o.kind == constant:
		return o.lanes
	}
	t := &w.temp[i]
	x := w.read(o)
	for l := range t {
		t[l] = x
	}
	return t
}

// prepare reads an operand with modifiers into t.
func (w *wave) prepare(o *operand, t *vec) *vec {
	p := t
	switch o.kind {
	case vgpr:
		p = &w.v[o.reg]
	case permuted:
		w.allowed = o.dpp.apply(w, &w.v[o.reg], t)
	case constant:
		p = o.lanes
	default:
		x := w.read(o)
		for l := range t {
			t[l] = x
		}
	}
	switch o.typ {
	case b16, tf16:
		shift := 0
		if o.half && o.kind != constant {
			shift = 16
		}
		and, xor := uint32(0xffff), uint32(0)
		if o.abs {
			and = 0x7fff
		}
		if o.neg {
			xor = sign16
		}
		for l := range t {
			t[l] = p[l]>>shift&and ^ xor
		}
	case mixed:
		o.mix(p, t)
	case pk16, pkf16:
		o.halves(p, t)
	default:
		and, xor := uint32(all), uint32(0)
		if o.abs {
			and = ^uint32(sign32)
		}
		if o.neg {
			xor = sign32
		}
		for l := range t {
			t[l] = p[l]&and ^ xor
		}
		if o.flush {
			for l := range t {
				t[l] = flush(t[l])
			}
		}
	}
	return t
}

// mix converts an f16 half to f32, then applies the modifiers.
func (o *operand) mix(p, t *vec) {
	and, xor := uint32(all), uint32(0)
	if o.abs {
		and = ^uint32(sign32)
	}
	if o.neg {
		xor = sign32
	}
	switch {
	case !o.selHi: // op_sel_hi clear: the whole register, f32
		for l := range t {
			t[l] = p[l]&and ^ xor
		}
	case o.selLo:
		for l := range t {
			t[l] = u32(half(p[l]>>16))&and ^ xor
		}
	default:
		for l := range t {
			t[l] = u32(half(p[l]))&and ^ xor
		}
	}
}

// halves picks and negates the halves of packed operands.
func (o *operand) halves(p, t *vec) {
	lo, hi := 0, 0
	if o.selLo {
		lo = 16
	}
	if o.selHi {
		hi = 16
	}
	xor := uint32(0)
	if o.neg {
		xor = sign16
	}
	if o.negHi {
		xor |= sign16 << 16
	}
	for l := range t {
		t[l] = (p[l]>>lo&0xffff | p[l]>>hi<<16) ^ xor
	}
}

// merge writes the lanes of w.out that run into register reg.
func (w *wave) merge(reg int, lanes uint32) {
	d := &w.v[reg]
	if lanes == all {
		*d = w.out
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = w.out[l]
	}
}

// mergeHalf writes the lower halves of w.out into one half of register reg.
func (w *wave) mergeHalf(reg int, high bool, lanes uint32) {
	d := &w.v[reg]
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if high {
			d[l] = d[l]&0xffff | w.out[l]<<16
		} else {
			d[l] = d[l]&^0xffff | w.out[l]&0xffff
		}
	}
}
