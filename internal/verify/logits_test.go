package verify

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved writes a file of saved logits whose row at position i of chunk c holds the
// probabilities that prob gives.
func saved(t *testing.T, name string, ctx, vocab, chunks int, prob func(c, i int) []float64) string {
	t.Helper()
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	b.WriteString(logitsMark)
	put([]int32{int32(ctx), int32(vocab), int32(chunks)})
	for i := range ctx * chunks {
		put(int32(i % vocab))
	}
	for c := range chunks {
		for i := range rows(ctx) {
			lo, hi := math.Inf(1), math.Inf(-1)
			logs := make([]float64, vocab)
			for k, p := range prob(c, i) {
				logs[k] = math.Log(p)
				lo, hi = min(lo, logs[k]), max(hi, logs[k])
			}
			step := (hi - lo) / 65535
			put(float32(step))
			put(float32(lo))
			for k := range 2 * ((vocab + 1) / 2) {
				n := 0.0
				if k < vocab && step > 0 {
					n = math.Round((logs[k] - lo) / step)
				}
				put(uint16(n))
			}
		}
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// Divergence, perplexity, top token and position of distributions that are known
// in closed form.
func TestCompare(t *testing.T) {
	const ctx, vocab, chunks = 64, 3, 2
	base := saved(t, "a", ctx, vocab, chunks, func(int, int) []float64 { return []float64{0.5, 0.3, 0.2} })
	other := saved(t, "b", ctx, vocab, chunks, func(_, i int) []float64 {
		if i >= (rows(ctx)+1)/2 {
			return []float64{0.3, 0.5, 0.2}
		}
		return []float64{0.5, 0.3, 0.2}
	})
	c, err := compare(base, other, 2)
	if err != nil {
		t.Fatal(err)
	}
	n, half := rows(ctx), (rows(ctx)+1)/2
	swapped := 0.5*math.Log(0.5/0.3) + 0.3*math.Log(0.3/0.5)
	want := swapped * float64(n-half) / float64(n)
	if math.Abs(c.KLD.Mean-want) > 1e-5 || c.KLD.N != 2*n || math.Abs(c.Largest-swapped) > 1e-4 {
		t.Errorf("KLD %+v, want %g", c.KLD, want)
	}
	if got, want := c.SameTop, float64(half)/float64(n); math.Abs(got-want) > 1e-12 {
		t.Errorf("same top %g, want %g", got, want)
	}
	if len(c.Bins) != 2 || c.Bins[0].From != 32 || c.Bins[1].To != 62 || c.Bins[0].To+1 != c.Bins[1].From {
		t.Fatalf("bins %+v", c.Bins)
	}
	if c.Bins[0].KLD.Mean > 0.005 || math.Abs(c.Bins[1].KLD.Mean-swapped) > 0.005 || c.Bins[0].KLD.N+c.Bins[1].KLD.N != 2*n {
		t.Errorf("bins %+v, the second should be near %g", c.Bins, swapped)
	}
	if c.BasePPL.Mean < 2 || c.BasePPL.Mean > 5 || c.BasePPL.N != 2*n {
		t.Errorf("PPL %+v", c.BasePPL)
	}
}

// The steps of the saved values put a floor under what can be told apart, far
// below what an 8-bit cache does.
func TestFloor(t *testing.T) {
	shift := func(by float64) func(c, i int) []float64 {
		return func(c, i int) []float64 {
			p, sum := make([]float64, 50), 0.0
			for k := range p {
				p[k] = math.Exp(4 * math.Sin(float64(k*(i+3)+c)+by))
				sum += p[k]
			}
			for k := range p {
				p[k] /= sum
			}
			return p
		}
	}
	a := saved(t, "a", 128, 50, 3, shift(0))
	same, err := compare(a, saved(t, "b", 128, 50, 3, shift(1e-7)), 1)
	if err != nil || math.Abs(same.KLD.Mean) > 1e-8 {
		t.Errorf("equal distributions: %+v, %v", same, err)
	}
	near, err := compare(a, saved(t, "c", 128, 50, 3, shift(3e-3)), 1)
	if err != nil || near.KLD.Mean < 1e-5 || near.KLD.Mean > 1e-4 {
		t.Errorf("near distributions: %+v, %v", near.KLD, err)
	}
}

func TestDamagedLogits(t *testing.T) {
	uniform := func(int, int) []float64 { return []float64{0.25, 0.25, 0.3, 0.2} }
	good := saved(t, "a", 32, 4, 1, uniform)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut short": data[:len(data)-1], "too long": append(bytes.Clone(data), 0), "head": data[:10], "other": []byte("GGUF and so on, longer than a head"),
	} {
		file := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(file, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := compare(good, file, 1); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := compare(good, saved(t, "b", 32, 4, 2, uniform), 1); err == nil || !strings.Contains(err.Error(), "different texts") {
		t.Errorf("another number of chunks: %v", err)
	}
}
