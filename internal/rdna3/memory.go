package rdna3

import (
	"fmt"
	"slices"
)

// Where flat addresses reach shared and private memory instead of global memory.
const (
	sharedBase  = 0x0001_0000_0000_0000
	privateBase = 0x0002_0000_0000_0000
)

// Buffer is a piece of global memory: what a kernel may touch, to the byte.
type Buffer struct {
	Name    string
	Addr    uint64
	Data    []byte
	Written bool // a kernel stored to it
}

// Memory is global memory: some buffers and nothing else.
type Memory struct {
	buffers []*Buffer // by address
	last    *Buffer
}

// Add makes a buffer part of the memory. Buffers must not overlap.
func (m *Memory) Add(b *Buffer) error {
	i, _ := slices.BinarySearchFunc(m.buffers, b.Addr, func(b *Buffer, a uint64) int {
		switch {
		case b.Addr < a:
			return -1
		case b.Addr > a:
			return 1
		}
		return 0
	})
	if i > 0 && m.buffers[i-1].Addr+uint64(len(m.buffers[i-1].Data)) > b.Addr ||
		i < len(m.buffers) && b.Addr+uint64(len(b.Data)) > m.buffers[i].Addr {
		return fmt.Errorf("buffers overlap at %#x", b.Addr)
	}
	m.buffers = slices.Insert(m.buffers, i, b)
	return nil
}

// find returns the bytes of memory from address a to the end of its buffer, nil when fewer than n are there.
func (m *Memory) find(a uint64, n int) ([]byte, *Buffer) {
	if b := m.last; b != nil {
		if off := a - b.Addr; off < uint64(len(b.Data)) && uint64(len(b.Data))-off >= uint64(n) {
			return b.Data[off:], b
		}
	}
	i, found := slices.BinarySearchFunc(m.buffers, a, func(b *Buffer, a uint64) int {
		switch {
		case b.Addr < a:
			return -1
		case b.Addr > a:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil, nil
	}
	b := m.buffers[i]
	off := a - b.Addr
	if off >= uint64(len(b.Data)) || uint64(len(b.Data))-off < uint64(n) {
		return nil, nil
	}
	m.last = b
	return b.Data[off:], b
}

// describe says what is near an address that is in no buffer.
func (m *Memory) describe(a uint64) string {
	for _, b := range m.buffers {
		end := b.Addr + uint64(len(b.Data))
		if a >= b.Addr && a < end {
			return fmt.Sprintf("%d bytes before the end of %s (%d bytes)", end-a, b.Name, len(b.Data))
		}
		if a >= end && a-end < 1<<20 {
			return fmt.Sprintf("%d bytes past the end of %s (%d bytes)", a-end, b.Name, len(b.Data))
		}
		if a < b.Addr && b.Addr-a < 1<<20 {
			return fmt.Sprintf("%d bytes before %s", b.Addr-a, b.Name)
		}
	}
	return "near no buffer"
}
