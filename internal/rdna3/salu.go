package rdna3

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/rdna3/code"
)

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// salu decodes a scalar instruction.
func (l *line) salu(text code.Line) (inst, error) {
	in := inst{class: classOf(l.op)}
	if _, ok := nothings[l.op]; ok {
		in.run = runNothing
		return in, nil
	}
	switch l.op {
	case "s_barrier":
		in.run = func(w *wave, in *inst) { w.state = waiting }
		return in, nil
	case "s_endpgm":
		in.run = func(w *wave, in *inst) { w.state = ended }
		return in, nil
	case "s_trap":
		in.run = func(w *wave, in *inst) { w.fail("a trap: the kernel has no code for this instance") }
		return in, nil
	case "s_waitcnt", "s_waitcnt_vmcnt", "s_waitcnt_lgkmcnt":
		return l.wait(text.Words)
	case "s_denorm_mode", "s_round_mode":
		return l.mode()
	}
	if strings.HasPrefix(l.op, "s_load_") {
		return l.scalarLoad()
	}
	if taken, ok := branches[l.op]; ok {
		offset := int(int16(text.Words[0])) // in words, from the next instruction
		target, ok := l.d.index[text.Addr+4+4*offset]
		if !ok {
			return in, fmt.Errorf("a branch to %#x, where no instruction begins", text.Addr+4+4*offset)
		}
		in.target = target
		in.run = func(w *wave, in *inst) {
			if taken(w) {
				w.pc = in.target
			}
		}
		return in, nil
	}
	op, ok := sops[l.op]
	if !ok {
		return in, l.unknown()
	}
	return l.scalarOp(op)
}

// mode accepts instructions that leave the mode as it is.
func (l *line) mode() (inst, error) {
	n, err := strconv.ParseUint(l.args[0], 0, 32)
	if err != nil {
		return inst{}, l.unknown()
	}
	d := l.d.kernel.Descriptor
	now := uint64(d.RoundMode32 | d.RoundMode64<<2)
	if l.op == "s_denorm_mode" {
		now = uint64(d.DenormMode32 | d.DenormMode64<<2)
	}
	if n != now {
		return inst{}, fmt.Errorf("a change of the float mode, which this does not model")
	}
	return inst{run: runNothing, class: SALU}, nil
}

// Instructions that change nothing that is modelled.
var nothings = map[string]struct{}{
	"s_nop": {}, "s_waitcnt_vscnt": {}, "s_waitcnt_expcnt": {}, "s_waitcnt_depctr": {},
	"s_delay_alu": {}, "s_clause": {}, "s_sleep": {}, "s_setprio": {}, "s_set_inst_prefetch_distance": {}, "s_sendmsg": {}, "s_wait_idle": {},
	"s_inst_prefetch": {}, "s_icache_inv": {}, "s_gl1_inv": {}, "s_dcache_inv": {}, "s_wait_event": {}, "s_version": {}, "s_incperflevel": {}, "s_decperflevel": {},
}

var branches = map[string]func(w *wave) bool{
	"s_branch":         func(*wave) bool { return true },
	"s_cbranch_scc0":   func(w *wave) bool { return w.scc == 0 },
	"s_cbranch_scc1":   func(w *wave) bool { return w.scc != 0 },
	"s_cbranch_vccz":   func(w *wave) bool { return w.s[vccLo] == 0 },
	"s_cbranch_vccnz":  func(w *wave) bool { return w.s[vccLo] != 0 },
	"s_cbranch_execz":  func(w *wave) bool { return w.s[execLo] == 0 },
	"s_cbranch_execnz": func(w *wave) bool { return w.s[execLo] != 0 },
}

// sop is a scalar operation: its result, when it has one, and what becomes of SCC.
type sop struct {
	dst, src int  // registers of the result and of each source; dst 0: none
	n        int  // sources
	short    bool // the last source is a 16-bit immediate that is extended with its sign; of s_cmpk_…_u32, with zeros
	acc      bool // the destination is the first source
	fn       func(w *wave, a, b uint64) (r uint64, scc uint32)
}

const keep = 2 // SCC stays as it is

// narrow are the 64-bit operations whose second source has 32 bits: an amount.
var narrow = regexp.MustCompile(`^s_(lsh|ash|bfe|bitcmp)`)

func (l *line) scalarOp(op sop) (inst, error) {
	in := inst{class: SALU, sdst: null}
	first := 0
	if op.dst > 0 {
		first = 1
	}
	given := op.n
	if op.acc {
		given--
	}
	if err := l.want(first + given); err != nil {
		return in, err
	}
	if op.dst > 0 {
		d, err := parseOperand(l.args[0], b32)
		if err != nil {
			return in, err
		}
		if d.kind != sgpr || d.width != op.dst && d.reg != null {
			return in, fmt.Errorf("%s is not %d scalar registers", l.args[0], op.dst)
		}
		in.sdst = d.reg
	}
	for i := range op.n {
		at := first + i
		if op.acc {
			at--
		}
		t := b32
		if op.src == 2 && !(i == 1 && narrow.MatchString(l.op)) {
			t = b64
		}
		o, err := parseOperand(l.args[at], t)
		if err != nil {
			return in, err
		}
		if o.kind == vgpr {
			return in, fmt.Errorf("%s is not a scalar operand", l.args[at])
		}
		if op.short && i == op.n-1 {
			o.raw = uint64(uint32(int32(int16(o.raw))))
			if strings.HasSuffix(l.op, "_u32") {
				o.raw &= 0xffff
			}
		}
		in.src[i] = o
	}
	fn, wide, result := op.fn, op.src == 2, op.dst
	in.run = func(w *wave, in *inst) {
		var a, b uint64
		if wide {
			a = w.read64(&in.src[0])
			if in.src[1].typ == b64 {
				b = w.read64(&in.src[1])
			} else {
				b = uint64(w.read(&in.src[1]))
			}
		} else {
			a, b = uint64(w.read(&in.src[0])), uint64(w.read(&in.src[1]))
		}
		r, scc := fn(w, a, b)
		switch result {
		case 1:
			w.write(in.sdst, uint32(r))
		case 2:
			w.write64(in.sdst, r)
		}
		if scc != keep {
			w.scc = scc
		}
	}
	if op.n == 1 { // no second source to read
		in.src[1] = operand{kind: constant}
	}
	return in, nil
}

// logic is an operation whose SCC says whether the result is not 0.
func logic(f func(a, b uint32) uint32) func(w *wave, a, b uint64) (uint64, uint32) {
	return func(w *wave, a, b uint64) (uint64, uint32) {
		r := f(uint32(a), uint32(b))
		return uint64(r), flag(r != 0)
	}
}

func logic64(f func(a, b uint64) uint64) func(w *wave, a, b uint64) (uint64, uint32) {
	return func(w *wave, a, b uint64) (uint64, uint32) {
		r := f(a, b)
		return r, flag(r != 0)
	}
}

// plain is an operation that leaves SCC.
func plain(f func(a, b uint32) uint32) func(w *wave, a, b uint64) (uint64, uint32) {
	return func(w *wave, a, b uint64) (uint64, uint32) { return uint64(f(uint32(a), uint32(b))), keep }
}

func test(f func(a, b uint64) bool) func(w *wave, a, b uint64) (uint64, uint32) {
	return func(w *wave, a, b uint64) (uint64, uint32) { return 0, flag(f(a, b)) }
}

// saveexec keeps EXEC in the result and puts f(source, EXEC) there.
func saveexec(f func(s, exec uint32) uint32) func(w *wave, a, b uint64) (uint64, uint32) {
	return func(w *wave, a, b uint64) (uint64, uint32) {
		old := w.s[execLo]
		w.s[execLo] = f(uint32(a), old)
		return uint64(old), flag(w.s[execLo] != 0)
	}
}

func addI(a, b uint64) (uint64, uint32) {
	r := uint32(a) + uint32(b)
	return uint64(r), flag((uint32(a)^r)&(uint32(b)^r)&sign32 != 0)
}

func subI(a, b uint64) (uint64, uint32) {
	r := uint32(a) - uint32(b)
	return uint64(r), flag((uint32(a)^uint32(b))&(uint32(a)^r)&sign32 != 0)
}
