package rdna3

import "fmt"

// cell says who touched four bytes of shared memory since the last barrier.
type cell struct {
	epoch   uint32 // of the workgroup, when it was last touched; older news do not count
	readers uint32 // waves, a bit each
	writer  uint8  // a wave plus 1, or several
	atomic  bool   // and they did nothing but atomics
	written uint8  // bytes, a bit each
	read    uint8
}

const several = 0xff // waves wrote: different bytes, or atomically

// use is what is done to shared memory.
type use uint8

const (
	loads use = iota
	stores
	changes // atomically
)

func (u use) String() string { return [...]string{"loads", "stores", "changes"}[u] }

// watch records an access to shared memory and fails when another wave may do the opposite at the same time: nothing but
// barriers orders waves.
func (w *wave) watch(a uint32, size, l int, u use) {
	g := w.group
	me := uint8(w.index + 1)
	for at, end := a, a+uint32(size); at < end; at = at&^3 + 4 {
		n := min(end, at&^3+4) - at
		bytes := uint8(1<<n-1) << (at & 3)
		c := &g.cells[at/4]
		if c.epoch != g.epoch {
			*c = cell{epoch: g.epoch}
		}
		if c.written&bytes != 0 && c.writer != me && (c.writer != several || c.atomic) && !(u == changes && c.atomic) {
			w.fail("a race: lane %d %s %d bytes at %d of shared memory, which %s since the last barrier", l, u, size, a, c.wrote())
		}
		if u == loads {
			c.readers |= 1 << w.index
			c.read |= bytes
			continue
		}
		if others := c.readers &^ (1 << w.index); others != 0 && c.read&bytes != 0 {
			w.fail("a race: lane %d %s %d bytes at %d of shared memory, which another wave has read since the last barrier", l, u, size, a)
		}
		c.atomic = u == changes && (c.writer == 0 || c.atomic)
		if c.writer != 0 && c.writer != me {
			c.writer = several
		} else {
			c.writer = me
		}
		c.written |= bytes
	}
}

func (c *cell) wrote() string {
	if c.atomic {
		return "an atomic has changed"
	}
	return fmt.Sprintf("wave %d has written", c.writer-1)
}
