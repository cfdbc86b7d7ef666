#pragma once

// packed16 K cache: the parts that know its layout.
//
//   k         I32 [n_head_kv*D/4,  kv_size, n_stream]   four int8 a word, lowest dimension in the lowest byte
//   k_scales  F16 [n_head_kv*D/32, kv_size, n_stream]   one scale per 32 dimensions, in the buffer type of k
//
// A cell's row holds all heads, head 0 first, so row sizes alone say how a head is found. A layer is packed when its
// k_scales exist. Everything that packed16 cannot do is refused while the context is created.

#include "llama-packed16-name.h"

#include "ggml-backend.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

class llama_io_read_i;
class llama_io_write_i;

struct llama_model;
struct llama_hparams;
struct llama_context_params;

// Elements of one K row in the cache of this type, for n_embd_k_gqa values of K.
uint32_t llama_packed16_row_size(ggml_type type_k, uint32_t n_embd_k_gqa);

// Whether the K rotation, made for quantised caches, is meant for this type: for packed16 only where the recipe says so.
bool llama_packed16_rotates(ggml_type type_k);

// The scales that belong to payload k, in the same ggml context and with the same number of cells and streams.
ggml_tensor * llama_packed16_new_scales(ggml_context * ctx, const ggml_tensor * k);

// The scales of each stream alone.
std::vector<ggml_tensor *> llama_packed16_streams(ggml_context * ctx, ggml_tensor * k_scales);

// View of cells [0, n_kv) of ns streams from s0: [n_embd_head/per, n_head_kv, n_kv, ns], per = 4 for the payload and 32
// for the scales.
ggml_tensor * llama_packed16_view(ggml_context * ctx, ggml_tensor * t, int64_t n_head_kv, int64_t n_kv, uint32_t s0, uint32_t ns);

// Store k_cur [n_embd_head, n_head_kv, n_tokens] into the rows k_idxs of all streams taken as one.
ggml_tensor * llama_packed16_cpy_k(ggml_context * ctx, ggml_tensor * k, ggml_tensor * k_scales, ggml_tensor * k_cur, ggml_tensor * k_idxs);

// Model-wide conditions of a packed16 context. Turns flash attention on where it was left to llama.cpp. On refusal logs
// one line that says what, where and what to use instead, and returns false.
bool llama_packed16_prepare(const llama_model & model, llama_context_params & params);

// Conditions of one layer whose K is about to be allocated as packed16; dev is the device that holds it, null for the
// CPU. Asks the device for both operations in the shapes that this cache will produce. Throws with the reason.
void llama_packed16_check_layer(const llama_model & model, const llama_hparams & hparams, uint32_t il, ggml_type type_v,
        uint32_t kv_size, uint32_t n_stream, ggml_backend_dev_t dev);

// Conditions of one attention as the graph builds it: a packed K without its scales, or with something only the
// unfused path computes. Contexts build their graphs on creation, so this too refuses there. Throws with the reason.
void llama_packed16_check_attn(const ggml_tensor * k, const ggml_tensor * k_scales, bool flash_attn, bool kq_b, bool v_mla, int il);

// A graph reads the payload of layer il and leaves its scales behind. Throws.
[[noreturn]] void llama_packed16_refuse_plain_k(int il);

// Scales of one stream in a saved state, after all payloads: type, bytes per cell, then the cells of ranges
// [first, second). Reading puts them into the cells idxs, and logs and returns false where type or row size differ.
void llama_packed16_state_write(llama_io_write_i & io, ggml_tensor * k_scales, const std::vector<std::pair<uint32_t, uint32_t>> & ranges);
bool llama_packed16_state_read (llama_io_read_i  & io, ggml_tensor * k_scales, uint32_t il, const std::vector<uint32_t> & idxs, bool contiguous);

// The start-up line: exact bytes of one cache.
void llama_packed16_log(size_t payload, size_t scales, size_t v, ggml_type type_v, uint32_t n_cells, uint32_t n_stream, size_t n_layers);
