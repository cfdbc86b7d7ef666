package rdna3

import (
	"fmt"
	"math"
)

// dotInt decodes v_dot4_i32_iu8 and v_dot8_i32_iu4: neg_lo says which of the two operands is signed.
func (l *line) dotInt(width int) (inst, error) {
	in := inst{class: Dot4}
	signs := append(list(l.mods["neg_lo"]), false, false)
	if l.op == "v_dot4_u32_u8" {
		signs[0], signs[1] = false, false
	}
	delete(l.mods, "neg_lo") // not a negation here
	_, clamp := l.mods["clamp"]
	err := l.registers(&in, 3, b32)
	if err != nil {
		return in, err
	}
	switch {
	case width == 8 && signs[0] && signs[1] && !clamp:
		in.fn, in.run = dot4, run3
	default:
		a, b := signs[0], signs[1]
		unsigned := l.op == "v_dot4_u32_u8"
		in.fn = lane3(func(x, y, c uint32) uint32 {
			sum := dotSmall(x, y, width, a, b)
			if unsigned {
				sum += int64(c)
				if clamp && sum > math.MaxUint32 {
					sum = math.MaxUint32
				}
				return uint32(sum)
			}
			sum += int64(int32(c))
			if clamp {
				sum = max(min(sum, math.MaxInt32), math.MinInt32)
			}
			return uint32(sum)
		})
		in.run = run3
	}
	return in, nil
}

// dot4 adds the products of four signed bytes to c.
func dot4(d, a, b, c *vec) {
	for l := range d {
		x, y := a[l], b[l]
		d[l] = c[l] + uint32(int32(int8(x))*int32(int8(y))+int32(int8(x>>8))*int32(int8(y>>8))+
			int32(int8(x>>16))*int32(int8(y>>16))+int32(x)>>24*(int32(y)>>24))
	}
}

// dotSmall is the sum of the products of the fields of x and y.
func dotSmall(x, y uint32, width int, signedX, signedY bool) int64 {
	field := func(u uint32, at int, s bool) int64 {
		u = u >> at & (1<<width - 1)
		if s {
			return int64(signed(u, width))
		}
		return int64(u)
	}
	var sum int64
	for at := 0; at < 32; at += width {
		sum += field(x, at, signedX) * field(y, at, signedY)
	}
	return sum
}

// wmmaKind is one of the 16x16x16 matrix products.
type wmmaKind struct {
	a             int // registers of A and of B
	floatC, halfC bool
	element       func(regs *[8]uint32, k int, signed bool) float64
}

var (
	wmmaF32F16  = wmmaKind{a: 8, floatC: true, element: halfElement}
	wmmaF16F16  = wmmaKind{a: 8, floatC: true, halfC: true, element: halfElement}
	wmmaF32BF16 = wmmaKind{a: 8, floatC: true, element: func(r *[8]uint32, k int, _ bool) float64 {
		return float64(f32(r[k/2] >> (k % 2 * 16) << 16))
	}}
	wmmaI32IU8 = wmmaKind{a: 4, element: func(r *[8]uint32, k int, s bool) float64 { return integerElement(r, k, 8, s) }}
	wmmaI32IU4 = wmmaKind{a: 2, element: func(r *[8]uint32, k int, s bool) float64 { return integerElement(r, k, 4, s) }}
)

func halfElement(r *[8]uint32, k int, _ bool) float64 { return float64(half(r[k/2] >> (k % 2 * 16))) }

func integerElement(r *[8]uint32, k, width int, s bool) float64 {
	per := 32 / width
	u := r[k/per] >> (k % per * width) & (1<<width - 1)
	if s {
		return float64(signed(u, width))
	}
	return float64(u)
}

// wmma decodes D = A*B + C on 16x16 matrices. Lane l holds row l%16 of A and column l%16 of B, so
// lanes 16 to 31 repeat lanes 0 to 15; register r of C and D holds row 2r (lanes below 16) and row
// 2r+1, column l%16.
//
// The products of a sum are exact here and rounded once; the guide does not say how the hardware rounds.
func (l *line) wmma(kind wmmaKind) (inst, error) {
	in := inst{class: WMMA}
	err := l.registers(&in, 3, b32)
	if err != nil {
		return in, err
	}
	if in.dst.width != 8 || in.src[0].kind != vgpr || in.src[1].kind != vgpr || in.src[0].width != kind.a || in.src[1].width != kind.a ||
		in.src[2].kind == vgpr && in.src[2].width != 8 || in.src[2].kind == sgpr {
		return in, fmt.Errorf("operands of another size than the matrix product has")
	}
	overlap := func(o *operand) bool {
		return o.reg < in.dst.reg+in.dst.width && in.dst.reg < o.reg+o.width
	}
	if overlap(&in.src[0]) || overlap(&in.src[1]) {
		return in, fmt.Errorf("the result lies over A or B")
	}
	neg, negHi := append(list(l.mods["neg_lo"]), false, false, false), append(list(l.mods["neg_hi"]), false, false, false)
	sel := append(list(l.mods["op_sel"]), false, false, false)[2]
	_, clamp := l.mods["clamp"]
	if kind.floatC && (neg[0] || neg[1] || negHi[0] || negHi[1] || neg[2] || negHi[2] || clamp) {
		return in, fmt.Errorf("a modifier of a matrix product that this does not compute")
	}
	in.run = func(w *wave, in *inst) {
		if w.exec() != all {
			w.fail("a matrix product with lanes off: EXEC is %#x", w.exec())
		}
		var a, b [16][16]float64
		w.matrix(&in.src[0], kind, neg[0], &a)
		w.matrix(&in.src[1], kind, neg[1], &b)
		var d [8]vec
		for r := range d {
			for l := range lanes {
				m, n := 2*r+l/16, l%16
				var sum float64
				for k := range 16 {
					sum += a[m][k] * b[n][k]
				}
				c := uint32(in.src[2].raw)
				if in.src[2].kind == vgpr {
					c = w.v[in.src[2].reg+r][l]
				}
				switch {
				case kind.halfC:
					shift := 0
					if sel {
						shift = 16
					}
					x := halfFrom64(sum + float64(half(c>>shift)))
					d[r][l] = w.v[in.dst.reg+r][l]&^(0xffff<<shift) | x<<shift
				case kind.floatC:
					d[r][l] = u32(float32(sum + float64(f32(c))))
				default:
					x := int64(sum) + int64(int32(c))
					if clamp {
						x = max(min(x, math.MaxInt32), math.MinInt32)
					}
					d[r][l] = uint32(x)
				}
			}
		}
		for r := range d {
			w.v[in.dst.reg+r] = d[r]
		}
	}
	return in, nil
}

// matrix reads A's rows, or B's columns.
func (w *wave) matrix(o *operand, kind wmmaKind, signed bool, m *[16][16]float64) {
	for l := range 16 {
		var regs [8]uint32
		for i := range kind.a {
			regs[i] = w.v[o.reg+i][l]
			if other := w.v[o.reg+i][l+16]; other != regs[i] {
				w.fail("a matrix product whose lanes %d and %d hold different rows: %#x and %#x in v%d", l, l+16, regs[i], other, o.reg+i)
			}
		}
		for k := range m[l] {
			m[l][k] = kind.element(&regs, k, signed)
		}
	}
}
