package gguf

import (
	"fmt"
	"math"
	"math/bits"

	"dot4fa/internal/fault"
)

const cutShort = "the file is cut short: copy or download it again"

// TensorType is ggml's number of a tensor type.
type TensorType uint32

// The tensor types that models made here have.
const (
	F32  TensorType = 0
	F16  TensorType = 1
	Q4_0 TensorType = 2
	Q8_0 TensorType = 8
)

// blocks gives name, elements and bytes of one block of each type that occurs in
// files. The numbers are ggml's.
var blocks = map[TensorType]struct {
	name            string
	elements, bytes uint64
}{
	0: {"f32", 1, 4}, 1: {"f16", 1, 2}, 2: {"q4_0", 32, 18}, 3: {"q4_1", 32, 20}, 6: {"q5_0", 32, 22},
	7: {"q5_1", 32, 24}, 8: {"q8_0", 32, 34}, 9: {"q8_1", 32, 40}, 10: {"q2_K", 256, 84},
	11: {"q3_K", 256, 110}, 12: {"q4_K", 256, 144}, 13: {"q5_K", 256, 176}, 14: {"q6_K", 256, 210},
	15: {"q8_K", 256, 292}, 16: {"iq2_xxs", 256, 66}, 17: {"iq2_xs", 256, 74}, 18: {"iq3_xxs", 256, 98},
	19: {"iq1_s", 256, 50}, 20: {"iq4_nl", 32, 18}, 21: {"iq3_s", 256, 110}, 22: {"iq2_s", 256, 82},
	23: {"iq4_xs", 256, 136}, 24: {"i8", 1, 1}, 25: {"i16", 1, 2}, 26: {"i32", 1, 4}, 27: {"i64", 1, 8},
	28: {"f64", 1, 8}, 29: {"iq1_m", 256, 56}, 30: {"bf16", 1, 2}, 34: {"tq1_0", 256, 54},
	35: {"tq2_0", 256, 66}, 39: {"mxfp4", 32, 17}, 40: {"nvfp4", 64, 36}, 41: {"q1_0", 128, 18},
	42: {"q2_0", 64, 18},
}

// String returns the type as llama.cpp prints it.
func (t TensorType) String() string {
	if b, ok := blocks[t]; ok {
		return b.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseTensorType is the reverse of String.
func ParseTensorType(name string) (TensorType, bool) {
	for t, b := range blocks {
		if b.name == name {
			return t, true
		}
	}
	return 0, false
}

// bytes is the size of a tensor of this type.
func (t TensorType) bytes(dims []uint64) (uint64, error) {
	b, ok := blocks[t]
	if !ok {
		return 0, fmt.Errorf("the size of %s is not known here", t)
	}
	if len(dims) == 0 || dims[0]%b.elements != 0 {
		return 0, fmt.Errorf("rows of %v elements are not whole blocks of %s", dims, t)
	}
	n := dims[0] / b.elements * b.bytes
	for _, d := range dims[1:] {
		n *= d
	}
	return n, nil
}

// Info describes one tensor of a file.
type Info struct {
	Name   string
	Type   TensorType
	Dims   []uint64 // fastest first
	Offset uint64   // from Header.Data
}

// Bytes returns the size of the tensor's data; ok is false when its type is not
// known here.
func (t Info) Bytes() (n uint64, ok bool) {
	n, err := t.Type.bytes(t.Dims)
	return n, err == nil
}

const maxDims = 4

// tensors reads the descriptions of n tensors.
func (d *decoder) tensors(h *Header, n int) error {
	for i := range n {
		d.part = fmt.Sprintf("tensor %d of %d", i+1, n)
		name, err := d.str()
		if err != nil {
			return err
		}
		var rank uint32
		if err := d.read(&rank); err != nil {
			return err
		}
		if rank == 0 || rank > maxDims {
			return fmt.Errorf("tensor %q has %d dimensions", name, rank)
		}
		t := Info{Name: name, Dims: make([]uint64, rank)}
		if err := d.read(t.Dims); err != nil {
			return err
		}
		elements := uint64(1)
		for _, v := range t.Dims {
			over, product := bits.Mul64(elements, v)
			if over != 0 || product > math.MaxInt64/8 {
				return fmt.Errorf("tensor %q is impossibly large", name)
			}
			elements = product
		}
		var tail struct {
			Type   TensorType
			Offset uint64
		}
		if err := d.read(&tail); err != nil {
			return err
		}
		if tail.Offset > math.MaxInt64/2 {
			return fmt.Errorf("tensor %q lies out of range", name)
		}
		t.Type, t.Offset = tail.Type, tail.Offset
		h.Tensors = append(h.Tensors, t)
	}
	align := int64(32)
	if v, ok := h.Int("general.alignment"); ok {
		if v < 1 || v > 1<<20 {
			return fmt.Errorf("an alignment of %d", v)
		}
		align = v
	}
	h.Data = (d.offset + align - 1) / align * align
	return nil
}

// whole makes sure that a file of size bytes has room for the tensors.
func (h *Header) whole(size int64) error {
	for _, t := range h.Tensors {
		n, _ := t.Bytes() // of an unknown type: at least its start must lie in the file
		if end := uint64(h.Data) + t.Offset + n; end > uint64(size) {
			return fault.New(fault.Usage, "the file has %d bytes, and tensor %s goes to byte %d", size, t.Name, end).
				Hintf("%s", cutShort)
		}
	}
	return nil
}
