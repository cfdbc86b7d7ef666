package verify

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dot4fa/internal/packed16"
)

// The errors of single values are those that the types are known for: a rounding
// error is uniform over a step, so its mean square is step²/12.
func TestRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var k [kKinds][depthD]float64
	var v [vKinds][depthD]float64
	sums := map[string]float64{}
	const cells = 400
	for range cells {
		cell(rng, &k, &v)
		for i := range depthD {
			for name, d := range map[string]float64{"q8": k[kQ8][i] - k[kExact][i], "packed": k[kPacked][i] - k[kExact][i], "mse": k[kMSE][i] - k[kExact][i], "q4": v[vQ4][i] - v[vExact][i], "f16": k[kF16][i] - k[kExact][i]} {
				sums[name] += d * d / (cells * depthD)
			}
		}
	}
	// E[max|x|] of 32 normal values is 2.3 or so: steps of 2.3/127 and 2.3/8
	for name, want := range map[string]float64{"q8": 2.8e-5, "packed": 2.8e-5, "mse": 2.8e-5, "q4": 7.5e-3, "f16": 3e-8} {
		if got := sums[name]; got < want/2 || got > want*2 {
			t.Errorf("%s: mean square error %.3g, about %.3g was expected", name, got, want)
		}
	}
	if sums["mse"] > sums["packed"] {
		t.Errorf("refitted scales are worse: %.4g against %.4g", sums["mse"], sums["packed"])
	}
	var zero [packed16.Block]float32
	to := make([]float64, packed16.Block)
	q8(&zero, to)
	q4(&zero, to)
	for _, x := range to {
		if x != 0 {
			t.Fatalf("zeros become %v", to)
		}
	}
}

// Online softmax in any order is softmax.
func TestState(t *testing.T) {
	scores, values := []float64{-3, 7, 2, 7.5, -20}, []float64{1, -2, 3, 0.5, 9}
	s := state{m: math.Inf(-1)}
	want, sum := 0.0, 0.0
	for i, x := range scores {
		var v [depthD]float64
		v[3] = values[i]
		s.add(x, &v)
		want += math.Exp(x) * values[i]
		sum += math.Exp(x)
	}
	if got := s.acc[3] / s.l; math.Abs(got-want/sum) > 1e-12 {
		t.Errorf("%g, want %g", got, want/sum)
	}
}

func TestAttention(t *testing.T) {
	list := attention(1024, 7, func(int, int) {})
	if len(list) != 3*2*len(depthTypes) {
		t.Fatalf("%d errors", len(list))
	}
	if bad := judgeDepth(list, 1.5); len(bad) > 0 {
		t.Errorf("%s", strings.Join(bad, "\n"))
	}
	for i := range list {
		if list[i].Types == "packed16/f16" && list[i].Sharp == 1 {
			list[i].NMSE *= 3
		}
	}
	if bad := judgeDepth(list, 1.5); len(bad) != 1 || !strings.Contains(bad[0], "packed16/f16, logits of deviation 1") {
		t.Errorf("an error three times as large: %q", bad)
	}
	list[0].NMSE = math.NaN()
	if bad := judgeDepth(list, 1.5); len(bad) < 2 || !strings.Contains(strings.Join(bad, " "), "at 256 cells") {
		t.Errorf("an error that is no number: %q", bad)
	}
}
