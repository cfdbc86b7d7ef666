#pragma once

// Quantises Q for one attention call.
//
// Tile: one warp owns one row of D values, lane i value i of each block of 32. No LDS. Written per row: D bytes of
// payload and D/32 f32 scales, to scratch that the attention kernels read with wave-uniform addresses.
// The scale is absmax/127 in f32 (nothing is lost by storing it wider), a block below the normal range counts as
// zero, and a non-finite value makes the scale NaN. The stored scale includes the softmax scale and log2(e).

#include "packed16-quantize.cuh"

// Launch: grid (ceil(n_rows / 4)), block (32, 4). n_rows = n_seq*n_head*nq.
// Q: f32, byte strides nbq1 (query row), nbq2 (head), nbq3 (sequence).
// stride_g, stride_q: where (g, q) of a KV head lands, see packed16-layout.cuh: decode 1, gqa; prefill nq, 1.
template <int D>
static __global__ void __launch_bounds__(128) packed16_quantize_q(
        const char * __restrict__ Q, int * __restrict__ q_payload, float * __restrict__ q_scales,
        const int n_rows, const int nq, const int n_head, const int gqa, const int stride_g, const int stride_q,
        const int64_t nbq1, const int64_t nbq2, const int64_t nbq3, const float scale_log2) {
    const int row = blockIdx.x*4 + threadIdx.y;
    if (row >= n_rows) {
        return; // a whole warp
    }
    const int lane = threadIdx.x;
    const int q    = row % nq;
    const int head = row / nq % n_head;
    const int seq  = row / nq / n_head;

    const float * src = (const float *) (Q + q*nbq1 + head*nbq2 + seq*nbq3);
    const int64_t out = (int64_t) (seq*n_head + head/gqa*gqa)*nq + head%gqa*stride_g + q*stride_q;

    float    x[D/32];
    uint32_t amax[D/32];
#pragma unroll
    for (int b = 0; b < D/32; ++b) {
        x[b]    = src[b*32 + lane];
        amax[b] = __float_as_uint(x[b]) & 0x7FFFFFFFu;
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) {
            amax[b] = max(amax[b], __shfl_xor_sync(0xFFFFFFFF, amax[b], offset, WARP_SIZE));
        }
    }
    if constexpr (PACKED16_SCALE_ONCE) { // one scale for the row
#pragma unroll
        for (int b = 1; b < D/32; ++b) {
            amax[0] = max(amax[0], amax[b]);
        }
#pragma unroll
        for (int b = 1; b < D/32; ++b) {
            amax[b] = amax[0];
        }
    }
#pragma unroll
    for (int b = 0; b < D/32; ++b) {
        const bool  fault = amax[b] >= 0x7F800000u;
        const float s     = packed16_div(__uint_as_float(amax[b]), 127.0f);
        const float r     = fault || s < 1.17549435e-38f ? 0.0f : packed16_div(1.0f, s);
        ((int8_t *) q_payload)[out*D + b*32 + lane] = (int8_t) (fault ? 0 : packed16_round(x[b], r));
        if (lane == 0) {
            q_scales[out*(D/32) + b] = fault ? __uint_as_float(0x7FC00000u) : r == 0.0f ? 0.0f : packed16_mul(s, scale_log2);
        }
    }
}
