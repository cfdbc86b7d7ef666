package rdna3

import (
	"fmt"
	"math/bits"
)

// specials are the vector instructions with operands of their own.
var specials map[string]func(l *line) (inst, error)

func init() { // the functions refer to the table through the decoder
	specials = map[string]func(l *line) (inst, error){
		"v_nop":         func(l *line) (inst, error) { return inst{run: runNothing, class: VALU}, nil },
		"v_cndmask_b32": func(l *line) (inst, error) { return l.choose(b32) },
		"v_cndmask_b16": func(l *line) (inst, error) { return l.choose(b16) },
		"v_add_co_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(a) + uint64(b) }, false)
		},
		"v_sub_co_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(a) - uint64(b) }, false)
		},
		"v_subrev_co_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(b) - uint64(a) }, false)
		},
		"v_add_co_ci_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(a) + uint64(b) + uint64(c) }, true)
		},
		"v_sub_co_ci_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(a) - uint64(b) - uint64(c) }, true)
		},
		"v_subrev_co_ci_u32": func(l *line) (inst, error) {
			return l.carry(func(a, b, c uint32) uint64 { return uint64(b) - uint64(a) - uint64(c) }, true)
		},
		"v_div_scale_f32":     (*line).divScale,
		"v_div_fmas_f32":      (*line).divFmas,
		"v_readfirstlane_b32": (*line).readFirst,
		"v_readlane_b32":      (*line).readLane,
		"v_writelane_b32":     (*line).writeLane,
		"v_permlane16_b32":    (*line).permlane,
		"v_permlanex16_b32":   (*line).permlane,
		"v_permlane64_b32":    func(l *line) (inst, error) { return inst{run: runNothing, class: VALU}, nil }, // a wave of 32 has one half
		"v_swap_b32":          (*line).swap,
		"v_dot4_i32_iu8":      func(l *line) (inst, error) { return l.dotInt(8) },
		"v_dot8_i32_iu4":      func(l *line) (inst, error) { return l.dotInt(4) },
		"v_dot4_u32_u8":       func(l *line) (inst, error) { return l.dotInt(8) },
		"v_fma_mixhi_f16": func(l *line) (inst, error) {
			in, err := l.lanewise(vops[l.op])
			in.dst.half = true
			return in, err
		},
		"v_wmma_f32_16x16x16_f16":  func(l *line) (inst, error) { return l.wmma(wmmaF32F16) },
		"v_wmma_f16_16x16x16_f16":  func(l *line) (inst, error) { return l.wmma(wmmaF16F16) },
		"v_wmma_f32_16x16x16_bf16": func(l *line) (inst, error) { return l.wmma(wmmaF32BF16) },
		"v_wmma_i32_16x16x16_iu8":  func(l *line) (inst, error) { return l.wmma(wmmaI32IU8) },
		"v_wmma_i32_16x16x16_iu4":  func(l *line) (inst, error) { return l.wmma(wmmaI32IU4) },
	}
}

func runNothing(*wave, *inst) {}

// choose decodes v_cndmask: the second source where the mask has a bit.
func (l *line) choose(t typ) (inst, error) {
	in := inst{run: runChoose, class: VALU}
	if len(l.args) == 3 {
		l.args = append(l.args, "vcc_lo")
	}
	err := l.want(4)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(t); err != nil {
		return in, err
	}
	if err = l.sources(&in, 2, t); err != nil {
		return in, err
	}
	if in.src[2], err = l.source(3, b32); err != nil {
		return in, err
	}
	if in.src[2].kind != sgpr {
		return in, fmt.Errorf("%s is not a scalar register", l.args[3])
	}
	return in, l.selections(&in, 2)
}

func runChoose(w *wave, in *inst) {
	a, b, m := w.vector(in, 0), w.vector(in, 1), w.s[in.src[2].reg]
	if w.s[execLo] == all && in.dst.typ == b32 && !in.dpp {
		d := &w.v[in.dst.reg]
		for l := range d {
			d[l] = a[l] ^ (a[l]^b[l])&-(m>>l&1)
		}
		return
	}
	for l := range w.out {
		w.out[l] = a[l] ^ (a[l]^b[l])&-(m>>l&1)
	}
	w.put(in)
}

// carry decodes additions and subtractions that write, and perhaps read, a carry for each lane.
func (l *line) carry(f func(a, b, c uint32) uint64, reads bool) (inst, error) {
	in := inst{class: VALU}
	n := 4
	if reads {
		n = 5
	}
	err := l.want(n)
	if err != nil {
		return in, err
	}
	if in.dst, err = l.dest(b32); err != nil {
		return in, err
	}
	if in.sdst, err = l.mask(1); err != nil {
		return in, err
	}
	for i := range 2 {
		if in.src[i], err = l.source(i+2, b32); err != nil {
			return in, err
		}
	}
	from := null
	if reads {
		if from, err = l.mask(4); err != nil {
			return in, err
		}
	}
	in.run = func(w *wave, in *inst) {
		a, b, exec := w.vector(in, 0), w.vector(in, 1), w.exec()
		var carry uint32
		if reads {
			carry = w.s[from]
		}
		var out uint32
		for l := range w.out {
			r := f(a[l], b[l], carry>>l&1)
			w.out[l] = uint32(r)
			out |= uint32(r>>32&1) << l
		}
		w.merge(in.dst.reg, exec)
		w.write(in.sdst, out&exec)
	}
	return in, nil
}

func (l *line) readFirst() (inst, error) {
	in := inst{class: VALU}
	err := l.want(2)
	if err != nil {
		return in, err
	}
	if in.sdst, err = l.mask(0); err != nil {
		return in, err
	}
	if in.src[0], err = l.source(1, b32); err != nil {
		return in, err
	}
	in.run = func(w *wave, in *inst) {
		lane := bits.TrailingZeros32(w.exec()) & 31 // lane 0 where none runs
		w.write(in.sdst, w.vector(in, 0)[lane])
	}
	return in, nil
}

func (l *line) readLane() (inst, error) {
	in := inst{class: VALU}
	err := l.want(3)
	if err != nil {
		return in, err
	}
	if in.sdst, err = l.mask(0); err != nil {
		return in, err
	}
	if err = l.sources(&in, 2, b32); err != nil {
		return in, err
	}
	in.run = func(w *wave, in *inst) { w.write(in.sdst, w.vector(in, 0)[w.read(&in.src[1])&31]) }
	return in, nil
}

func (l *line) writeLane() (inst, error) {
	in := inst{class: VALU}
	err := l.registers(&in, 2, b32)
	if err != nil {
		return in, err
	}
	in.run = func(w *wave, in *inst) { w.v[in.dst.reg][w.read(&in.src[1])&31] = w.read(&in.src[0]) }
	return in, nil
}

// permlane decodes v_permlane16 and v_permlanex16: each lane reads a lane of its row of 16, or
// of the other row; two scalars hold four bits of choice for each lane of a row.
func (l *line) permlane() (inst, error) {
	in := inst{class: VALU}
	err := l.registers(&in, 3, b32)
	if err != nil {
		return in, err
	}
	cross := 0
	if l.op == "v_permlanex16_b32" {
		cross = 16
	}
	sel := append(list(l.mods["op_sel"]), false, false)
	inactive, bound := sel[0], sel[1] // fetch from lanes that do not run; read 0 from them
	in.run = func(w *wave, in *inst) {
		a, exec := w.v[in.src[0].reg], w.exec()
		choice := uint64(w.read(&in.src[1])) | uint64(w.read(&in.src[2]))<<32
		write := exec
		for l := range w.out {
			from := l&16 ^ cross | int(choice>>(l&15*4)&15)
			switch {
			case inactive || exec>>from&1 != 0:
				w.out[l] = a[from]
			case bound:
				w.out[l] = 0
			default:
				write &^= 1 << l
			}
		}
		w.merge(in.dst.reg, write)
	}
	if in.src[0].kind != vgpr {
		return in, fmt.Errorf("%s is not a vector register", l.args[1])
	}
	return in, nil
}

func (l *line) swap() (inst, error) {
	in := inst{class: VALU}
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
	in.run = func(w *wave, in *inst) {
		d, s := &w.v[in.dst.reg], &w.v[in.src[0].reg]
		for m := w.exec(); m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			d[l], s[l] = s[l], d[l]
		}
	}
	return in, nil
}
