package packed16

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/vectors.txt anew")

// block makes a block of f.
func block(f func(i int) float64) (x [Block]float32) {
	for i := range x {
		x[i] = float32(f(i))
	}
	return x
}

// put returns x with one value replaced.
func put(x [Block]float32, i int, v float64) [Block]float32 {
	x[i] = float32(v)
	return x
}

// inputs are the first blocks of the vector file: what implementations differ
// on, then blocks as they come.
func inputs() []Vector {
	rnd := rand.New(rand.NewPCG(16, 8))
	normal := func(size float64) [Block]float32 {
		return block(func(int) float64 { return size * rnd.NormFloat64() })
	}
	nan := math.NaN()
	inf := math.Inf(1)

	all := []Vector{
		{Name: "zero", X: block(func(int) float64 { return 0 })},
		{Name: "negative-zero", X: block(func(int) float64 { return math.Copysign(0, -1) })},
		{Name: "nan-first", X: put(normal(1), 0, nan)},
		{Name: "nan-last", X: put(normal(1), 31, nan)},
		{Name: "nan-among-zeros", X: put([Block]float32{}, 7, nan)},
		{Name: "infinity", X: put(normal(1), 5, inf)},
		{Name: "negative-infinity", X: put(normal(1), 30, -inf)},
		{Name: "infinity-and-nan", X: put(put(normal(1), 3, inf), 4, nan)},
		{Name: "largest-f32", X: put(normal(1), 9, math.MaxFloat32)},
		{Name: "scale-beyond-f16", X: put(normal(1), 2, 65520*127)},
		{Name: "scale-just-f16", X: put(normal(1), 2, 65519.99*127)},
		{Name: "scale-largest-f16", X: put(normal(1e6), 2, -65504*127)},
		{Name: "mse-refits-beyond-f16", X: block(func(i int) float64 { return []float64{65519.9 * 127, 65519.9 * 126.49}[i%2] })},
		{Name: "scale-subnormal", X: block(func(i int) float64 { return float64(i-16) * 0x1p-24 })},
		{Name: "scale-largest-subnormal", X: put(normal(1e-4), 1, 127*0x3FFp-24)},
		{Name: "scale-smallest-normal", X: put(normal(1e-4), 1, 127*0x1p-14)},
		{Name: "scale-rounds-down-saturates", X: block(func(i int) float64 { return []float64{1, -1}[i%2] * 1.4 * 127 * 0x1p-24 })},
		{Name: "scale-rounds-down-to-128-steps", X: block(func(i int) float64 { return []float64{1, -1}[i%2] * 128 * 60 * 0x1p-24 })},
		{Name: "scale-half-of-smallest-is-zero", X: put([Block]float32{}, 3, 127*0x1p-25)},
		{Name: "scale-above-half-of-smallest", X: put([Block]float32{}, 3, 127*0x1.01p-25)},
		{Name: "too-small-for-a-scale", X: normal(1e-7)},
		{Name: "subnormal-f32", X: normal(1e-41)},
		{Name: "smallest-f32", X: block(func(i int) float64 { return float64(i%2) * math.SmallestNonzeroFloat32 })},
		{Name: "ties-to-even", X: put(block(func(i int) float64 { return float64(i) - 15.5 }), 0, 127)},
		{Name: "ties-to-even-at-the-top", X: block(func(i int) float64 { return []float64{127, 126.5, -125.5, -126.5}[i%4] })},
		{Name: "ties-in-scale-down", X: put([Block]float32{}, 0, 127*(1+0x1p-11))},
		{Name: "ties-in-scale-up", X: put([Block]float32{}, 0, 127*(1+0x3p-11))},
		{Name: "saturates-positive", X: block(func(i int) float64 { return 127 * (1 + 0x0.ffp-11) })},
		{Name: "saturates-negative", X: block(func(i int) float64 { return -127 * (1 + 0x0.ffp-11) })},
		{Name: "one-value", X: put([Block]float32{}, 17, -3)},
		{Name: "equal-values", X: block(func(int) float64 { return 0.1 })},
		{Name: "alternating", X: block(func(i int) float64 { return []float64{0.3, -0.3}[i%2] })},
		{Name: "ramp", X: block(func(i int) float64 { return float64(i) / 31 })},
		{Name: "one-outlier", X: put(normal(1), 11, 40)},
		{Name: "mse-sums-cancel", X: block(func(i int) float64 { return []float64{1e3, 1e-3, 17.77}[i%3] * rnd.NormFloat64() })},
	}
	for _, size := range []float64{1e-6, 1e-3, 1, 30, 1e4, 1e6} {
		for i := range 16 {
			all = append(all, Vector{Name: fmt.Sprintf("normal-%g-%d", size, i), X: normal(size)})
		}
	}
	for i := range 32 {
		gains := block(func(int) float64 { return math.Exp(rnd.NormFloat64()) })
		all = append(all, Vector{Name: fmt.Sprintf("outliers-%d", i), X: block(func(i int) float64 { return float64(gains[i]) * rnd.NormFloat64() })})
	}
	return all
}

// revealing are the last blocks of the file: for each mistake two that show
// it. Finding them takes a while.
func revealing() []Vector {
	rnd := rand.New(rand.NewPCG(4, 12))
	var all []Vector
	for _, m := range mistakes() {
		for i := range 2 {
			all = append(all, Vector{Name: fmt.Sprintf("shows-%s-%d", m.name, i), X: m.find(rnd)})
		}
	}
	return all
}

// quantized returns v with what the model makes of it.
func quantized(v Vector) Vector {
	for m := range v.Want {
		q, s := QuantizeBlock(&v.X, Mode(m))
		v.Want[m] = Quantized{Scale: s, Words: Words(&q)}
	}
	return v
}

// TestVectorFile holds the file to the model and to the list of inputs, so that
// no vector is lost unseen.
func TestVectorFile(t *testing.T) {
	if *update {
		text := "# name, 32 values (f32 bits), then for absmax and for mse: scale (f16 bits), 8 payload words\n" +
			"# written by: go test ./internal/packed16 -run VectorFile -update\n"
		for _, v := range append(inputs(), revealing()...) {
			text += quantized(v).String() + "\n"
		}
		if err := os.WriteFile("testdata/vectors.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	all, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	first := inputs()
	if len(all) < len(first) {
		t.Fatalf("%d vectors, want %d or more", len(all), len(first))
	}
	for i, v := range all {
		if v.String() != quantized(v).String() {
			t.Errorf("%s: the model makes something else of it; if the format is meant to change, write the file anew", v.Name)
		}
		// only the names: what math.Exp returns is not the same everywhere
		if i < len(first) && v.Name != first[i].Name {
			t.Errorf("vector %d is %s, want %s: write the file anew", i, v.Name, first[i].Name)
		}
	}
}
