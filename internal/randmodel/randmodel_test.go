package randmodel

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
	"dot4fa/internal/packed16"
)

// TestMake: the header says what was asked for, and the file is the same every time.
func TestMake(t *testing.T) {
	dir := t.TempDir()
	shape, err := ByName("tiny-d256")
	if err != nil {
		t.Fatal(err)
	}
	for _, weights := range []string{"q4_0", "q8_0", "f16"} {
		a, b := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
		for _, file := range []string{a, b} {
			if err := Make(t.Context(), file, shape, 2, weights); err != nil {
				t.Fatal(err)
			}
		}
		one, _ := os.ReadFile(a)
		two, _ := os.ReadFile(b)
		if !bytes.Equal(one, two) {
			t.Errorf("%s: two files of the same model differ", weights)
		}
		h, err := gguf.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]int64{"block_count": 2, "attention.head_count": 6, "attention.head_count_kv": 1, "attention.key_length": 256} {
			if got, _ := h.Int("qwen3." + key); got != want {
				t.Errorf("%s is %d, want %d", key, got, want)
			}
		}
	}
}

// TestRandom: the values are finite and as large as they should be.
func TestRandom(t *testing.T) {
	const in, out = 512, 64
	for _, typ := range []gguf.TensorType{gguf.Q4_0, gguf.Q8_0, gguf.F16} {
		var b bytes.Buffer
		if err := random(&b, rand.NewChaCha8([32]byte{1}), typ, in, out); err != nil {
			t.Fatal(err)
		}
		sum, data := 0.0, b.Bytes()
		add := func(v float64) { sum += v * v }
		switch typ {
		case gguf.F16:
			for i := 0; i < len(data); i += 2 {
				add(half(data[i:]))
			}
		case gguf.Q8_0:
			for i := 0; i < len(data); i += 34 {
				for _, q := range data[i+2 : i+34] {
					add(half(data[i:]) * float64(int8(q)))
				}
			}
		case gguf.Q4_0:
			for i := 0; i < len(data); i += 18 {
				for _, q := range data[i+2 : i+18] {
					add(half(data[i:]) * (float64(q&15) - 8))
					add(half(data[i:]) * (float64(q>>4) - 8))
				}
			}
		}
		if dev := math.Sqrt(sum / (in * out) * in); !(dev > 0.7 && dev < 1.4) {
			t.Errorf("%s: the deviation is %.2f of what it should be", typ, dev)
		}
	}
}

func half(b []byte) float64 { return float64(packed16.F16(binary.LittleEndian.Uint16(b)).Float32()) }

func TestRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.gguf")
	if _, err := ByName("qwen3-28b"); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
		t.Errorf("an unknown shape: %v", err)
	}
	for name, err := range map[string]error{
		"weights":   Make(t.Context(), file, Shapes[0], 1, "q5_1"),
		"layers":    Make(t.Context(), file, Shapes[0], 0, "q4_0"),
		"directory": Make(t.Context(), filepath.Join(file, "x"), Shapes[0], 1, "q4_0"),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused model left a file")
	}
}
