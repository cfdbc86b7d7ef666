#pragma once

// Packs rows of K to packed16: the op that fills the cache, and the per-call pack of an f16 K.
//
// Tile: one thread owns one block of 32 values (64 or 128 bytes read with 16-byte loads, 32 bytes and one scale
// written); no LDS, no shuffles, so that the sums of the mse mode run in ascending order. Neighbouring threads own
// neighbouring blocks of a row. Per K row and head at D=256: 272 bytes written.

#include "packed16-quantize.cuh"

static __device__ __forceinline__ void packed16_read_block(float (&x)[32], const float * __restrict__ src) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float4 v = ((const float4 *) src)[i];
        x[4*i + 0] = v.x;
        x[4*i + 1] = v.y;
        x[4*i + 2] = v.z;
        x[4*i + 3] = v.w;
    }
}

static __device__ __forceinline__ void packed16_read_block(float (&x)[32], const half * __restrict__ src) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint4 v = ((const uint4 *) src)[i];
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            x[8*i + 2*j + 0] = packed16_half_bits(w[j]);
            x[8*i + 2*j + 1] = packed16_half_bits(w[j] >> 16);
        }
    }
}

static __device__ __forceinline__ void packed16_write_block(
        char * __restrict__ payload, char * __restrict__ scale, const float (&x)[32], const int mode) {
    uint32_t q[8];
    *(uint16_t *) scale = packed16_quantize_block(x, q, mode);
    ((uint4 *) payload)[0] = make_uint4(q[0], q[1], q[2], q[3]);
    ((uint4 *) payload)[1] = make_uint4(q[4], q[5], q[6], q[7]);
}

// GGML_OP_PACK_K_PACKED16: row t of src goes to row idxs[t] of the cache, all heads at once.
//
// Launch: grid (ceil(n_blocks*n_tokens / 64)), block 64. n_blocks = n_head_kv*D/32.
// src rows begin on 16 bytes; strides are in bytes.
template <typename T>
static __global__ void __launch_bounds__(64) packed16_pack_rows(
        const T * __restrict__ src, const int64_t * __restrict__ idxs, char * __restrict__ payload, char * __restrict__ scales,
        const int n_blocks, const int n_tokens, const int64_t nb_src, const int64_t nb_payload, const int64_t nb_scales,
        const int mode) {
    const int64_t i = (int64_t) blockIdx.x*64 + threadIdx.x;
    if (i >= (int64_t) n_blocks*n_tokens) {
        return;
    }
    const int token = i / n_blocks;
    const int block = i - (int64_t) token*n_blocks;
    const int64_t row = idxs[token];

    float x[32];
    packed16_read_block(x, (const T *) ((const char *) src + token*nb_src) + block*32);
    packed16_write_block(payload + row*nb_payload + block*32, scales + row*nb_scales + block*2, x, mode);
}

// f16-K mode: packs the K view of one attention call into contiguous scratch,
// payload [seq][head][cell][D] bytes and scales [seq][head][cell][D/32].
//
// Launch: grid (ceil(nk*D/32 / 64), n_head_kv, n_seq), block 64.
template <int D>
static __global__ void __launch_bounds__(64) packed16_pack_view(
        const char * __restrict__ K, char * __restrict__ payload, char * __restrict__ scales,
        const int nk, const int64_t nb1, const int64_t nb2, const int64_t nb3, const int mode) {
    const int64_t i = (int64_t) blockIdx.x*64 + threadIdx.x;
    if (i >= (int64_t) nk*(D/32)) {
        return;
    }
    const int64_t cell  = i / (D/32);
    const int     block = i % (D/32);
    const int64_t row   = ((int64_t) blockIdx.z*gridDim.y + blockIdx.y)*nk + cell;

    float x[32];
    packed16_read_block(x, (const half *) (K + cell*nb1 + blockIdx.y*nb2 + blockIdx.z*nb3) + block*32);
    packed16_write_block(payload + row*D + block*32, scales + (row*(D/32) + block)*2, x, mode);
}
