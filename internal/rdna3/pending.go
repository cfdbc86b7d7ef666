package rdna3

import (
	"math/bits"
	"strconv"
	"strings"
)

// pending is a load whose result has not arrived: it arrives at the first s_waitcnt that waits for it, no
// sooner. Until then its registers hold poison, and what is written to them is lost.
type pending struct {
	reg, n int
	mask   uint32
	half   half16
	scalar bool // n scalar registers
	loose  bool // may arrive out of order: scalar and flat loads
	waits  int  // counters that have yet to be waited for
	data   [4]vec
	words  [16]uint32
}

type half16 uint8

const (
	whole half16 = iota
	lower
	upper
)

// queues are the loads under way, in order of issue, by the counter that counts them.
type queues struct {
	vm, lgkm []*pending
	free     []*pending
}

func (w *wave) newPending(reg, n int) *pending {
	var p *pending
	if last := len(w.free) - 1; last >= 0 {
		p, w.free = w.free[last], w.free[:last]
	} else {
		p = new(pending)
	}
	p.reg, p.n, p.mask, p.half, p.scalar, p.loose, p.waits = reg, n, w.exec(), whole, false, false, 0
	return p
}

// issue poisons p's registers and puts it in the queues.
func (w *wave) issue(p *pending, vm, lgkm bool) {
	if p.scalar {
		for i := range p.n {
			w.write(p.reg+i, poison)
		}
	} else {
		keep := uint32(0)
		switch p.half {
		case lower:
			keep = 0xffff0000
		case upper:
			keep = 0xffff
		}
		for i := range p.n {
			d := &w.v[p.reg+i]
			for m := p.mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m) & 31
				d[l] = d[l]&keep | poison&^keep
			}
		}
	}
	if vm {
		w.vm = append(w.vm, p)
		p.waits++
	}
	if lgkm {
		w.lgkm = append(w.lgkm, p)
		p.waits++
	}
}

// arrive counts one counter off, and delivers when it was the last.
func (w *wave) arrive(p *pending) {
	if p.waits--; p.waits > 0 {
		return
	}
	switch {
	case p.scalar:
		for i, x := range p.words[:p.n] {
			w.write(p.reg+i, x)
		}
	case p.half == whole:
		for i := range p.n {
			if p.mask == all {
				w.v[p.reg+i] = p.data[i]
				continue
			}
			d := &w.v[p.reg+i]
			for m := p.mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m) & 31
				d[l] = p.data[i][l]
			}
		}
	default:
		d := &w.v[p.reg]
		for m := p.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			if p.half == upper {
				d[l] = d[l]&0xffff | p.data[0][l]<<16
			} else {
				d[l] = d[l]&^0xffff | p.data[0][l]&0xffff
			}
		}
	}
	w.free = append(w.free, p)
}

// waitVM lets all but the last n vector loads arrive: they return in order.
func (w *wave) waitVM(n int) {
	for len(w.vm) > n {
		p := w.vm[0]
		w.vm = w.vm[:copy(w.vm, w.vm[1:])]
		w.arrive(p)
	}
}

// waitLGKM lets arrive what is sure to have arrived when n scalar, flat and LDS operations are left: LDS
// returns in order, the others do not, so that they are sure only when nothing is left.
func (w *wave) waitLGKM(n int) {
	if n == 0 {
		for _, p := range w.lgkm {
			w.arrive(p)
		}
		w.lgkm = w.lgkm[:0]
		return
	}
	sure := len(w.lgkm) - n
	for _, p := range w.lgkm {
		if p.loose {
			sure--
		}
	}
	rest := w.lgkm[:0]
	for _, p := range w.lgkm {
		if !p.loose && sure > 0 {
			sure--
			w.arrive(p)
			continue
		}
		rest = append(rest, p)
	}
	w.lgkm = rest
}

// wait decodes s_waitcnt and the waits for single counters.
func (l *line) wait(words []uint32) (inst, error) {
	in := inst{class: Wait}
	const no = 1 << 20
	vm, lgkm := no, no
	switch l.op {
	case "s_waitcnt":
		imm := words[0] & 0xffff
		vm, lgkm = int(imm>>10), int(imm>>4&63)
		if vm == 63 {
			vm = no
		}
		if lgkm == 63 {
			lgkm = no
		}
	default:
		n, err := strconv.ParseInt(l.args[len(l.args)-1], 0, 32)
		if err != nil || len(l.args) != 2 || l.args[0] != "null" {
			return in, l.unknown()
		}
		if strings.HasSuffix(l.op, "vmcnt") {
			vm = int(n)
		} else {
			lgkm = int(n)
		}
	}
	in.run = func(w *wave, _ *inst) {
		if len(w.vm) > vm {
			w.waitVM(vm)
		}
		if len(w.lgkm) > lgkm {
			w.waitLGKM(lgkm)
		}
	}
	return in, nil
}
