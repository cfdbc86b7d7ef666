package packed16

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// VectorText holds the vectors, one to a line: a name, the bits of the 32
// values, and for absmax and mse each the scale and the 8 payload words. All
// numbers are hexadecimal; a line that begins with # is a comment.
//
//go:embed testdata/vectors.txt
var VectorText string

// A Vector is one block and what every implementation makes of it.
type Vector struct {
	Name string
	X    [Block]float32
	Want [2]Quantized // by Mode
}

// Quantized is a block as it is stored.
type Quantized struct {
	Scale F16
	Words [Block / 4]uint32
}

// Vectors returns the blocks of VectorText.
func Vectors() ([]Vector, error) {
	var all []Vector
	for n, line := range strings.Split(VectorText, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		v, err := parseVector(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("testdata/vectors.txt:%d: %w", n+1, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// Rows is a matrix made of vectors, row after row, and what packing it gives.
type Rows struct {
	Blocks, Count           int    // blocks of a row, rows
	Source, Payload, Scales []byte // little-endian; of a block 32 bytes of payload and 2 of scale
}

// InRows puts the vectors into rows of some blocks, the first vectors again at the end where the last row
// has room, as f16 values if half, else as f32.
func InRows(vectors []Vector, half bool, mode Mode, blocks int) Rows {
	r := Rows{Blocks: blocks, Count: (len(vectors) + blocks - 1) / blocks}
	for i := range r.Count * blocks {
		v := vectors[i%len(vectors)]
		want := v.Want[mode]
		for j, x := range v.X {
			if half {
				h := ToF16(x)
				v.X[j] = h.Float32()
				r.Source = binary.LittleEndian.AppendUint16(r.Source, uint16(h))
			} else {
				r.Source = binary.LittleEndian.AppendUint32(r.Source, math.Float32bits(x))
			}
		}
		if half { // what rounding to f16 made of the vector
			q, s := QuantizeBlock(&v.X, mode)
			want = Quantized{Scale: s, Words: Words(&q)}
		}
		for _, w := range want.Words {
			r.Payload = binary.LittleEndian.AppendUint32(r.Payload, w)
		}
		r.Scales = binary.LittleEndian.AppendUint16(r.Scales, uint16(want.Scale))
	}
	return r
}

func parseVector(fields []string) (v Vector, err error) {
	const want = 1 + Block + 2*(1+Block/4)
	if len(fields) != want {
		return v, fmt.Errorf("%d fields instead of %d", len(fields), want)
	}
	number := func(bits int) uint32 {
		n, e := strconv.ParseUint(fields[0], 16, bits)
		if e != nil && err == nil {
			err = e
		}
		fields = fields[1:]
		return uint32(n)
	}

	v.Name, fields = fields[0], fields[1:]
	for i := range v.X {
		v.X[i] = math.Float32frombits(number(32))
	}
	for m := range v.Want {
		v.Want[m].Scale = F16(number(16))
		for i := range v.Want[m].Words {
			v.Want[m].Words[i] = number(32)
		}
	}
	return v, err
}

// String returns the line of the vector.
func (v Vector) String() string {
	var b strings.Builder
	b.WriteString(v.Name)
	for _, x := range v.X {
		fmt.Fprintf(&b, " %08x", math.Float32bits(x))
	}
	for _, w := range v.Want {
		fmt.Fprintf(&b, " %04x", w.Scale)
		for _, word := range w.Words {
			fmt.Fprintf(&b, " %08x", word)
		}
	}
	return b.String()
}
