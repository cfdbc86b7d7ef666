package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"dot4fa/internal/fault"
)

// Pair is one key of a file to write. Value is a string, bool, uint32, int32,
// float32, uint64, or a slice of strings, int32 or float32.
type Pair struct {
	Key   string
	Value any
}

// Tensor is one tensor of a file to write. Dims count the contiguous dimension
// first, as ggml does. Data writes exactly Bytes bytes.
type Tensor struct {
	Name string
	Type TensorType
	Dims []uint64
	Data func(io.Writer) error
}

// Bytes returns the size of the tensor's data. It is an error when a row is not
// a whole number of blocks.
func (t Tensor) Bytes() (uint64, error) {
	n, err := t.Type.bytes(t.Dims)
	if err != nil {
		return 0, fault.New(fault.Usage, "tensor %s: %w", t.Name, err).Hintf("a row's length must be a multiple of the type's block")
	}
	return n, nil
}

const alignment = 32 // general.alignment when the key is absent

// Write writes a GGUF file, version 3: the pairs in their order, then the
// tensors in theirs.
func Write(w io.Writer, pairs []Pair, tensors []Tensor) error {
	e := &encoder{w: bufio.NewWriterSize(w, 1<<20)}
	e.raw([]byte("GGUF"))
	e.put(uint32(3), uint64(len(tensors)), uint64(len(pairs)))
	for _, p := range pairs {
		e.str(p.Key)
		e.value(p.Value)
	}
	offset := uint64(0)
	sizes := make([]uint64, len(tensors))
	for i, t := range tensors {
		n, err := t.Bytes()
		if err != nil {
			return err
		}
		sizes[i] = n
		e.str(t.Name)
		e.put(uint32(len(t.Dims)), t.Dims, uint32(t.Type), offset)
		offset += padded(n)
	}
	e.pad()
	for i, t := range tensors {
		before := e.n
		if e.err == nil {
			e.err = t.Data(e)
		}
		if wrote := e.n - before; e.err == nil && wrote != sizes[i] {
			e.err = fmt.Errorf("tensor %s has %d bytes, not %d", t.Name, wrote, sizes[i])
		}
		e.pad()
	}
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

func padded(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

// encoder writes until the first error and counts what it wrote.
type encoder struct {
	w   *bufio.Writer
	n   uint64
	err error
}

// Write lets a tensor's Data write to the encoder.
func (e *encoder) Write(p []byte) (int, error) {
	n, err := e.w.Write(p)
	e.n += uint64(n)
	return n, err
}

func (e *encoder) raw(p []byte) {
	if e.err == nil {
		_, e.err = e.Write(p)
	}
}

func (e *encoder) put(values ...any) {
	for _, v := range values {
		if e.err == nil {
			e.err = binary.Write(e, binary.LittleEndian, v)
		}
	}
}

func (e *encoder) str(s string) {
	e.put(uint64(len(s)))
	e.raw([]byte(s))
}

func (e *encoder) pad() { e.raw(make([]byte, padded(e.n)-e.n)) }

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case uint32:
		e.put(uint32(4), v)
	case int32:
		e.put(uint32(5), v)
	case float32:
		e.put(uint32(6), v)
	case bool:
		e.put(uint32(7), v)
	case string:
		e.put(uint32(8))
		e.str(v)
	case uint64:
		e.put(uint32(10), v)
	case []int32:
		e.put(uint32(9), uint32(5), uint64(len(v)), v)
	case []float32:
		e.put(uint32(9), uint32(6), uint64(len(v)), v)
	case []string:
		e.put(uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			e.str(s)
		}
	default:
		if e.err == nil {
			e.err = fmt.Errorf("a value of type %T cannot be written", v)
		}
	}
}
