package rdna3

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// compare decodes v_cmp_<predicate>_<type> and v_cmpx_….
func (l *line) compare() (inst, error) {
	in := inst{class: classOf(l.op), sdst: execLo}
	name, writesExec := strings.CutPrefix(l.op, "v_cmpx_")
	if !writesExec {
		name = strings.TrimPrefix(l.op, "v_cmp_")
	}
	predicate, kind, ok := strings.Cut(name, "_")
	if !ok {
		return in, l.unknown()
	}
	first := 0
	if !writesExec {
		first = 1
	}
	if err := l.want(first + 2); err != nil {
		return in, err
	}
	var err error
	if !writesExec {
		if in.sdst, err = l.mask(0); err != nil {
			return in, err
		}
	}
	var t [2]typ
	switch kind {
	case "f32":
		t = [2]typ{tf32, tf32}
	case "i32", "u32", "b32":
		t = [2]typ{b32, b32}
	case "f16":
		t = [2]typ{tf16, tf16}
	case "i16", "u16":
		t = [2]typ{b16, b16}
	case "f64":
		t = [2]typ{tf64, tf64}
	case "i64", "u64":
		t = [2]typ{b64, b64}
	default:
		return in, l.unknown()
	}
	if predicate == "class" {
		t[1] = b32
		if kind == "f64" {
			return in, l.unknown()
		}
	}
	for i := range t {
		if in.src[i], err = l.source(first+i, t[i]); err != nil {
			return in, err
		}
	}
	if _, clamped := l.mods["clamp"]; clamped {
		return in, fmt.Errorf("clamp on a comparison")
	}
	if err := l.selections(&in, 2); err != nil {
		return in, err
	}
	in.run = runCompare
	switch kind {
	case "f32":
		in.cmp = order32[predicate]
	case "f16":
		if f := order32[predicate]; f != nil {
			in.cmp = func(a, b uint32) bool { return f(u32(half(a)), u32(half(b))) }
		}
	case "i32":
		in.cmp = orderI[predicate]
	case "u32", "b32":
		in.cmp = orderU[predicate]
	case "i16":
		if f := orderI[predicate]; f != nil {
			in.cmp = func(a, b uint32) bool { return f(uint32(signed(a, 16)), uint32(signed(b, 16))) }
		}
	case "u16":
		in.cmp = orderU[predicate]
	default:
		in.run = runCompareWide
		in.wide = wideOrder(kind, predicate)
		if in.wide == nil {
			return in, l.unknown()
		}
		return in, nil
	}
	if predicate == "class" {
		in.cmp = map[string]func(a, b uint32) bool{"f32": class32, "f16": class16}[kind]
	}
	if in.cmp == nil {
		return in, l.unknown()
	}
	return in, nil
}

var order32 = map[string]func(a, b uint32) bool{
	"f": func(a, b uint32) bool { return false }, "t": func(a, b uint32) bool { return true }, "tru": func(a, b uint32) bool { return true },
	"lt": func(a, b uint32) bool { return f32(a) < f32(b) }, "nlt": func(a, b uint32) bool { return !(f32(a) < f32(b)) },
	"le": func(a, b uint32) bool { return f32(a) <= f32(b) }, "nle": func(a, b uint32) bool { return !(f32(a) <= f32(b)) },
	"gt": func(a, b uint32) bool { return f32(a) > f32(b) }, "ngt": func(a, b uint32) bool { return !(f32(a) > f32(b)) },
	"ge": func(a, b uint32) bool { return f32(a) >= f32(b) }, "nge": func(a, b uint32) bool { return !(f32(a) >= f32(b)) },
	"eq": func(a, b uint32) bool { return f32(a) == f32(b) }, "neq": func(a, b uint32) bool { return f32(a) != f32(b) },
	"lg": func(a, b uint32) bool { return f32(a) < f32(b) || f32(a) > f32(b) }, "nlg": func(a, b uint32) bool { return !(f32(a) < f32(b) || f32(a) > f32(b)) },
	"o": func(a, b uint32) bool { return !isNaN32(a) && !isNaN32(b) }, "u": func(a, b uint32) bool { return isNaN32(a) || isNaN32(b) },
}

var orderI = map[string]func(a, b uint32) bool{
	"lt": func(a, b uint32) bool { return int32(a) < int32(b) }, "le": func(a, b uint32) bool { return int32(a) <= int32(b) },
	"gt": func(a, b uint32) bool { return int32(a) > int32(b) }, "ge": func(a, b uint32) bool { return int32(a) >= int32(b) },
	"eq": func(a, b uint32) bool { return a == b }, "ne": func(a, b uint32) bool { return a != b },
	"f": func(a, b uint32) bool { return false }, "t": func(a, b uint32) bool { return true },
}

var orderU = map[string]func(a, b uint32) bool{
	"lt": func(a, b uint32) bool { return a < b }, "le": func(a, b uint32) bool { return a <= b },
	"gt": func(a, b uint32) bool { return a > b }, "ge": func(a, b uint32) bool { return a >= b },
	"eq": func(a, b uint32) bool { return a == b }, "ne": func(a, b uint32) bool { return a != b },
	"f": func(a, b uint32) bool { return false }, "t": func(a, b uint32) bool { return true },
}

// wideOrder returns a comparison of 64-bit values as 0 or 1, nil when there is none.
func wideOrder(kind, predicate string) func(a, b, c uint64) uint64 {
	var less, equal func(a, b uint64) bool
	equal = func(a, b uint64) bool { return a == b }
	unordered := func(a, b uint64) bool { return false }
	switch kind {
	case "i64":
		less = func(a, b uint64) bool { return int64(a) < int64(b) }
	case "u64":
		less = func(a, b uint64) bool { return a < b }
	default:
		x := math.Float64frombits
		less = func(a, b uint64) bool { return x(a) < x(b) }
		equal = func(a, b uint64) bool { return x(a) == x(b) }
		unordered = func(a, b uint64) bool { return math.IsNaN(x(a)) || math.IsNaN(x(b)) }
	}
	base, negated := predicate, false
	if len(predicate) == 3 && predicate[0] == 'n' {
		base, negated = predicate[1:], true
	}
	var f func(a, b uint64) bool
	switch base {
	case "lt":
		f = less
	case "le":
		f = func(a, b uint64) bool { return less(a, b) || equal(a, b) }
	case "gt":
		f = func(a, b uint64) bool { return less(b, a) }
	case "ge":
		f = func(a, b uint64) bool { return less(b, a) || equal(a, b) }
	case "eq":
		f = equal
	case "ne":
		f = func(a, b uint64) bool { return !equal(a, b) }
	case "lg":
		f = func(a, b uint64) bool { return less(a, b) || less(b, a) }
	case "o":
		f = func(a, b uint64) bool { return !unordered(a, b) }
	case "u":
		f = unordered
	default:
		return nil
	}
	return func(a, b, _ uint64) uint64 {
		if f(a, b) != negated {
			return 1
		}
		return 0
	}
}

// class32 says whether a is of one of the classes in mask: signalling NaN, quiet NaN, -inf, -normal,
// -subnormal, -0, +0, +subnormal, +normal, +inf.
func class32(a, mask uint32) bool {
	switch {
	case isSNaN32(a):
		return mask&1 != 0
	case isNaN32(a):
		return mask&2 != 0
	}
	bit := 0
	switch u := a &^ sign32; {
	case u == 0:
		bit = 6
	case u < 0x800000:
		bit = 7
	case u < inf32:
		bit = 8
	default:
		bit = 9
	}
	if a&sign32 != 0 {
		bit = 11 - bit
	}
	return mask>>bit&1 != 0
}

func class16(a, mask uint32) bool {
	switch {
	case isSNaN16(a):
		return mask&1 != 0
	case isNaN16(a):
		return mask&2 != 0
	case a&0x7fff != 0 && a&0x7fff < 0x400: // would be normal in f32
		if a&sign16 != 0 {
			return mask>>4&1 != 0
		}
		return mask>>7&1 != 0
	}
	return class32(u32(half(a)), mask)
}

func runCompare(w *wave, in *inst) {
	a, b := w.vector(in, 0), w.vector(in, 1)
	f := in.cmp
	var m uint32
	exec := w.exec()
	if in.dpp {
		exec &= w.allowed
	}
	if exec == all {
		for l := range a {
			if f(a[l], b[l]) {
				m |= 1 << l
			}
		}
	} else {
		for e := exec; e != 0; e &= e - 1 {
			l := bits.TrailingZeros32(e) & 31
			if f(a[l], b[l]) {
				m |= 1 << l
			}
		}
	}
	w.write(in.sdst, m)
}

func runCompareWide(w *wave, in *inst) {
	var a, b [lanes]uint64
	w.wideLanes(&in.src[0], &a)
	w.wideLanes(&in.src[1], &b)
	var m uint32
	for e := w.exec(); e != 0; e &= e - 1 {
		l := bits.TrailingZeros32(e) & 31
		m |= uint32(in.wide(a[l], b[l], 0)) << l
	}
	w.write(in.sdst, m)
}
