package rdna3

// The instructions of which a division is made: v_div_scale, v_rcp and refinements, v_div_fmas, v_div_fixup.

func (l *line) divScale() (inst, error) {
	in := inst{class: VALU}
	err := l.want(5)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(tf32); err != nil {
		return in, err
	}
	if in.sdst, err = l.mask(1); err != nil {
		return in, err
	}
	for i := range 3 {
		if in.src[i], err = l.source(i+2, tf32); err != nil {
			return in, err
		}
	}
	in.run = func(w *wave, in *inst) {
		a, b, c, exec := w.vector(in, 0), w.vector(in, 1), w.vector(in, 2), w.exec()
		var mask uint32
		for l := range w.out {
			r, scaled := divScale(a[l], b[l], c[l])
			w.out[l] = r
			if scaled {
				mask |= 1 << l
			}
		}
		w.merge(in.dst.reg, exec)
		w.write(in.sdst, mask&exec)
	}
	return in, nil
}

// divScale is V_DIV_SCALE_F32: x is the operand to scale, den or num itself; true tells V_DIV_FMAS_F32 to scale back.
func divScale(x, den, num uint32) (uint32, bool) {
	exponent := func(u uint32) int { return int(u >> 23 & 255) }
	tiny := func(f float64) bool { f = max(f, -f); return f > 0 && f < 0x1p-126 }
	d, n := float64(f32(den)), float64(f32(num))
	isDen, isNum := x == den, x == num
	up := func(by int) uint32 { return u32(ldexp(f32(x), by)) }
	switch {
	case d == 0 || n == 0:
		return 0x7fc00000, false
	case exponent(num)-exponent(den) >= 96: // close to the largest number
		if isDen {
			return up(64), true
		}
		return x, true
	case exponent(den) == 0:
		return up(64), false
	case tiny(1/d) && tiny(n/d): // the guide prints 2^64 here, which would overflow and could not be undone
		if isDen {
			return up(-64), true
		}
		return x, true
	case tiny(1 / d):
		return up(-64), false
	case tiny(n / d):
		if isNum {
			return up(64), true
		}
		return x, true
	case exponent(num) <= 23:
		return up(64), false
	}
	return x, false
}

func (l *line) divFmas() (inst, error) {
	in, err := l.lanewise(vop{tf32, f3, nil, false})
	in.run = func(w *wave, in *inst) {
		a, b, c, m := w.vector(in, 0), w.vector(in, 1), w.vector(in, 2), w.s[vccLo]
		for l := range w.out {
			r := fma32(f32(a[l]), f32(b[l]), f32(c[l]))
			if m>>l&1 != 0 {
				// the guide prints 2^32; what undoes v_div_scale, and was seen on hardware, is this
				if c[l]>>23&255 > 127 {
					r = ldexp(r, 64)
				} else {
					r = ldexp(r, -64)
				}
			}
			w.out[l] = u32(r)
		}
		w.put(in)
	}
	return in, err
}

// divFixup is V_DIV_FIXUP_F32: quotient, denominator, numerator.
func divFixup(q, den, num uint32) uint32 {
	sign := (den ^ num) & sign32
	d, n := den&^sign32, num&^sign32
	switch {
	case isNaN32(num):
		return num | quiet32
	case isNaN32(den):
		return den | quiet32
	case d == 0 && n == 0:
		return 0xffc00000
	case d == inf32 && n == inf32:
		return 0xffc00000
	case d == 0 || n == inf32:
		return sign | inf32
	case d == inf32 || n == 0:
		return sign
	case int(n>>23)-int(d>>23) < -150:
		return sign
	case isNaN32(q): // the refinement of a quotient that overflows
		return sign | inf32
	}
	return q&^sign32 | sign
}
