// Package gguf reads the header of a GGUF model file: enough to know a model's
// attention shape and the size of its weights without loading it. Tensor data
// is never read.
//
// The format is described in ggml's docs/gguf.md: magic "GGUF", a version, a
// tensor count, a key-value count, the key-value pairs, then name, shape, type
// and place of each tensor; all little-endian.
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"dot4fa/internal/fault"
	"dot4fa/internal/input"
)

// Header is the metadata of a GGUF file. Integers of every width are stored as
// int64 (uint64 values above its range are refused), floats as float64, arrays
// as []any with the same element rules.
type Header struct {
	Version uint32
	Meta    map[string]any
	Tensors []Info
	Data    int64 // where the tensor data begin, from the start of the file
}

// Limits against damaged files: a length field is never trusted to size an
// allocation beyond these.
const (
	maxPairs  = 1 << 16
	maxString = 1 << 24
	maxArray  = 1 << 26
	maxDepth  = 4
	maxTensor = 1 << 20
)

// Open reads the header of the file at path and makes sure that the file is as
// long as its tensors need.
func Open(path string) (*Header, error) {
	f, err := input.Open(path, "name a GGUF file")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault.Read(err, path)
	}
	h, err := Read(f)
	if err == nil {
		err = h.whole(info.Size())
	}
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) {
			return nil, e.At("%s", path)
		}
		return nil, err
	}
	return h, nil
}

// Read reads a header from r.
func Read(r io.Reader) (*Header, error) {
	d := &decoder{r: bufio.NewReaderSize(r, 1<<16)}
	h, err := d.header()
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.Usage, "the GGUF header ends after %d bytes, in %s", d.offset, d.part).
			Hintf("%s", cutShort)
	default:
		return nil, fault.New(fault.Usage, "%w (byte %d, in %s)", err, d.offset, d.part).
			Hintf("the file is damaged or not a GGUF model")
	}
}

type decoder struct {
	r      *bufio.Reader
	offset int64
	part   string // what is being read, for messages
}

func (d *decoder) read(v any) error {
	buf := make([]byte, binary.Size(v))
	n, err := io.ReadFull(d.r, buf)
	d.offset += int64(n)
	if err != nil {
		return err
	}
	_, err = binary.Decode(buf, binary.LittleEndian, v)
	return err
}

func (d *decoder) header() (*Header, error) {
	d.part = "the magic number"
	var magic [4]byte
	if err := d.read(&magic); err != nil {
		return nil, err
	}
	if string(magic[:]) != "GGUF" {
		return nil, fmt.Errorf("not a GGUF file: it begins with %q", magic[:])
	}
	d.part = "the counts"
	var fixed struct {
		Version        uint32
		Tensors, Pairs uint64
	}
	if err := d.read(&fixed); err != nil {
		return nil, err
	}
	if fixed.Version < 2 || fixed.Version > 3 {
		return nil, fmt.Errorf("GGUF version %d is not 2 or 3 (a big-endian file?)", fixed.Version)
	}
	if fixed.Pairs > maxPairs {
		return nil, fmt.Errorf("%d key-value pairs is more than any model has", fixed.Pairs)
	}
	if fixed.Tensors > maxTensor {
		return nil, fmt.Errorf("%d tensors is more than any model has", fixed.Tensors)
	}
	h := &Header{Version: fixed.Version, Meta: make(map[string]any, fixed.Pairs)}
	for i := uint64(0); i < fixed.Pairs; i++ {
		d.part = fmt.Sprintf("key %d of %d", i+1, fixed.Pairs)
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		d.part = fmt.Sprintf("the value of %q", key)
		if _, twice := h.Meta[key]; twice {
			return nil, fmt.Errorf("the key appears twice")
		}
		var kind uint32
		if err := d.read(&kind); err != nil {
			return nil, err
		}
		if h.Meta[key], err = d.value(kind, 0); err != nil {
			return nil, err
		}
	}
	return h, d.tensors(h, int(fixed.Tensors))
}

func (d *decoder) str() (string, error) {
	var n uint64
	if err := d.read(&n); err != nil {
		return "", err
	}
	if n > maxString {
		return "", fmt.Errorf("a string of %d bytes", n)
	}
	// Grow with what arrives, so that a false length costs nothing.
	var buf []byte
	for uint64(len(buf)) < n {
		chunk := make([]byte, min(n-uint64(len(buf)), 1<<16))
		k, err := io.ReadFull(d.r, chunk)
		d.offset += int64(k)
		if err != nil {
			return "", err
		}
		buf = append(buf, chunk...)
	}
	return string(buf), nil
}

func scalar[T any](d *decoder, convert func(T) (any, error)) (any, error) {
	var v T
	if err := d.read(&v); err != nil {
		return nil, err
	}
	return convert(v)
}

func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](v T) (any, error) {
	return int64(v), nil
}

// value reads one value of GGUF's type number kind.
func (d *decoder) value(kind uint32, depth int) (any, error) {
	switch kind {
	case 0:
		return scalar(d, integer[uint8])
	case 1:
		return scalar(d, integer[int8])
	case 2:
		return scalar(d, integer[uint16])
	case 3:
		return scalar(d, integer[int16])
	case 4:
		return scalar(d, integer[uint32])
	case 5:
		return scalar(d, integer[int32])
	case 6:
		return scalar(d, func(v float32) (any, error) { return float64(v), nil })
	case 7:
		return scalar(d, func(v uint8) (any, error) { return v != 0, nil })
	case 8:
		return d.str()
	case 9:
		return d.array(depth)
	case 10:
		return scalar(d, func(v uint64) (any, error) {
			if v > math.MaxInt64 {
				return nil, fmt.Errorf("the integer %d is out of range", v)
			}
			return int64(v), nil
		})
	case 11:
		return scalar(d, integer[int64])
	case 12:
		return scalar(d, func(v float64) (any, error) { return v, nil })
	}
	return nil, fmt.Errorf("unknown value type %d", kind)
}

func (d *decoder) array(depth int) (any, error) {
	if depth >= maxDepth {
		return nil, fmt.Errorf("arrays nested deeper than %d", maxDepth)
	}
	var head struct {
		Kind uint32
		N    uint64
	}
	if err := d.read(&head); err != nil {
		return nil, err
	}
	if head.N > maxArray {
		return nil, fmt.Errorf("an array of %d elements", head.N)
	}
	out := make([]any, 0, min(head.N, 1<<12))
	for i := uint64(0); i < head.N; i++ {
		v, err := d.value(head.Kind, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Int returns the integer under key.
func (h *Header) Int(key string) (int64, bool) {
	v, ok := h.Meta[key].(int64)
	return v, ok
}

// String returns the string under key.
func (h *Header) String(key string) (string, bool) {
	v, ok := h.Meta[key].(string)
	return v, ok
}

// Float returns the float under key.
func (h *Header) Float(key string) (float64, bool) {
	v, ok := h.Meta[key].(float64)
	return v, ok
}

// IntsPerLayer returns key's value for each of n layers: an array of n
// integers or booleans as it is, a single integer repeated. ok is false when
// the key is absent or of another shape.
func (h *Header) IntsPerLayer(key string, n int) (values []int64, ok bool) {
	switch v := h.Meta[key].(type) {
	case int64:
		values = make([]int64, n)
		for i := range values {
			values[i] = v
		}
		return values, true
	case []any:
		if len(v) < n {
			return nil, false
		}
		for _, e := range v[:n] {
			switch e := e.(type) {
			case int64:
				values = append(values, e)
			case bool:
				b := int64(0)
				if e {
					b = 1
				}
				values = append(values, b)
			default:
				return nil, false
			}
		}
		return values, true
	}
	return nil, false
}
