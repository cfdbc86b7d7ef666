package rdna3

import (
	"fmt"
	"math/bits"
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

var sops = scalarTable()

func scalarTable() map[string]sop {
	t := map[string]sop{
		"s_mov_b32":  {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return a })},
		"s_mov_b64":  {dst: 2, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) { return a, keep }},
		"s_movk_i32": {dst: 1, src: 1, n: 1, short: true, fn: plain(func(a, _ uint32) uint32 { return a })},
		"s_cmov_b32": {dst: 1, src: 1, n: 2, acc: true, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return b, keep
			}
			return a, keep
		}},
		"s_add_u32":  {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return a + b, uint32((a + b) >> 32) }},
		"s_addc_u32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) { r := a + b + uint64(w.scc); return r, uint32(r >> 32) }},
		"s_sub_u32":  {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return a - b, flag(b > a) }},
		"s_subb_u32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			return a - b - uint64(w.scc), flag(b+uint64(w.scc) > a)
		}},
		"s_add_i32":    {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return addI(a, b) }},
		"s_sub_i32":    {dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return subI(a, b) }},
		"s_addk_i32":   {dst: 1, src: 1, n: 2, short: true, acc: true, fn: func(_ *wave, a, b uint64) (uint64, uint32) { return addI(a, b) }},
		"s_mulk_i32":   {dst: 1, src: 1, n: 2, short: true, acc: true, fn: plain(func(a, b uint32) uint32 { return a * b })},
		"s_mul_i32":    {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a * b })},
		"s_mul_hi_u32": {dst: 1, src: 1, n: 2, fn: plain(mulHiU)},
		"s_mul_hi_i32": {dst: 1, src: 1, n: 2, fn: plain(mulHiI)},
		"s_abs_i32": {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 {
			if int32(a) < 0 {
				return -a
			}
			return a
		})},
		"s_absdiff_i32": {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 {
			if int32(a-b) < 0 {
				return b - a
			}
			return a - b
		})},
		"s_bfm_b32":         {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return (1<<(a&31) - 1) << (b & 31) })},
		"s_bfe_u32":         {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return scalarField(a, b, false) })},
		"s_bfe_i32":         {dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return scalarField(a, b, true) })},
		"s_brev_b32":        {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return bits.Reverse32(a) })},
		"s_ctz_i32_b32":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countTrailing(a) })},
		"s_clz_i32_u32":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countLeading(a) })},
		"s_cls_i32":         {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return countSign(a) })},
		"s_bcnt1_i32_b32":   {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) })},
		"s_bcnt0_i32_b32":   {dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return uint32(bits.OnesCount32(^a)) })},
		"s_sext_i32_i8":     {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return uint32(int32(int8(a))) })},
		"s_sext_i32_i16":    {dst: 1, src: 1, n: 1, fn: plain(func(a, _ uint32) uint32 { return uint32(int32(int16(a))) })},
		"s_bitset0_b32":     {dst: 1, src: 1, n: 2, acc: true, fn: plain(func(a, b uint32) uint32 { return a &^ (1 << (b & 31)) })},
		"s_bitset1_b32":     {dst: 1, src: 1, n: 2, acc: true, fn: plain(func(a, b uint32) uint32 { return a | 1<<(b&31) })},
		"s_pack_ll_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a&0xffff | b<<16 })},
		"s_pack_lh_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a&0xffff | b&0xffff0000 })},
		"s_pack_hh_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a>>16 | b&0xffff0000 })},
		"s_pack_hl_b32_b16": {dst: 1, src: 1, n: 2, fn: plain(func(a, b uint32) uint32 { return a>>16 | b<<16 })},
		"s_cselect_b32": {dst: 1, src: 1, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return a, keep
			}
			return b, keep
		}},
		"s_cselect_b64": {dst: 2, src: 2, n: 2, fn: func(w *wave, a, b uint64) (uint64, uint32) {
			if w.scc != 0 {
				return a, keep
			}
			return b, keep
		}},
		"s_bitcmp0_b32":           {src: 1, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&31)&1 == 0 })},
		"s_bitcmp1_b32":           {src: 1, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&31)&1 != 0 })},
		"s_cmp_eq_u64":            {src: 2, n: 2, fn: test(func(a, b uint64) bool { return a == b })},
		"s_cmp_lg_u64":            {src: 2, n: 2, fn: test(func(a, b uint64) bool { return a != b })},
		"s_and_not0_saveexec_b32": {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return ^s & e })},
		"s_and_not1_saveexec_b32": {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return s &^ e })},
		"s_or_not0_saveexec_b32":  {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return ^s | e })},
		"s_or_not1_saveexec_b32":  {dst: 1, src: 1, n: 1, fn: saveexec(func(s, e uint32) uint32 { return s | ^e })},
		"s_and_not1_wrexec_b32": {dst: 1, src: 1, n: 1, fn: func(w *wave, a, _ uint64) (uint64, uint32) {
			w.s[execLo] = uint32(a) &^ w.s[execLo]
			return uint64(w.s[execLo]), flag(w.s[execLo] != 0)
		}},
		"s_and_not0_wrexec_b32": {dst: 1, src: 1, n: 1, fn: func(w *wave, a, _ uint64) (uint64, uint32) {
			w.s[execLo] = ^uint32(a) & w.s[execLo]
			return uint64(w.s[execLo]), flag(w.s[execLo] != 0)
		}},
	}
	for name, f := range map[string]func(a, b uint64) uint64{
		"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b }, "xor": func(a, b uint64) uint64 { return a ^ b },
		"and_not1": func(a, b uint64) uint64 { return a &^ b }, "or_not1": func(a, b uint64) uint64 { return a | ^b },
		"nand": func(a, b uint64) uint64 { return ^(a & b) }, "nor": func(a, b uint64) uint64 { return ^(a | b) }, "xnor": func(a, b uint64) uint64 { return ^(a ^ b) },
	} {
		short := func(a, b uint32) uint32 { return uint32(f(uint64(a), uint64(b))) }
		t["s_"+name+"_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(short)}
		t["s_"+name+"_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(f)}
		if !strings.Contains(name, "not") {
			t["s_"+name+"_saveexec_b32"] = sop{dst: 1, src: 1, n: 1, fn: saveexec(short)}
		}
	}
	t["s_not_b32"] = sop{dst: 1, src: 1, n: 1, fn: logic(func(a, _ uint32) uint32 { return ^a })}
	t["s_not_b64"] = sop{dst: 2, src: 2, n: 1, fn: logic64(func(a, _ uint64) uint64 { return ^a })}
	t["s_lshl_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return a << (b & 31) })}
	t["s_lshr_b32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return a >> (b & 31) })}
	t["s_ashr_i32"] = sop{dst: 1, src: 1, n: 2, fn: logic(func(a, b uint32) uint32 { return uint32(int32(a) >> (b & 31)) })}
	t["s_lshl_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return a << (b & 63) })}
	t["s_lshr_b64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return a >> (b & 63) })}
	t["s_ashr_i64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return uint64(int64(a) >> (b & 63)) })}
	t["s_bfe_u64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return scalarField64(a, uint32(b), false) })}
	t["s_bfe_i64"] = sop{dst: 2, src: 2, n: 2, fn: logic64(func(a, b uint64) uint64 { return scalarField64(a, uint32(b), true) })}
	t["s_bitcmp0_b64"] = sop{src: 2, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&63)&1 == 0 })}
	t["s_bitcmp1_b64"] = sop{src: 2, n: 2, fn: test(func(a, b uint64) bool { return a>>(b&63)&1 != 0 })}
	t["s_brev_b64"] = sop{dst: 2, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) { return bits.Reverse64(a), keep }}
	t["s_bcnt1_i32_b64"] = sop{dst: 1, src: 2, n: 1, fn: logic64(func(a, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) })}
	t["s_ctz_i32_b64"] = sop{dst: 1, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) {
		if a == 0 {
			return all, keep
		}
		return uint64(bits.TrailingZeros64(a)), keep
	}}
	t["s_clz_i32_u64"] = sop{dst: 1, src: 2, n: 1, fn: func(_ *wave, a, _ uint64) (uint64, uint32) {
		if a == 0 {
			return all, keep
		}
		return uint64(bits.LeadingZeros64(a)), keep
	}}
	for n := range 4 {
		by := n + 1
		t[fmt.Sprintf("s_lshl%d_add_u32", by)] = sop{dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) {
			r := a<<by + b
			return r, flag(r>>32 != 0)
		}}
	}
	for name, f := range map[string]func(a, b uint32) bool{"min_i32": orderI["lt"], "max_i32": orderI["gt"], "min_u32": orderU["lt"], "max_u32": orderU["gt"]} {
		t["s_"+name] = sop{dst: 1, src: 1, n: 2, fn: func(_ *wave, a, b uint64) (uint64, uint32) {
			if f(uint32(a), uint32(b)) {
				return a, 1
			}
			return b, 0
		}}
	}
	for _, p := range []string{"eq", "lg", "gt", "ge", "lt", "le"} {
		name := p
		if p == "lg" {
			name = "ne"
		}
		i, u := orderI[name], orderU[name]
		compare := func(f func(a, b uint32) bool) func(w *wave, a, b uint64) (uint64, uint32) {
			return test(func(a, b uint64) bool { return f(uint32(a), uint32(b)) })
		}
		t["s_cmp_"+p+"_i32"], t["s_cmp_"+p+"_u32"] = sop{src: 1, n: 2, fn: compare(i)}, sop{src: 1, n: 2, fn: compare(u)}
		t["s_cmpk_"+p+"_i32"], t["s_cmpk_"+p+"_u32"] = sop{src: 1, n: 2, short: true, fn: compare(i)}, sop{src: 1, n: 2, short: true, fn: compare(u)}
	}
	return t
}

// scalarField extracts bits: offset in bits 0 to 4 of how, width in bits 16 to 22.
func scalarField(a, how uint32, signExtend bool) uint32 {
	offset, width := how&31, how>>16&127
	switch {
	case width == 0:
		return 0
	case width >= 32-offset:
		width = 32 - offset
	}
	if signExtend {
		return uint32(signed(a>>offset, int(width)))
	}
	return a >> offset & (1<<width - 1)
}

// scalarField64 does the same in 64 bits; the offset has a bit more.
func scalarField64(a uint64, how uint32, signExtend bool) uint64 {
	offset, width := how&63, how>>16&127
	switch {
	case width == 0:
		return 0
	case width >= 64-offset:
		width = 64 - offset
	}
	if signExtend {
		return uint64(int64(a<<(64-offset-width)) >> (64 - width))
	}
	return a >> offset & (1<<width - 1)
}
