package rdna3

import (
	"fmt"
)

// wideOp decodes an operation on 64-bit lanes.
func (l *line) wideOp(op wop) (inst, error) {
	in := inst{wide: op.fn, run: runWide, class: classOf(l.op), sdst: null}
	first := 1
	if op.carry {
		first = 2
	}
	err := l.want(len(op.src) + first)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(op.dst); err != nil {
		return in, err
	}
	if op.carry {
		if in.sdst, err = l.mask(1); err != nil {
			return in, err
		}
		if in.sdst != null {
			return in, fmt.Errorf("a carry of a 64-bit multiply-add, which this does not compute")
		}
	}
	for i, t := range op.src {
		if in.src[i], err = l.source(first+i, t); err != nil {
			return in, err
		}
	}
	return in, l.selections(&in, len(op.src))
}

func runWide(w *wave, in *inst) {
	var x [3][lanes]uint64
	for i := range in.src {
		if in.src[i].kind != absent {
			w.wideLanes(&in.src[i], &x[i])
		}
	}
	d := in.dst.reg
	for m, l := w.exec(), 0; l < lanes; l++ {
		if m>>l&1 == 0 {
			continue
		}
		r := in.wide(x[0][l], x[1][l], x[2][l])
		w.v[d][l] = uint32(r)
		if in.dst.typ == b64 || in.dst.typ == tf64 {
			w.v[d+1][l] = uint32(r >> 32)
		}
	}
}

// wideLanes reads a 32- or 64-bit operand of each lane.
func (w *wave) wideLanes(o *operand, x *[lanes]uint64) {
	double := o.typ == b64 || o.typ == tf64
	switch {
	case o.kind == vgpr && double:
		lo, hi := &w.v[o.reg], &w.v[o.reg+1]
		for l := range x {
			x[l] = uint64(lo[l]) | uint64(hi[l])<<32
		}
	case o.kind == vgpr:
		for l := range x {
			x[l] = uint64(w.v[o.reg][l])
		}
	default:
		s := uint64(w.read(o))
		if double {
			s = w.read64(o)
		}
		for l := range x {
			x[l] = s
		}
	}
	sign := uint64(sign32)
	if double {
		sign <<= 32
	}
	for l := range x {
		if o.abs {
			x[l] &^= sign
		}
		if o.neg {
			x[l] ^= sign
		}
	}
}
