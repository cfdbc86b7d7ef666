#pragma once

// What the rest of the CUDA backend calls for packed16: both ops, and what they say about themselves.

#include "common.cuh"

// GGML_OP_PACK_K_PACKED16.
void ggml_cuda_op_pack_k_packed16(ggml_backend_cuda_context & ctx, ggml_tensor * dst);

// Reads the environment, and ends the load on a value that is not allowed. Called while the backend is registered.
void ggml_cuda_packed16_init();

// Runs FLASH_ATTN_EXT if a route of ours takes it: a packed16 K, or an f16 K in f16-K mode. False: upstream's.
bool ggml_cuda_packed16_flash_attn_ext(ggml_backend_cuda_context & ctx, ggml_tensor * dst);

enum ggml_cuda_packed16_answer {
    GGML_CUDA_PACKED16_NOT_OURS,  // ask upstream's kernels
    GGML_CUDA_PACKED16_SUPPORTED,
    GGML_CUDA_PACKED16_REFUSED,   // logged, once per reason
};

// For supports_op, both ops.
ggml_cuda_packed16_answer ggml_cuda_packed16_supports(int device, const ggml_tensor * op);

// Bytes of a FLASH_ATTN_EXT result and the scratch behind it; 0 when the call is not ours. Never less for fewer query
// rows or cells, so that a graph reserved for the largest batch has room for every smaller one.
size_t ggml_cuda_packed16_get_alloc_size(int device, const ggml_tensor * dst);
