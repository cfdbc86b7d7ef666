package rdna3

import (
	"fmt"
	"slices"
	"strings"

	"dot4fa/internal/rdna3/code"
)

// inst is one instruction, decoded once.
type inst struct {
	run     func(w *wave, in *inst)
	fn      func(d, a, b, c *vec)
	wide    func(a, b, c uint64) uint64
	cmp     func(a, b uint32) bool
	src     [3]operand
	dst     operand
	sdst    int // scalar register of a carry or a mask
	clamp   bool
	omod    uint8 // 1: times 2, 2: times 4, 3: half
	flush   bool  // subnormal results become zeros
	dpp     bool  // DPP may hold lanes back
	target  int   // of a branch, an index
	mem     *access
	pair    *[2]inst // of a dual instruction
	swapped bool     // of a dual instruction: the second half goes first
	class   Class
}

// decoder turns lines into instructions.
type decoder struct {
	kernel *code.Kernel
	flush  bool // f32 subnormals are flushed
	approx uint32
	index  map[int]int
	limit  int // VGPRs that the kernel may use
}

// line is a text instruction taken apart.
type line struct {
	op   string // without encoding suffix
	args []string
	mods map[string]string
	d    *decoder
}

var suffixes = []string{"_dpp", "_e64", "_e32"}

func (d *decoder) split(op, args string) *line {
	for _, s := range suffixes {
		op = strings.TrimSuffix(op, s)
	}
	for _, s := range suffixes { // _e64_dpp
		op = strings.TrimSuffix(op, s)
	}
	l := &line{op: op, d: d}
	l.args, l.mods = splitArgs(args)
	return l
}

// decode decodes the instruction that stands at addr.
func (d *decoder) decode(text code.Line) (inst, error) {
	if strings.HasPrefix(text.Op, "v_dual_") {
		return d.dual(text)
	}
	l := d.split(text.Op, text.Args)
	if strings.HasPrefix(l.op, "s_") {
		return l.salu(text)
	}
	if strings.HasPrefix(l.op, "v_") {
		return l.valu()
	}
	return l.memory()
}

func (l *line) unknown() error { return fmt.Errorf("an instruction this does not know") }

func (l *line) want(n int) error {
	if len(l.args) != n {
		return fmt.Errorf("%d operands, not %d", len(l.args), n)
	}
	return nil
}

// source parses argument i as an operand of type t that is read.
func (l *line) source(i int, t typ) (operand, error) {
	o, err := parseOperand(l.args[i], t)
	if err != nil {
		return o, err
	}
	if o.kind == vgpr && o.reg+o.width > l.d.limit {
		return o, fmt.Errorf("%s is past the %d vector registers of the kernel", l.args[i], l.d.limit)
	}
	if t == tf32 || t == mixed {
		o.flush = l.d.flush
	}
	o.prepare = o.neg || o.abs || o.half || o.flush || (t == b16 || t == tf16) && o.kind != constant
	return o, nil
}

// dest parses argument 0 as a vector register that is written.
func (l *line) dest(t typ) (operand, error) {
	o, err := l.source(0, t)
	if err == nil && o.kind != vgpr {
		err = fmt.Errorf("%s is not a vector register", l.args[0])
	}
	return o, err
}

// registers reads a vector destination and n sources of one type, which are all the operands.
func (l *line) registers(in *inst, n int, t typ) (err error) {
	if err = l.want(n + 1); err != nil {
		return err
	}
	if in.dst, err = l.dest(t); err != nil {
		return err
	}
	return l.sources(in, n, t)
}

// sources reads the n operands after the first.
func (l *line) sources(in *inst, n int, t typ) (err error) {
	for i := range n {
		if in.src[i], err = l.source(i+1, t); err != nil {
			return err
		}
	}
	return nil
}

// mask parses argument i as a scalar register that holds a bit for each lane.
func (l *line) mask(i int) (int, error) {
	o, err := parseOperand(l.args[i], b32)
	if err != nil {
		return 0, err
	}
	if o.kind != sgpr || o.width != 1 {
		return 0, fmt.Errorf("%s is not a 32-bit scalar register", l.args[i])
	}
	return o.reg, nil
}

// modifiers that are known, by what they are for; others are refused.
var known = []string{"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "mul", "div",
	"quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_share", "row_xmask", "row_mask", "bank_mask", "bound_ctrl", "fi", "dpp8",
	"offset", "offset0", "offset1", "glc", "slc", "dlc", "gds", "off"}

func (l *line) checkMods() error {
	for m := range l.mods {
		if !slices.Contains(known, m) {
			return fmt.Errorf("a modifier this does not know: %s", m)
		}
	}
	return nil
}

// output reads the modifiers of the result.
func (l *line) output(in *inst, t typ) error {
	_, in.clamp = l.mods["clamp"]
	switch l.mods["mul"] {
	case "2":
		in.omod = 1
	case "4":
		in.omod = 2
	}
	if l.mods["div"] == "2" {
		in.omod = 3
	}
	if in.omod != 0 && t != tf32 {
		return fmt.Errorf("an output multiplier on a result that is not f32")
	}
	in.flush = l.d.flush && t == tf32
	return nil
}

// selections applies op_sel and its kin, and DPP, to the sources.
func (l *line) selections(in *inst, n int) error {
	sel, selHi, negLo, negHi := list(l.mods["op_sel"]), list(l.mods["op_sel_hi"]), list(l.mods["neg_lo"]), list(l.mods["neg_hi"])
	at := func(bits []bool, i int, otherwise bool) bool {
		if i < len(bits) {
			return bits[i]
		}
		return otherwise
	}
	for i := range n {
		o := &in.src[i]
		switch o.typ {
		case b16, tf16:
			if at(sel, i, false) {
				o.half, o.prepare = true, true
			}
		case pk16, pkf16:
			o.selLo, o.selHi = at(sel, i, false), at(selHi, i, true)
			if o.typ == pkf16 {
				o.neg, o.negHi = o.neg != at(negLo, i, false), o.negHi != at(negHi, i, false)
			}
			o.prepare = o.selLo || !o.selHi || o.neg || o.negHi
		case mixed:
			o.selLo, o.selHi = at(sel, i, false), at(selHi, i, false)
			o.prepare = o.prepare || o.selHi
		case tf32:
			if at(negLo, i, false) {
				o.neg, o.prepare = !o.neg, true
			}
		}
	}
	if (in.dst.typ == b16 || in.dst.typ == tf16) && at(sel, n, false) {
		in.dst.half = true
	}
	sel0, err := l.dppOf()
	if err != nil || sel0 == nil {
		return err
	}
	if in.src[0].kind != vgpr {
		return fmt.Errorf("DPP on an operand that is not a vector register")
	}
	in.src[0].kind, in.src[0].dpp, in.src[0].prepare, in.dpp = permuted, sel0, true, true
	return nil
}

// dual decodes a pair of operations that read before either writes.
func (d *decoder) dual(text code.Line) (inst, error) {
	x, y, ok := strings.Cut(text.Op+" "+text.Args, " :: ")
	if !ok {
		return inst{}, fmt.Errorf("a dual instruction with one half")
	}
	in := inst{run: runDual, pair: new([2]inst), class: VALU}
	for i, half := range []string{x, y} {
		op, args, _ := strings.Cut(strings.TrimSpace(half), " ")
		base, ok := strings.CutPrefix(op, "v_dual_")
		if !ok {
			return inst{}, fmt.Errorf("%s is not half of a dual instruction", op)
		}
		l := d.split("v_"+base, args)
		one, err := l.valu()
		if err != nil {
			return inst{}, err
		}
		in.pair[i] = one
	}
	reads := func(in *inst, reg int) bool {
		return slices.ContainsFunc(in.src[:], func(o operand) bool { return o.kind == vgpr && o.reg == reg })
	}
	a, b := &in.pair[0], &in.pair[1]
	if a.dst.reg == b.dst.reg {
		return inst{}, fmt.Errorf("both halves write v%d", a.dst.reg)
	}
	switch {
	case !reads(b, a.dst.reg):
	case !reads(a, b.dst.reg):
		in.swapped = true
	default:
		in.run = runCrossed
	}
	return in, nil
}

func runDual(w *wave, in *inst) {
	first, second := &in.pair[0], &in.pair[1]
	if in.swapped {
		first, second = second, first
	}
	first.run(w, first)
	second.run(w, second)
}

// runCrossed is for halves that read what the other writes.
func runCrossed(w *wave, in *inst) {
	a, b := &in.pair[0], &in.pair[1]
	old := w.v[a.dst.reg]
	a.run(w, a)
	result := w.v[a.dst.reg]
	w.v[a.dst.reg] = old
	b.run(w, b)
	w.v[a.dst.reg] = result
}
