// Package packed16 is the Go model of the packed16 K cache: int8 values with
// one f16 scale for every 32 of them, values and scales in two tensors.
//
// The model is normative. C++ and device code must give the same bytes, which
// the vectors of this package prove (see Vectors).
package packed16

import (
	"fmt"
	"math"
)

// Block is the number of values that share a scale.
const Block = 32

// FaultScale is the scale of a block that cannot be represented: one of its
// values is infinite or NaN, or its scale exceeds f16. It is a NaN, so that
// whatever reads the block shows the fault. The values of such a block are 0.
const FaultScale F16 = 0x7E00

// Mode says how the scale of a block is chosen.
type Mode int

const (
	Absmax Mode = iota // the largest magnitude becomes 127
	MSE                // Absmax, then one least-squares refit of the scale
)

// String returns the name recipes and environment flags use.
func (m Mode) String() string {
	switch m {
	case Absmax:
		return "absmax"
	case MSE:
		return "mse"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// QuantizeBlock returns the values and the scale of one block:
//
//	s = f16(max|x| / 127)    r = 1 / f32(s), 0 when s is 0    q = clamp(round(x*r), -127, 127)
//
// every step rounded once to nearest even in f32. Values are rounded against
// the stored scale. MSE then takes s = f16(Σ x*q / Σ q*q), the sums in
// ascending order, multiplication and addition rounded separately, and rounds
// the values again.
func QuantizeBlock(x *[Block]float32, mode Mode) (q [Block]int8, scale F16) {
	var amax float32
	for _, v := range x {
		a := math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
		if !(a <= math.MaxFloat32) {
			return [Block]int8{}, FaultScale
		}
		amax = max(amax, a)
	}

	scale = ToF16(amax / 127)
	if !scale.finite() {
		return [Block]int8{}, FaultScale
	}
	q = round(x, scale)
	if mode == Absmax {
		return q, scale
	}

	scale = refit(x, &q)
	if !scale.finite() {
		return [Block]int8{}, FaultScale
	}
	return round(x, scale), scale
}

func round(x *[Block]float32, scale F16) (q [Block]int8) {
	var r float32
	if s := scale.Float32(); s != 0 {
		r = 1 / s
	}
	for i, v := range x {
		// float32() forbids fusing, here and below
		n := math.RoundToEven(float64(float32(v * r)))
		q[i] = int8(min(max(n, -127), 127))
	}
	return q
}

func refit(x *[Block]float32, q *[Block]int8) F16 {
	var xq float32
	var qq int32
	for i, v := range x {
		product := float32(v * float32(q[i]))
		xq = float32(xq + product)
		qq += int32(q[i]) * int32(q[i])
	}
	if qq == 0 {
		return 0
	}
	return ToF16(xq / float32(qq))
}

// QuantizeRow quantises a row of a multiple of 32 values. A word of the
// payload holds four values, the first of them in its low byte.
func QuantizeRow(x []float32, mode Mode) (payload []uint32, scales []F16, err error) {
	if len(x)%Block != 0 {
		return nil, nil, fmt.Errorf("a packed16 row has a multiple of %d values, not %d", Block, len(x))
	}
	for b := 0; b < len(x); b += Block {
		q, s := QuantizeBlock((*[Block]float32)(x[b:]), mode)
		w := Words(&q)
		payload = append(payload, w[:]...)
		scales = append(scales, s)
	}
	return payload, scales, nil
}

// DequantizeRow returns the values that attention sees.
func DequantizeRow(payload []uint32, scales []F16) ([]float32, error) {
	if len(payload) != len(scales)*Block/4 {
		return nil, fmt.Errorf("%d payload words do not go with %d scales", len(payload), len(scales))
	}
	x := make([]float32, 0, 4*len(payload))
	for i, w := range payload {
		s := scales[4*i/Block].Float32()
		for j := 0; j < 32; j += 8 {
			x = append(x, s*float32(int8(w>>j)))
		}
	}
	return x, nil
}

// Words returns the payload words of a block.
func Words(q *[Block]int8) (w [Block / 4]uint32) {
	for i, v := range q {
		w[i/4] |= uint32(uint8(v)) << (8 * (i % 4))
	}
	return w
}
