// Package randmodel writes models of random weights in the shape of real ones:
// as fast or slow as those, and no use for anything else. With a few layers of a
// large model they show end-to-end speed where the model itself does not fit or
// is not at hand.
//
// Every layer is of full attention, also where the real model has other kinds,
// so a file of as many layers as the model has attention layers has its KV cache.
package randmodel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/gguf"
	"dot4fa/internal/nearest"
	"dot4fa/internal/output"
	"dot4fa/internal/packed16"
)

// Shape is the shape of a layer.
type Shape struct {
	Name    string
	Embd    int // hidden size
	FF      int // feed-forward size
	Heads   int
	KVHeads int
	D       int // head size
	Layers  int // attention layers of the real model
}

// Shapes are the ones that are known by name. The 27B model has 64 layers, of
// which 16 are of attention.
var Shapes = []Shape{
	{"qwen3-27b", 5120, 17408, 24, 4, 256, 16},
	{"llama3-8b", 4096, 14336, 32, 8, 128, 32},
	{"llama3-70b", 8192, 28672, 64, 8, 128, 80},
	{"llama3-1b", 2048, 8192, 32, 8, 64, 16},
	{"tiny-d256", 256, 512, 6, 1, 256, 2}, // for tests
}

// ByName finds a shape.
func ByName(name string) (Shape, error) {
	var names []string
	for _, s := range Shapes {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	hint := ""
	if near := nearest.Hint(name, names); near != "" {
		hint = near + "? "
	}
	return Shape{}, fault.New(fault.Usage, "no model shape %s is known", name).Hintf("%sknown: %s", hint, strings.Join(names, ", "))
}

const (
	vocab  = 4096 // small: what is measured is the layers
	length = 1 << 20
)

// Make writes a model of n layers of shape s, weights of the given type, to a
// file that appears when it is complete. The same arguments give the same bytes.
func Make(ctx context.Context, file string, s Shape, n int, weights string) error {
	t, ok := gguf.ParseTensorType(weights)
	if !ok || t != gguf.Q4_0 && t != gguf.Q8_0 && t != gguf.F16 {
		return fault.New(fault.Usage, "weights cannot be %s", weights).Hintf("q4_0, q8_0 or f16")
	}
	if n < 1 || n > 1024 {
		return fault.New(fault.Usage, "a model has 1 to 1024 layers, not %d", n).Hintf("leave it out for the %d of %s", s.Layers, s.Name)
	}
	out, err := output.Create(file, 0o666)
	if err != nil {
		return err
	}
	defer out.Discard()
	pairs, tensors := layout(s, n, t)
	if err := gguf.Write(until{ctx, out}, pairs, tensors); err != nil {
		return err
	}
	return out.Commit()
}

// until writes to out until ctx is done.
type until struct {
	ctx context.Context
	out io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.out.Write(p)
}

// layout lists what the file holds.
func layout(s Shape, n int, weights gguf.TensorType) ([]gguf.Pair, []gguf.Tensor) {
	const arch = "qwen3"
	u := func(key string, v int) gguf.Pair { return gguf.Pair{Key: arch + "." + key, Value: uint32(v)} }
	pairs := []gguf.Pair{
		{Key: "general.architecture", Value: arch},
		{Key: "general.name", Value: fmt.Sprintf("random %s, %d layers", s.Name, n)},
		{Key: "general.description", Value: fmt.Sprintf("random %s weights; %d attention layers of hidden size %d, feed-forward %d, %d heads on %d KV heads of %d; no tokenizer",
			weights, n, s.Embd, s.FF, s.Heads, s.KVHeads, s.D)},
		u("block_count", n), u("context_length", length), u("embedding_length", s.Embd), u("feed_forward_length", s.FF),
		u("attention.head_count", s.Heads), u("attention.head_count_kv", s.KVHeads), u("attention.key_length", s.D), u("attention.value_length", s.D),
		{Key: arch + ".attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: arch + ".rope.freq_base", Value: float32(1e7)},
		u("vocab_size", vocab),
		{Key: "tokenizer.ggml.model", Value: "none"},
	}
	var tensors []gguf.Tensor
	matrix := func(name string, in, out int) {
		r := source(name)
		tensors = append(tensors, gguf.Tensor{Name: name + ".weight", Type: weights, Dims: []uint64{uint64(in), uint64(out)},
			Data: func(w io.Writer) error { return random(w, r, weights, in, out) }})
	}
	ones := func(name string, n int) {
		tensors = append(tensors, gguf.Tensor{Name: name + ".weight", Type: gguf.F32, Dims: []uint64{uint64(n)},
			Data: func(w io.Writer) error {
				for range n {
					if err := binary.Write(w, binary.LittleEndian, float32(1)); err != nil {
						return err
					}
				}
				return nil
			}})
	}
	matrix("token_embd", s.Embd, vocab)
	matrix("output", s.Embd, vocab)
	ones("output_norm", s.Embd)
	for i := range n {
		l := fmt.Sprintf("blk.%d.", i)
		ones(l+"attn_norm", s.Embd)
		matrix(l+"attn_q", s.Embd, s.Heads*s.D)
		matrix(l+"attn_k", s.Embd, s.KVHeads*s.D)
		matrix(l+"attn_v", s.Embd, s.KVHeads*s.D)
		ones(l+"attn_q_norm", s.D)
		ones(l+"attn_k_norm", s.D)
		matrix(l+"attn_output", s.Heads*s.D, s.Embd)
		ones(l+"ffn_norm", s.Embd)
		matrix(l+"ffn_gate", s.Embd, s.FF)
		matrix(l+"ffn_up", s.Embd, s.FF)
		matrix(l+"ffn_down", s.FF, s.Embd)
	}
	return pairs, tensors
}

// source is the random numbers of one tensor.
func source(name string) *rand.ChaCha8 {
	var seed [32]byte
	copy(seed[:], name)
	return rand.NewChaCha8(seed)
}

// random writes a matrix whose values have a standard deviation of about
// 1/sqrt(in), so that activations neither vanish nor overflow.
func random(w io.Writer, r *rand.ChaCha8, t gguf.TensorType, in, out int) error {
	sigma := 1 / math.Sqrt(float64(in))
	rows := gguf.Tensor{Name: "row", Type: t, Dims: []uint64{uint64(in)}}
	size, err := rows.Bytes()
	if err != nil {
		return err
	}
	buf := make([]byte, size)
	for range out {
		r.Read(buf)
		switch t {
		case gguf.Q4_0: // 0..15 less 8, evenly: deviation 4.6
			scaleBlocks(buf, 18, sigma/4.6)
		case gguf.Q8_0: // -128..127, evenly: deviation 73.9
			scaleBlocks(buf, 34, sigma/73.9)
		case gguf.F16: // 1 to 2 times a power of two, both signs
			exponent := uint16(15+math.Round(math.Log2(sigma/1.53))) << 10
			for i := 0; i < len(buf); i += 2 {
				v := binary.LittleEndian.Uint16(buf[i:])
				binary.LittleEndian.PutUint16(buf[i:], v&0x83ff|exponent)
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// scaleBlocks gives every block of size bytes, which begins with it, the scale.
func scaleBlocks(buf []byte, size int, scale float64) {
	half := uint16(packed16.ToF16(float32(scale)))
	for i := 0; i < len(buf); i += size {
		binary.LittleEndian.PutUint16(buf[i:], half)
	}
}
