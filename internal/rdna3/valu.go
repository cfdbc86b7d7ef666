package rdna3

import (
	"strings"
)

// vop is a lane-wise vector operation.
type vop struct {
	dst typ
	src []typ
	fn  func(d, a, b, c *vec)
	acc bool // the destination is the last source
}

// valu decodes a vector instruction.
func (l *line) valu() (inst, error) {
	if err := l.checkMods(); err != nil {
		return inst{}, err
	}
	if special, ok := specials[l.op]; ok {
		return special(l)
	}
	if strings.HasPrefix(l.op, "v_cmp_") || strings.HasPrefix(l.op, "v_cmpx_") {
		return l.compare()
	}
	if op, ok := wides[l.op]; ok {
		return l.wideOp(op)
	}
	op, ok := vops[l.op]
	if !ok {
		return inst{}, l.unknown()
	}
	return l.lanewise(op)
}

// lanewise decodes an operation of the tables.
func (l *line) lanewise(op vop) (inst, error) {
	in := inst{fn: op.fn, class: classOf(l.op)}
	args := len(op.src) + 1
	if op.acc {
		args--
	}
	err := l.want(args)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(op.dst); err != nil {
		return in, err
	}
	for i, t := range op.src {
		at := i + 1
		if op.acc && i == len(op.src)-1 {
			at = 0
		}
		if in.src[i], err = l.source(at, t); err != nil {
			return in, err
		}
	}
	if err := l.output(&in, op.dst); err != nil {
		return in, err
	}
	if err := l.selections(&in, len(op.src)); err != nil {
		return in, err
	}
	if exact := approximate[l.op]; exact != nil && l.d.approx != 0 {
		in.fn = perturbed(op.fn, exact, l.d.approx)
	}
	slow := in.clamp || in.omod != 0 || in.flush || in.dpp || in.dst.half || op.dst == b16 || op.dst == tf16
	switch {
	case len(op.src) == 1 && slow:
		in.run = run1Slow
	case len(op.src) == 2 && slow:
		in.run = run2Slow
	case slow:
		in.run = run3Slow
	case len(op.src) == 1:
		in.run = run1
	case len(op.src) == 2:
		in.run = run2
	default:
		in.run = run3
	}
	return in, nil
}

func run1(w *wave, in *inst) {
	a := w.vector(in, 0)
	if w.s[execLo] == all {
		in.fn(&w.v[in.dst.reg], a, nil, nil)
		return
	}
	in.fn(&w.out, a, nil, nil)
	w.merge(in.dst.reg, w.s[execLo])
}

func run2(w *wave, in *inst) {
	a, b := w.vector(in, 0), w.vector(in, 1)
	if w.s[execLo] == all {
		in.fn(&w.v[in.dst.reg], a, b, nil)
		return
	}
	in.fn(&w.out, a, b, nil)
	w.merge(in.dst.reg, w.s[execLo])
}

func run3(w *wave, in *inst) {
	a, b, c := w.vector(in, 0), w.vector(in, 1), w.vector(in, 2)
	if w.s[execLo] == all {
		in.fn(&w.v[in.dst.reg], a, b, c)
		return
	}
	in.fn(&w.out, a, b, c)
	w.merge(in.dst.reg, w.s[execLo])
}

func run1Slow(w *wave, in *inst) {
	in.fn(&w.out, w.vector(in, 0), nil, nil)
	w.put(in)
}

func run2Slow(w *wave, in *inst) {
	in.fn(&w.out, w.vector(in, 0), w.vector(in, 1), nil)
	w.put(in)
}

func run3Slow(w *wave, in *inst) {
	in.fn(&w.out, w.vector(in, 0), w.vector(in, 1), w.vector(in, 2))
	w.put(in)
}

// put writes w.out to the destination, through the modifiers of the result.
func (w *wave) put(in *inst) {
	o, t := &w.out, in.dst.typ
	switch in.omod {
	case 1:
		scale(o, 2)
	case 2:
		scale(o, 4)
	case 3:
		scale(o, 0.5)
	}
	if in.flush {
		for l := range o {
			o[l] = flush(o[l])
		}
	}
	if in.clamp {
		for l := range o {
			switch t {
			case tf32, mixed:
				o[l] = clamp32(o[l])
			case tf16:
				o[l] = clamp16(o[l])
			case pkf16:
				o[l] = clamp16(o[l]&0xffff) | clamp16(o[l]>>16)<<16
			}
		}
	}
	lanes := w.exec()
	if in.dpp {
		lanes &= w.allowed
	}
	if t == b16 || t == tf16 {
		w.mergeHalf(in.dst.reg, in.dst.half, lanes)
		return
	}
	w.merge(in.dst.reg, lanes)
}

func scale(o *vec, by float32) {
	for l := range o {
		o[l] = u32(f32(o[l]) * by)
	}
}

func lane1(f func(a uint32) uint32) func(d, a, b, c *vec) {
	return func(d, a, _, _ *vec) {
		for l := range d {
			d[l] = f(a[l])
		}
	}
}

func lane2(f func(a, b uint32) uint32) func(d, a, b, c *vec) {
	return func(d, a, b, _ *vec) {
		for l := range d {
			d[l] = f(a[l], b[l])
		}
	}
}

func lane3(f func(a, b, c uint32) uint32) func(d, a, b, c *vec) {
	return func(d, a, b, c *vec) {
		for l := range d {
			d[l] = f(a[l], b[l], c[l])
		}
	}
}

func float1(f func(a float32) float32) func(d, a, b, c *vec) {
	return lane1(func(a uint32) uint32 { return u32(f(f32(a))) })
}

func half1(f func(a float32) float32) func(d, a, b, c *vec) {
	return lane1(func(a uint32) uint32 { return toHalf(f(half(a))) })
}

func half2(f func(a, b float32) float32) func(d, a, b, c *vec) {
	return lane2(func(a, b uint32) uint32 { return toHalf(f(half(a), half(b))) })
}

// both applies a 16-bit operation to each half.
func both(f func(a, b, c uint32) uint32) func(d, a, b, c *vec) {
	return func(d, a, b, c *vec) {
		if c == nil {
			c = &zeros
		}
		for l := range d {
			x, y, z := a[l], b[l], c[l]
			d[l] = f(x&0xffff, y&0xffff, z&0xffff)&0xffff | f(x>>16, y>>16, z>>16)<<16
		}
	}
}

var zeros vec
