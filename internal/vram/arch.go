package vram

import "slices"

// What follows are facts about how llama.cpp lays out the cache of each
// architecture where the header alone does not say it. Names are those of
// general.architecture. An architecture that is in none of these tables is
// taken for plain attention, if its header has none of the keys that only
// another layout would have.

// windowRule says which layers of an architecture have a sliding window.
type windowRule struct {
	period     int64 // every period-th layer attends to everything; 0: the header says it layer by layer
	denseFirst bool  // the first of a period is the dense one, not the last
	layered    bool  // a pattern that is an array counts (elsewhere it is ignored)
	absent     int64 // the window where the header has none; 0: then there is no window
	fixed      int64 // the window whatever the header says, unless it says 0
	attention  bool  // every attention layer has it
	blocks     int64 // only models of this many layers; 0: any
}

var windowRules = map[string]windowRule{
	"afmoe": {period: 4}, "cohere2": {period: 4}, "cohere2moe": {period: 4, denseFirst: true, layered: true},
	"exaone-moe": {period: 4}, "exaone4": {period: 4, absent: 4096, blocks: 64},
	"gemma2": {period: 2, absent: 4096}, "gemma3": {period: 6}, "gemma3n": {period: 5}, "gemma4": {layered: true},
	"gpt-oss": {period: 2}, "granite_swa": {layered: true}, "laguna": {period: 4, denseFirst: true},
	"lfm2": {attention: true}, "llama4": {period: 4, absent: 8192, fixed: 8192},
	"mellum": {period: 4, layered: true}, "mimo2": {layered: true}, "muse-glimmer": {period: 4, layered: true},
	"olmo2": {period: 4}, "plamo3": {period: 8}, "smallthinker": {period: 4, denseFirst: true, fixed: 4096},
	"step35": {layered: true},
}

// noWindow lists architectures whose headers may name a window that llama.cpp
// does not apply.
var noWindow = []string{
	"llama", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "phi3", "mistral3", "starcoder2",
}

// hybridRule says which layers of a hybrid attend and which keep a recurrent
// state.
type hybridRule struct {
	interval  int64 // every interval-th layer attends, unless the header lists them; 0: those with KV heads
	everyBoth bool  // all layers do both
	noFFN     bool  // only layers without a feed-forward part do either
	trunk     bool  // layers of the MTP head at the end are left out
}

var hybridRules = map[string]hybridRule{
	"qwen3next": {interval: 4, trunk: true}, "qwen35": {interval: 4, trunk: true}, "qwen35moe": {interval: 4, trunk: true},
	"minimax-01": {interval: 8, trunk: true},
	"jamba":      {}, "plamo2": {}, "granitehybrid": {}, "lfm2": {}, "lfm2moe": {}, "kimi-linear": {}, "bailingmoe3": {},
	"falcon-h1":  {everyBoth: true},
	"nemotron_h": {noFFN: true}, "nemotron_h_moe": {noFFN: true},
}

// trunkOnly lists further architectures whose cache leaves out the layers of the
// MTP head. Elsewhere those layers have their share of the cache, used or not.
var trunkOnly = []string{"step35", "hy_v3", "mimo2"}

// readsMTP lists architectures whose header's nextn_predict_layers llama.cpp
// reads. Elsewhere all layers are alike.
var readsMTP = []string{
	"bailingmoe2", "bailingmoe3", "cohere2moe", "deepseek2", "exaone-moe", "exaone4", "glm4", "glm4moe", "hy_v3", "mimo2",
	"nemotron_h", "nemotron_h_moe", "qwen35", "qwen35moe", "qwen3next", "step35",
}

// latent lists architectures that keep one latent vector a cell (MLA) when the
// header has the sizes for it. deepseek2 without them keeps plain K and V.
var latent = []string{"deepseek2", "kimi-linear", "bailingmoe3"}

// without lists architectures that keep no K and V, and why.
func without(arch string) string {
	switch {
	case slices.Contains([]string{"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"}, arch):
		return "it is recurrent"
	case slices.Contains([]string{
		"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "eurobert",
		"gemma-embedding", "wavtokenizer-dec", "t5encoder", "dream", "llada", "llada-moe", "rnd1",
	}, arch):
		return "it reads the whole text at once"
	}
	return ""
}

// unknownLayout lists architectures with a cache of their own kind (indexers,
// shared or repeated layers, two stacks) that is not described here.
var unknownLayout = []string{
	"deepseek32", "deepseek4", "glm-dsa", "dots3note", "minimax-m3", "dflash", "eagle3", "kimi-k3", "gemma4-assistant", "graniteswitch",
	"nanbeige", "t5", "deepseek2-ocr",
}

// strangerKeys are the beginnings of keys that a plain attention model does not
// have.
var strangerKeys = []string{
	"ssm.", "shortconv.", "kda.", "wkv.", "attention.kv_lora_rank", "attention.key_length_mla", "attention.indexer.",
	"attention.shared_kv_layers", "attention.recurrent_layers", "full_attention_interval", "attention.key_length_swa",
}

// special says what an architecture's attention has that packed16's does not, or
// "". The others that packed16 refuses follow from the sizes.
func (h header) special() string {
	_, softcap := h.Float(h.key("attn_logit_softcapping"))
	bias, _ := h.Float(h.key("attention.max_alibi_bias"))
	switch {
	case h.arch == "gemma2", softcap && h.arch == "grok":
		return "the model has a logit softcap"
	case bias > 0, h.arch == "bloom", h.arch == "refact", h.arch == "baichuan" && h.n == 40:
		return "the model has ALiBi"
	}
	return ""
}
