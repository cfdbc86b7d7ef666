package vram

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"dot4fa/internal/gguf"
)

// tiny is a model of real layout and no sense: the layers, heads and windows of
// its kind, and weights that are all zero.
type tiny struct {
	arch    string
	keys    []gguf.Pair
	tensors []gguf.Tensor
}

const (
	width = 64 // embedding
	ffn   = 64
	vocab = 3 + 256
)

func newTiny(arch string, layers int, pairs ...any) *tiny {
	m := &tiny{arch: arch}
	m.key("block_count", uint32(layers))
	m.key("context_length", uint32(1<<18))
	m.key("embedding_length", uint32(width))
	m.key("feed_forward_length", uint32(ffn))
	m.key("attention.layer_norm_rms_epsilon", float32(1e-6))
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		if n, ok := v.(int); ok {
			v = uint32(n)
		}
		m.key(pairs[i].(string), v)
	}
	m.tensor("token_embd.weight", width, vocab)
	m.tensor("output_norm.weight", width)
	return m
}

func (m *tiny) key(name string, v any) {
	m.keys = append(m.keys, gguf.Pair{Key: m.arch + "." + name, Value: v})
}

// tensor adds a tensor: matrices in q4_0, which keeps the files small, others in f32.
func (m *tiny) tensor(name string, dims ...uint64) {
	t := gguf.Tensor{Name: name, Type: gguf.F32, Dims: dims}
	if len(dims) == 2 && dims[0]%32 == 0 {
		t.Type = gguf.Q4_0
	}
	t.Data = func(w io.Writer) error {
		n, err := t.Bytes()
		if err == nil {
			_, err = io.CopyN(w, zeros{}, int64(n))
		}
		return err
	}
	m.tensors = append(m.tensors, t)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (m *tiny) block(i int, names map[string][]uint64) {
	for name, dims := range names {
		m.tensor(fmt.Sprintf("blk.%d.%s", i, name), dims...)
	}
}

// dense adds attention of heads×d query values and kv×d key and value ones, and a
// feed-forward part.
func (m *tiny) dense(i int, heads, kv, d uint64) {
	m.block(i, map[string][]uint64{
		"attn_norm.weight": {width}, "attn_q.weight": {width, heads * d}, "attn_k.weight": {width, kv * d},
		"attn_v.weight": {width, kv * d}, "attn_output.weight": {heads * d, width}, "ffn_norm.weight": {width},
	})
	m.mlp(i)
}

func (m *tiny) mlp(i int) {
	m.block(i, map[string][]uint64{"ffn_gate.weight": {width, ffn}, "ffn_up.weight": {width, ffn}, "ffn_down.weight": {ffn, width}})
}

// write writes the model with a vocabulary of single bytes.
func (m *tiny) write(t *testing.T) string {
	t.Helper()
	tokens, scores, kinds := []string{"<unk>", "<s>", "</s>"}, []float32{0, 0, 0}, []int32{2, 3, 3}
	for b := range 256 {
		tokens, scores, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(scores, 0), append(kinds, 6)
	}
	pairs := append([]gguf.Pair{{Key: "general.architecture", Value: m.arch}}, m.keys...)
	pairs = append(pairs,
		gguf.Pair{Key: "tokenizer.ggml.model", Value: "llama"}, gguf.Pair{Key: "tokenizer.ggml.tokens", Value: tokens},
		gguf.Pair{Key: "tokenizer.ggml.scores", Value: scores}, gguf.Pair{Key: "tokenizer.ggml.token_type", Value: kinds},
		gguf.Pair{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)}, gguf.Pair{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
		gguf.Pair{Key: "tokenizer.ggml.unknown_token_id", Value: uint32(0)})
	name := filepath.Join(t.TempDir(), m.arch+".gguf")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gguf.Write(f, pairs, m.tensors); err != nil {
		t.Fatal(err)
	}
	return name
}

func llama() *tiny {
	m := newTiny("llama", 3, "attention.head_count", 4, "attention.head_count_kv", 2, "attention.key_length", 64,
		"attention.value_length", 64, "rope.dimension_count", 64)
	for i := range 3 {
		m.dense(i, 4, 2, 64)
	}
	return m
}

// gemma3 has 8 layers: 0–4, 6 and 7 with a window, 5 without.
func gemma3() *tiny {
	m := newTiny("gemma3", 8, "attention.head_count", 4, "attention.head_count_kv", 1, "attention.key_length", 256,
		"attention.value_length", 256, "attention.sliding_window", 512)
	for i := range 8 {
		m.dense(i, 4, 1, 256)
		m.block(i, map[string][]uint64{
			"post_attention_norm.weight": {width}, "attn_q_norm.weight": {256}, "attn_k_norm.weight": {256}, "post_ffw_norm.weight": {width},
		})
	}
	return m
}

// gemma2 leaves window and period out of its header, as old converters did.
func gemma2() *tiny {
	m := newTiny("gemma2", 4, "attention.head_count", 4, "attention.head_count_kv", 2, "attention.key_length", 128, "attention.value_length", 128)
	for i := range 4 {
		m.dense(i, 4, 2, 128)
		m.block(i, map[string][]uint64{"post_attention_norm.weight": {width}, "post_ffw_norm.weight": {width}})
	}
	return m
}

// qwen35 is a hybrid of n layers, every fourth of attention with kv heads of 256,
// and, with mtp, one more layer that drafts.
func qwen35(n, heads, kv int, mtp bool) *tiny {
	const (
		state, groups, rank, conv = 32, 2, 4, 4
		keys, values              = state * groups, state * rank
		d                         = 256
	)
	extra := 0
	if mtp {
		extra = 1
	}
	m := newTiny("qwen35", n+extra, "attention.head_count", heads, "attention.head_count_kv", kv, "attention.key_length", d,
		"attention.value_length", d, "rope.dimension_count", 64, "rope.dimension_sections", []int32{11, 11, 10, 0},
		"ssm.conv_kernel", conv, "ssm.inner_size", values, "ssm.state_size", state, "ssm.time_step_rank", rank,
		"ssm.group_count", groups, "full_attention_interval", 4, "nextn_predict_layers", extra)
	for i := range n + extra {
		m.block(i, map[string][]uint64{"attn_norm.weight": {width}, "post_attention_norm.weight": {width}})
		m.mlp(i)
		if i == n || (i+1)%4 == 0 {
			m.block(i, map[string][]uint64{
				"attn_q.weight": {width, uint64(heads) * d * 2}, "attn_k.weight": {width, uint64(kv) * d}, "attn_v.weight": {width, uint64(kv) * d},
				"attn_output.weight": {uint64(heads) * d, width}, "attn_q_norm.weight": {d}, "attn_k_norm.weight": {d},
			})
			continue
		}
		m.block(i, map[string][]uint64{
			"attn_qkv.weight": {width, 2*keys + values}, "attn_gate.weight": {width, values}, "ssm_conv1d.weight": {conv, 2*keys + values},
			"ssm_dt.bias": {rank}, "ssm_a": {rank}, "ssm_beta.weight": {width, rank}, "ssm_alpha.weight": {width, rank},
			"ssm_norm.weight": {state}, "ssm_out.weight": {values, width},
		})
	}
	if mtp {
		m.block(n, map[string][]uint64{"nextn.eh_proj.weight": {2 * width, width}, "nextn.enorm.weight": {width}, "nextn.hnorm.weight": {width}})
	}
	return m
}

// deepseek2 keeps one latent vector a cell.
func deepseek2() *tiny {
	const heads, lora, rope, nope, v = 4, 64, 32, 64, 64
	m := newTiny("deepseek2", 2, "attention.head_count", heads, "attention.head_count_kv", 1, "attention.key_length", lora+rope,
		"attention.value_length", lora, "attention.key_length_mla", nope+rope, "attention.value_length_mla", v,
		"attention.kv_lora_rank", lora, "attention.q_lora_rank", 32, "rope.dimension_count", rope, "leading_dense_block_count", 2,
		"expert_feed_forward_length", ffn, "expert_shared_count", 1, "expert_count", 2, "expert_used_count", 1, "expert_weights_scale", float32(1))
	for i := range 2 {
		m.block(i, map[string][]uint64{
			"attn_norm.weight": {width}, "attn_q_a_norm.weight": {32}, "attn_kv_a_norm.weight": {lora}, "attn_q_a.weight": {width, 32},
			"attn_q_b.weight": {32, heads * (nope + rope)}, "attn_kv_a_mqa.weight": {width, lora + rope}, "attn_k_b.weight": {nope, lora, heads},
			"attn_v_b.weight": {lora, v, heads}, "attn_output.weight": {heads * v, width}, "ffn_norm.weight": {width},
		})
		m.mlp(i)
	}
	return m
}
