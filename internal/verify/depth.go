package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"dot4fa/internal/packed16"
)

// Depth is the part that computes how the error of one attention call grows with
// the number of cells, from the model of the format. It says nothing of the build;
// it reaches depths that small models do not have.
const Depth = "depth"

// Attention is the error of the output of attention at one depth.
type Attention struct {
	NK    int     `json:"nk"`    // cells
	Sharp float64 `json:"sharp"` // standard deviation of the logits
	Types string  `json:"types"`
	NMSE  float64 `json:"nmse"` // squared error over squared output, against float64 of the K and V before rounding
}

// The pairs whose error is computed. With +q8 the query is rounded to int8 too, as
// the GPU kernels do.
var depthTypes = []struct {
	name string
	k, v int
}{
	{"f16/f16", kF16, vF16}, {"q8_0/f16", kQ8, vF16}, {"packed16/f16", kPacked, vF16}, {"packed16-mse/f16", kMSE, vF16},
	{"packed16/f16 +q8", kPackedQ, vF16}, {"q8_0/q4_0", kQ8, vQ4}, {"packed16/q4_0", kPacked, vQ4}, {"packed16/q4_0 +q8", kPackedQ, vQ4},
}

const (
	kExact = iota
	kF16
	kQ8
	kPacked
	kMSE
	kPackedQ
	kKinds
)

const (
	vExact = iota
	vF16
	vQ4
	vKinds
)

const (
	depthD       = 256
	depthQueries = 8
	depthLimit   = 5e-4 // upstream's own tolerance for FLASH_ATTN_EXT
)

// state is online softmax over the cells so far.
type state struct {
	m, l float64
	acc  [depthD]float64
}

// add takes one cell in.
func (s *state) add(score float64, v *[depthD]float64) {
	if score > s.m {
		scale := math.Exp(s.m - score)
		s.l *= scale
		for i := range s.acc {
			s.acc[i] *= scale
		}
		s.m = score
	}
	p := math.Exp(score - s.m)
	s.l += p
	for i, x := range v {
		s.acc[i] += p * x
	}
}

// nmse is the error of s against exact.
func (s *state) nmse(exact *state) (err, size float64) {
	for i := range s.acc {
		e := exact.acc[i] / exact.l
		d := s.acc[i]/s.l - e
		err += d * d
		size += e * e
	}
	return err, size
}

// attention runs random cells of unit variance past a few queries and takes the
// error at each depth, a power of two from 256 to largest. step is told how far it
// is.
func attention(largest int, seed uint64, step func(n, total int)) []Attention {
	rng := rand.New(rand.NewPCG(seed, 16))
	sharps := []float64{1, 4}
	nq := depthQueries * len(sharps)
	q, qRounded := make([][depthD]float64, nq), make([][depthD]float64, nq)
	for i := range q {
		var x [depthD]float32
		for k := range x {
			// the scores' factor 1/√D is in the query
			x[k] = float32(rng.NormFloat64() * sharps[i/depthQueries] / math.Sqrt(depthD))
			q[i][k] = float64(x[k])
		}
		roundQuery(&x, &qRounded[i])
	}
	exact := make([]state, nq)
	states := make([][]state, len(depthTypes))
	for t := range states {
		states[t] = make([]state, nq)
		for i := range states[t] {
			states[t][i].m = math.Inf(-1)
		}
	}
	for i := range exact {
		exact[i].m = math.Inf(-1)
	}
	var out []Attention
	var k [kKinds][depthD]float64
	var v [vKinds][depthD]float64
	next := 256
	for n := 1; n <= largest; n++ {
		cell(rng, &k, &v)
		for i := range nq {
			var score [kKinds]float64
			for kind := range score {
				query := &q[i]
				if kind == kPackedQ {
					query = &qRounded[i]
				}
				sum := 0.0
				for d, x := range k[kind] {
					sum += x * query[d]
				}
				score[kind] = sum
			}
			exact[i].add(score[kExact], &v[vExact])
			for t, types := range depthTypes {
				states[t][i].add(score[types.k], &v[types.v])
			}
		}
		if n != next {
			continue
		}
		next *= 2
		step(n, largest)
		for s, sharp := range sharps {
			for t, types := range depthTypes {
				err, size := 0.0, 0.0
				for i := s * depthQueries; i < (s+1)*depthQueries; i++ {
					e, z := states[t][i].nmse(&exact[i])
					err, size = err+e, size+z
				}
				out = append(out, Attention{NK: n, Sharp: sharp, Types: types.name, NMSE: err / size})
			}
		}
	}
	return out
}

// cell makes one random cell and what each type keeps of it.
func cell(rng *rand.Rand, k *[kKinds][depthD]float64, v *[vKinds][depthD]float64) {
	for b := 0; b < depthD; b += packed16.Block {
		var x, y [packed16.Block]float32
		for i := range x {
			x[i], y[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
			k[kExact][b+i], v[vExact][b+i] = float64(x[i]), float64(y[i])
			k[kF16][b+i], v[vF16][b+i] = f16(x[i]), f16(y[i])
		}
		for kind, mode := range map[int]packed16.Mode{kPacked: packed16.Absmax, kMSE: packed16.MSE} {
			n, s := packed16.QuantizeBlock(&x, mode)
			for i := range n {
				k[kind][b+i] = float64(n[i]) * float64(s.Float32())
			}
		}
		q8(&x, k[kQ8][b:])
		q4(&y, v[vQ4][b:])
	}
	k[kPackedQ] = k[kPacked]
}

func f16(x float32) float64 { return float64(packed16.ToF16(x).Float32()) }

// roundQuery rounds a query as the kernels do: packed16's rule, the scale in f32.
func roundQuery(x *[depthD]float32, to *[depthD]float64) {
	for b := 0; b < depthD; b += packed16.Block {
		var amax float32
		for _, v := range x[b : b+packed16.Block] {
			amax = max(amax, float32(math.Abs(float64(v))))
		}
		s := amax / 127
		for i, v := range x[b : b+packed16.Block] {
			if s > 0 {
				to[b+i] = math.RoundToEven(float64(v/s)) * float64(s)
			}
		}
	}
}

// q8 is ggml's q8_0: the values are rounded against the scale before it is
// rounded to f16.
func q8(x *[packed16.Block]float32, to []float64) {
	var amax float32
	for _, v := range x {
		amax = max(amax, float32(math.Abs(float64(v))))
	}
	d := amax / 127
	for i, v := range x {
		to[i] = 0
		if d > 0 {
			to[i] = math.Round(float64(v*(1/d))) * f16(d)
		}
	}
}

// q4 is ggml's q4_0: the value of largest magnitude becomes −8.
func q4(x *[packed16.Block]float32, to []float64) {
	var top float32
	for _, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(top)) {
			top = v
		}
	}
	d := top / -8
	for i, v := range x {
		to[i] = 0
		if d != 0 {
			to[i] = (float64(min(15, int(v*(1/d)+8.5))) - 8) * f16(d)
		}
	}
}

// judgeDepth says what does not hold: over all depths packed16 has to be about as
// near as q8_0 with the same V, and with an f16 V and logits of deviation 1 within
// upstream's tolerance at each. Where a few cells carry all the weight, as with a
// deviation of 4, single depths differ by chance.
func judgeDepth(list []Attention, factor float64) (failures []string) {
	type kind struct {
		sharp float64
		types string
	}
	mean := map[kind]float64{}
	for _, a := range list {
		mean[kind{a.Sharp, a.Types}] += a.NMSE
		if !(a.NMSE > 0) || a.Sharp == 1 && !strings.Contains(a.Types, "q4_0") && a.NMSE > depthLimit {
			failures = append(failures, fmt.Sprintf("depth: %s at %d cells, logits of deviation %g: NMSE %.3g is not above 0 and up to %.3g", a.Types, a.NK, a.Sharp, a.NMSE, depthLimit))
		}
	}
	for _, t := range depthTypes {
		stock := map[int]string{vF16: "q8_0/f16", vQ4: "q8_0/q4_0"}[t.v]
		if t.k != kPacked && t.k != kMSE {
			continue
		}
		for k, sum := range mean {
			if limit := factor * mean[kind{k.sharp, stock}]; k.types == t.name && !(sum <= limit) {
				failures = append(failures, fmt.Sprintf("depth: %s, logits of deviation %g: NMSE over all depths is %.2f times that of %s, not up to %.2g", t.name, k.sharp, factor*sum/limit, stock, factor))
			}
		}
	}
	slices.Sort(failures)
	return failures
}
