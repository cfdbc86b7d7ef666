package gguf

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fill(b byte, n int) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte{b}, n))
		return err
	}
}

// TestWrite: what is written is read back, and each tensor's data begins on a
// multiple of 32 bytes, where its offset says.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, []Pair{
		{"general.architecture", "qwen3"}, {"a.count", uint32(7)}, {"a.neg", int32(-7)}, {"a.big", uint64(1) << 40},
		{"a.eps", float32(0.5)}, {"a.on", true}, {"a.ints", []int32{1, -2}}, {"a.words", []string{"x", ""}}, {"a.floats", []float32{1, 2}},
	}, []Tensor{
		{"one", Q4_0, []uint64{64, 3}, fill(1, 2*18*3)},
		{"two", F32, []uint64{5}, fill(2, 20)},
		{"three", F16, []uint64{3}, fill(3, 6)},
	})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(b.Bytes())
	h, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"general.architecture": "qwen3", "a.count": int64(7), "a.neg": int64(-7), "a.big": int64(1) << 40, "a.eps": 0.5, "a.on": true,
		"a.ints": []any{int64(1), int64(-2)}, "a.words": []any{"x", ""}, "a.floats": []any{1.0, 2.0},
	}
	if diff := cmp.Diff(want, h.Meta); diff != "" || len(h.Tensors) != 3 || h.Version != 3 {
		t.Errorf("read back otherwise: %s", diff)
	}
	at := bytes.Index(data, bytes.Repeat([]byte{1}, 108))
	if at < 0 || at%alignment != 0 {
		t.Fatalf("the first tensor's data begins at %d", at)
	}
	tail := data[at:]
	if !bytes.Equal(tail[128:148], bytes.Repeat([]byte{2}, 20)) || !bytes.Equal(tail[160:166], bytes.Repeat([]byte{3}, 6)) || len(tail) != 192 {
		t.Errorf("tensor data is not padded to %d: %v", alignment, tail)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		pairs   []Pair
		tensors []Tensor
		want    string
	}{
		"short data":  {nil, []Tensor{{"x", F32, []uint64{4}, fill(0, 15)}}, "15 bytes, not 16"},
		"long data":   {nil, []Tensor{{"x", F32, []uint64{4}, fill(0, 17)}}, "17 bytes, not 16"},
		"half blocks": {nil, []Tensor{{"x", Q8_0, []uint64{48}, fill(0, 51)}}, "whole blocks"},
		"no size":     {nil, []Tensor{{"x", 99, []uint64{32}, fill(0, 1)}}, "type 99 is not known"},
		"value":       {[]Pair{{"k", struct{}{}}}, nil, "cannot be written"},
	} {
		if err := Write(io.Discard, c.pairs, c.tensors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTensorType(t *testing.T) {
	for _, name := range []string{"f32", "f16", "q4_0", "q8_0"} {
		if typ, ok := ParseTensorType(name); !ok || typ.String() != name {
			t.Errorf("%s: %v %v", name, typ, ok)
		}
	}
	if _, ok := ParseTensorType("q9"); ok {
		t.Error("q9 is a type")
	}
}
