package rdna3

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Scalar registers by number.
const (
	vccLo  = 106
	null   = 124
	m0     = 125
	execLo = 126
)

// What an operand is.
type kind uint8

const (
	absent kind = iota
	vgpr
	sgpr
	constant
	vccZero  // 1 when VCC is 0
	execZero // 1 when EXEC is 0
	sccBit
	permuted // a VGPR through DPP
)

// How an operand is read: the type decides what a constant means and what its modifiers do.
type typ uint8

const (
	b32 typ = iota // bits, also integers
	tf32
	b16 // 16 bits in the lower half; the upper half is 0
	tf16
	pk16  // two halves, integers: op_sel picks the half each comes from
	pkf16 // two halves, f16
	b64
	tf64
	mixed // f32, or with op_sel_hi an f16 that becomes f32
)

// operand is one source or destination, decoded.
type operand struct {
	kind     kind
	typ      typ
	reg      int
	width    int     // registers
	half     bool    // the upper half of a register, as "v1.h" or op_sel says
	neg, abs bool    // of the value, or of the lower half
	selLo    bool    // pk16: the lower result comes from the upper half
	selHi    bool    // pk16: the upper result comes from the upper half
	negHi    bool    // pk16: negate what the upper result comes from
	raw      uint64  // constant, as wide as typ
	lanes    *vec    // constant, its low word in every lane
	dpp      *dppSel // permuted
	prepare  bool    // reading takes more than a look at the register
	flush    bool    // subnormal inputs count as zero
}

func (o *operand) isVector() bool { return o.kind == vgpr || o.kind == permuted }

var named = map[string]operand{
	"vcc_lo": {kind: sgpr, reg: vccLo, width: 1}, "vcc_hi": {kind: sgpr, reg: vccLo + 1, width: 1}, "vcc": {kind: sgpr, reg: vccLo, width: 2},
	"exec_lo": {kind: sgpr, reg: execLo, width: 1}, "exec_hi": {kind: sgpr, reg: execLo + 1, width: 1}, "exec": {kind: sgpr, reg: execLo, width: 2},
	"m0": {kind: sgpr, reg: m0, width: 1}, "null": {kind: sgpr, reg: null, width: 1},
	"vccz": {kind: vccZero, width: 1}, "execz": {kind: execZero, width: 1}, "scc": {kind: sccBit, width: 1},
	"src_vccz": {kind: vccZero, width: 1}, "src_execz": {kind: execZero, width: 1}, "src_scc": {kind: sccBit, width: 1},
	"src_shared_base": {kind: constant, raw: sharedBase, width: 2}, "src_private_base": {kind: constant, raw: privateBase, width: 2},
	"src_shared_limit": {kind: constant, raw: sharedBase | 0xffffffff, width: 2}, "src_private_limit": {kind: constant, raw: privateBase | 0xffffffff, width: 2},
}

// parseOperand reads "v1", "-|s2|", "v[2:3]", "v1.h", "0x3f800000", "-4.0", "vcc_lo" as an operand of type t.
func parseOperand(text string, t typ) (operand, error) {
	o := operand{}
	s := text
	if rest, ok := strings.CutPrefix(s, "neg("); ok {
		o.neg, s = true, strings.TrimSuffix(rest, ")")
	}
	if after, ok := strings.CutPrefix(s, "-"); ok && after != "" && (after[0] < '0' || after[0] > '9') {
		o.neg, s = true, after
	}
	if rest, ok := strings.CutPrefix(s, "|"); ok {
		o.abs, s = true, strings.TrimSuffix(rest, "|")
	}
	if rest, ok := strings.CutPrefix(s, "abs("); ok {
		o.abs, s = true, strings.TrimSuffix(rest, ")")
	}
	neg, abs := o.neg, o.abs
	if base, ok := strings.CutSuffix(s, ".l"); ok {
		s = base
	} else if base, ok := strings.CutSuffix(s, ".h"); ok {
		s, o.half = base, true
	}
	high := o.half
	switch n, ok := named[s]; {
	case ok:
		o = n
		if o.kind == constant {
			o.setConstant(o.raw, t)
		}
	case registers(s, 'v', &o):
		o.kind = vgpr
	case registers(s, 's', &o):
		o.kind = sgpr
	case strings.HasPrefix(s, "ttmp"):
		return o, fmt.Errorf("%s is a trap handler's register", s)
	default:
		raw, err := parseConstant(s, t)
		if err != nil {
			return o, err
		}
		o.kind, o.width = constant, 1
		if t == b64 || t == tf64 {
			o.width = 2
		}
		o.setConstant(raw, t)
	}
	o.neg, o.abs, o.half, o.typ = neg, abs, high, t
	return o, nil
}

func (o *operand) setConstant(raw uint64, t typ) {
	o.raw = raw
	if t == b16 || t == tf16 {
		o.raw &= 0xffff
	}
	o.lanes = new(vec)
	for i := range o.lanes {
		o.lanes[i] = uint32(o.raw)
	}
}

// registers reads "v12" or "v[12:15]" where prefix is 'v'.
func registers(s string, prefix byte, o *operand) bool {
	if len(s) < 2 || s[0] != prefix {
		return false
	}
	s = s[1:]
	if s[0] == '[' && s[len(s)-1] == ']' {
		a, b, ok := strings.Cut(s[1:len(s)-1], ":")
		from, err1 := strconv.Atoi(a)
		to := from
		var err2 error
		if ok {
			to, err2 = strconv.Atoi(b)
		}
		if err1 != nil || err2 != nil || to < from || to > 255 {
			return false
		}
		o.reg, o.width = from, to-from+1
		return true
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 || prefix == 's' && n > 105 {
		return false
	}
	o.reg, o.width = n, 1
	return true
}

// parseConstant reads an inline constant or a literal. Integers and literals are bits; a
// number with a point is a float of the operand's type.
func parseConstant(s string, t typ) (uint64, error) {
	if rest, ok := strings.CutPrefix(s, "lit("); ok {
		s = strings.TrimSuffix(rest, ")")
	}
	if strings.HasPrefix(s, "0x") {
		u, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not an operand", s)
		}
		if t == tf64 && u <= math.MaxUint32 {
			u <<= 32 // a literal is the upper half of a double
		}
		return u, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(n), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not an operand", s)
	}
	switch t {
	case b16, tf16, pk16, pkf16:
		if f > 0.15 && f < 0.16 {
			return 0x3118, nil // 1/(2 pi)
		}
		return uint64(toHalf(float32(f))), nil
	case b64, tf64:
		return math.Float64bits(f), nil
	}
	return uint64(u32(float32(f))), nil
}

// splitArgs splits "v[0:1], -|v2|, s3 clamp op_sel:[0,1]" at commas outside of brackets, and its
// modifiers from the last operand.
func splitArgs(args string) (operands []string, mods map[string]string) {
	mods = map[string]string{}
	depth, start := 0, 0
	var parts []string
	for i, c := range args {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(args[start:i]))
				start = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(args[start:]); rest != "" {
		parts = append(parts, rest)
	}
	if len(parts) == 0 {
		return nil, mods
	}
	words := strings.Fields(parts[len(parts)-1])
	parts[len(parts)-1] = words[0]
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, ":")
		mods[name] = value
	}
	// instructions without operands have modifiers only
	if name, value, ok := strings.Cut(parts[0], ":"); ok && !strings.ContainsAny(name, "[(") && len(parts) == 1 {
		mods[name] = value
		return nil, mods
	}
	return parts, mods
}

// list reads "[0,1,1]" as bits.
func list(text string) []bool {
	var out []bool
	for _, c := range text {
		switch c {
		case '0':
			out = append(out, false)
		case '1':
			out = append(out, true)
		}
	}
	return out
}
