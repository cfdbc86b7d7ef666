package rdna3

import (
	"fmt"
	"strconv"
	"strings"
)

// dppSel says which lane each lane reads through DPP.
type dppSel struct {
	from     [lanes]int8 // -1: outside of the row
	write    uint32      // lanes that row_mask and bank_mask let through
	zero     bool        // bound_ctrl: lanes without a source read 0; otherwise they are not written
	inactive bool        // fi: lanes that do not run may be read
}

// apply permutes p into t and returns the lanes that may be written.
func (s *dppSel) apply(w *wave, p, t *vec) uint32 {
	exec, write := w.exec(), s.write
	in := *p
	for l := range t {
		f := s.from[l]
		switch {
		case f >= 0 && (s.inactive || exec>>uint(f)&1 != 0):
			t[l] = in[f&31]
		case s.zero:
			t[l] = 0
		default:
			t[l] = 0
			write &^= 1 << l
		}
	}
	return write
}

// dppOf reads the DPP modifiers; nil when there are none.
func (l *line) dppOf() (*dppSel, error) {
	s := &dppSel{write: all}
	found := false
	set := func(f func(lane int) int) {
		found = true
		for l := range s.from {
			s.from[l] = int8(f(l))
		}
	}
	number := func(text string) int {
		n, _ := strconv.ParseInt(text, 0, 32)
		return int(n)
	}
	for name, value := range l.mods {
		n := number(value)
		switch name {
		case "quad_perm", "dpp8":
			var sel []int
			for f := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
				sel = append(sel, number(f))
			}
			if group := map[string]int{"quad_perm": 4, "dpp8": 8}[name]; len(sel) != group {
				return nil, fmt.Errorf("%s:%s", name, value)
			}
			set(func(lane int) int { return lane&^(len(sel)-1) | sel[lane%len(sel)] })
		case "row_shl":
			set(func(lane int) int { return inRow(lane, lane%16+n) })
		case "row_shr":
			set(func(lane int) int { return inRow(lane, lane%16-n) })
		case "row_ror":
			set(func(lane int) int { return lane&^15 | (lane-n)&15 })
		case "row_mirror":
			set(func(lane int) int { return lane ^ 15 })
		case "row_half_mirror":
			set(func(lane int) int { return lane ^ 7 })
		case "row_share":
			set(func(lane int) int { return lane&^15 | n })
		case "row_xmask":
			set(func(lane int) int { return lane ^ n })
		case "row_mask", "bank_mask":
			for lane := range lanes {
				bit := lane / 16
				if name == "bank_mask" {
					bit = lane / 4 % 4
				}
				if n>>bit&1 == 0 {
					s.write &^= 1 << lane
				}
			}
		case "bound_ctrl":
			s.zero = n != 0
		case "fi":
			s.inactive = n != 0
		}
	}
	if !found {
		return nil, nil
	}
	return s, nil
}

func inRow(lane, to int) int {
	if to < 0 || to > 15 {
		return -1
	}
	return lane&^15 | to
}
