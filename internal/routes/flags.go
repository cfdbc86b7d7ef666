package routes

import (
	"fmt"
	"strconv"
	"strings"

	"dot4fa/internal/recipe"
)

// Status says what the patched llama.cpp does with a flag.
type Status string

// The statuses of a flag.
const (
	Active   Status = "active"   // has the effect that Effect describes
	Accepted Status = "accepted" // checked, does nothing: upstream does it by itself
	Unsafe   Status = "unsafe"   // ignored unless the EXPERIMENTAL_UNSAFE flag is 1
)

// Flag is one row of the table of environment variables.
type Flag struct {
	ID      string   `json:"-"`                  // PACKED16_FLAG_<ID> in the generated headers
	Name    string   `json:"name"`               // the variable
	Kind    string   `json:"type"`               // "bool" (0 or 1), "int" or "name"
	Allowed []string `json:"allowed,omitempty"`  // bool and name: every value allowed
	Min     int      `json:"min,omitempty"`      // int: the range, inclusive
	Max     int      `json:"max,omitempty"`      //
	Step    int      `json:"multiple,omitempty"` // int: a multiple of it; 0 when any will do
	Note    string   `json:"note,omitempty"`     // why only these values
	Default string   `json:"default"`            // value when unset; "" when there is none
	Effect  string   `json:"effect"`             // one line: what setting it does
	Status  Status   `json:"status"`             //
	Because string   `json:"because,omitempty"`  // accepted: what does it instead; unsafe: what can go wrong
	Seed    string   `json:"seed,omitempty"`     // value in the seed document's list; "" when not in it
}

// IDs of the flags that Route reads. The others are read where they act.
const (
	flagCache     = "K_CACHE"
	flagUnsafe    = "EXPERIMENTAL_UNSAFE"
	flagKQ        = "KQ"
	flagRequire   = "ROUTE_REQUIRE"
	flagVariant   = "KQ_VARIANT"
	flagFullFA    = "KQ_FULL_FA"
	flagSplitK    = "DECODE_SPLITK"
	flagThreshold = "DECODE_SPLITK_THRESHOLD"
	flagSplitSize = "DECODE_SPLITK_SIZE"
)

// RequireValue is the one route name that GGML_CUDA_FA_ROUTE_REQUIRE takes.
const RequireValue = "rocm_q8k_dot4_kq"

const dot4Prefix = "GGML_CUDA_ROCM_Q8K_DOT4_"

// Flags returns the table of environment variables for kernels built with k:
// the defaults and some of the allowed values are kernel parameters.
func Flags(k recipe.Kernel) []Flag {
	bools := []string{"0", "1"}
	return []Flag{
		{ID: flagCache, Name: dot4Prefix + "PACKED16_K_CACHE", Kind: "bool", Allowed: bools, Default: "0", Status: Active, Seed: "1",
			Effect: "keep the K cache of the target context in packed16 where -ctk was not given; the same as -ctk packed16"},
		{ID: flagUnsafe, Name: "GGML_CUDA_ROCM_EXPERIMENTAL_UNSAFE", Kind: "bool", Allowed: bools, Default: "0", Status: Active, Seed: "1",
			Effect: "let the flags marked unsafe take effect; every route is on without it"},
		{ID: flagKQ, Name: dot4Prefix + "KQ", Kind: "bool", Allowed: bools, Default: "1", Status: Active, Seed: "1",
			Effect: "the dot4 routes; 0 refuses a packed16 K cache when the context is created, it never falls back"},
		{ID: flagRequire, Name: "GGML_CUDA_FA_ROUTE_REQUIRE", Kind: "name", Allowed: []string{RequireValue}, Status: Active, Seed: RequireValue,
			Effect: "refuse, with the reason, to create a context whose attention cannot take a dot4 route"},
		{ID: flagVariant, Name: dot4Prefix + "KQ_VARIANT", Kind: "name", Allowed: variantNames(), Default: k.PrefillVariant, Status: Active, Seed: VariantDot4,
			Effect: "the prefill kernel; auto takes the fastest safe one for the device"},
		{ID: flagFullFA, Name: dot4Prefix + "KQ_FULL_FA", Kind: "bool", Allowed: bools, Default: "0", Status: Active, Seed: "1",
			Effect: "f16-K mode: an f16 K is packed for each call and takes the dot4 routes (with " + dot4Prefix + "KQ not 0 and no packed16 cache asked for)"},
		{ID: "BLOCKFA_ASSUME_CAUSAL", Name: dot4Prefix + "BLOCKFA_ASSUME_CAUSAL", Kind: "bool", Allowed: bools, Default: "0", Status: Unsafe, Seed: "1",
			Effect:  "prefill takes every tile below the diagonal as visible without looking at the mask",
			Because: "wrong with reused cells, several sequences, sliding windows and non-causal models"},
		{ID: "QUANT_PREFILL_F16", Name: "GGML_CUDA_ROCM_QUANT_PREFILL_F16", Kind: "bool", Allowed: bools, Default: "0", Status: Accepted, Seed: "1",
			Effect:  "prefill on f16 copies of quantised V",
			Because: "the prefill kernel converts V tile by tile as it loads them, and upstream's kernels convert for themselves"},
		{ID: "DECODE_BN", Name: dot4Prefix + "DECODE_BN", Kind: "name", Allowed: []string{strconv.Itoa(k.DecodeBN)}, Default: strconv.Itoa(k.DecodeBN), Status: Active, Seed: "64",
			Note:   "the tile these kernels were built with, kernel.decode_bn of the recipe",
			Effect: "cells in the inner tile of the decode kernels"},
		{ID: flagSplitK, Name: dot4Prefix + "DECODE_SPLITK", Kind: "bool", Allowed: bools, Default: "1", Status: Active,
			Effect: "split-K for long decode; 0 keeps one workgroup per KV head at every depth"},
		{ID: flagThreshold, Name: dot4Prefix + "DECODE_SPLITK_THRESHOLD", Kind: "int", Min: 0, Max: 1 << 20, Default: strconv.Itoa(k.SplitKThreshold), Status: Active,
			Effect: "cells from which decode and verify go split-K"},
		{ID: flagSplitSize, Name: dot4Prefix + "DECODE_SPLITK_SIZE", Kind: "int", Min: k.Chunk, Max: 1 << 16, Step: k.Chunk, Default: strconv.Itoa(k.SplitSize), Status: Active,
			Note:   "whole chunks, kernel.chunk of the recipe, so that the result does not depend on it",
			Effect: fmt.Sprintf("cells one workgroup of split-K stage 1 visits; unset, what fills the device: %d, or less, where there are few, %d where there are many", k.SplitSize, k.SuperChunk)},
		{ID: "DECODE_TIMING", Name: dot4Prefix + "DECODE_TIMING", Kind: "bool", Allowed: bools, Default: "0", Status: Active,
			Effect: "log the time of each attention call at debug level; it waits for the call, so it slows decode down, and calls in captured graphs have no time: set GGML_CUDA_DISABLE_GRAPHS=1"},
		{ID: "K_SCALE_MODE", Name: "GGML_CUDA_ROCM_PACKED16_K_SCALE_MODE", Kind: "name", Allowed: []string{"absmax", "mse"}, Default: k.KScale, Status: Active,
			Effect: "how the scale of a K block is found: largest magnitude / 127, or one least-squares refit after that"},
		{ID: "MTP_PREFILL_CHUNK", Name: "LLAMA_MTP_PREFILL_CHUNK", Kind: "int", Min: 1, Max: 1 << 20, Status: Accepted, Seed: "1024",
			Effect:  "tokens of prompt the draft model takes at a time",
			Because: "upstream feeds the draft in batches of its own: use -b and -ub"},
		{ID: "MTP_PREFILL_FORCE_MMQ", Name: "LLAMA_MTP_PREFILL_FORCE_MMQ", Kind: "bool", Allowed: bools, Default: "0", Status: Accepted, Seed: "1",
			Effect:  "integer matrix kernels for the weights while the draft model reads the prompt",
			Because: "upstream picks them by device and shape: to force them build with GGML_CUDA_FORCE_MMQ"},
	}
}

// AllowedText says in words which values the flag takes.
func (f Flag) AllowedText() string {
	s := strings.Join(f.Allowed, ", ")
	if f.Kind == "int" {
		s = fmt.Sprintf("a whole number from %d to %d", f.Min, f.Max)
		if f.Step > 1 {
			s += fmt.Sprintf(", a multiple of %d", f.Step)
		}
	}
	if f.Note != "" {
		s += " (" + f.Note + ")"
	}
	return s
}

// value turns text into the flag's number: 0 or 1, the integer, or the index
// in Allowed.
func (f Flag) value(text string) (int, bool) {
	if f.Kind != "int" {
		for i, a := range f.Allowed {
			if a == text {
				return i, true
			}
		}
		return 0, false
	}
	if len(text) == 0 || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	ok := err == nil && n >= f.Min && n <= f.Max && (f.Step < 2 || n%f.Step == 0)
	return n, ok
}
