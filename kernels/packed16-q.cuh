#pragma once

// Quantises Q for one attention call.
//
// Tile: one warp owns one row of D values (before a prefill four, one after the other), lane i the D/32 neighbouring values from
// D/32*i on: a block of 32 is 4 lanes at D=256. No LDS. Written per row: D bytes of payload and D/32 f32 scales, by a kernel of their own to scratch that attention
// reads with wave-uniform addresses, or by the decode kernel itself to shared memory.
// The scale is absmax/127 in f32 (nothing is lost by storing it wider), a block below the normal range counts as
// zero, and a non-finite value makes the scale NaN. The stored scale includes the softmax scale and log2(e).

#include "packed16-quantize.cuh"

// The f32 Q of a call, with byte strides, and what its logits are scaled by.
struct packed16_q_view {
    const char * q;
    int64_t      nbq1, nbq2, nbq3; // query row, head, sequence
    float        scale_log2;
};

// The lane's values of a row; rows begin on 16 bytes.
template <int D>
static __device__ __forceinline__ void packed16_load_q(float (&x)[D/32], const char * row, const int lane) {
    if constexpr (D == 64) {
        const float2 v = ((const float2 *) row)[lane];
        x[0] = v.x;
        x[1] = v.y;
    } else {
#pragma unroll
        for (int i = 0; i < D/32; i += 4) {
            const float4 v = ((const float4 *) row)[(D/32*lane + i)/4];
            x[i + 0] = v.x;
            x[i + 1] = v.y;
            x[i + 2] = v.z;
            x[i + 3] = v.w;
        }
    }
}

// Quantises the row whose values the warp holds. payload begins on 8 bytes; scales are `apart` floats apart.
template <int D, int apart = 1>
static __device__ __forceinline__ void packed16_quantize_q_row(
        const float (&x)[D/32], int8_t * payload, float * scales, const int lane, const float scale_log2) {
    constexpr int n     = D/32; // values of a lane
    constexpr int lanes = 32/n; // lanes of a block

    uint32_t amax = packed16_absmax_bits(x);
#pragma unroll
    for (int offset = PACKED16_SCALE_ONCE ? WARP_SIZE/2 : lanes/2; offset > 0; offset >>= 1) { // scale_once: one scale for the row
        amax = max(amax, __shfl_xor_sync(0xFFFFFFFF, amax, offset, WARP_SIZE));
    }
    const bool  fault = amax >= 0x7F800000u;
    const float s     = packed16_div(__uint_as_float(amax), 127.0f);
    const float r     = fault || s < 1.17549435e-38f ? 0.0f : packed16_div(1.0f, s);

    int b[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
        b[i] = fault ? 0 : packed16_round(x[i], r);
    }
    payload += n*lane;
    if constexpr (D == 64) {
        *(uint16_t *) payload = (uint16_t) (((uint32_t) b[0] & 0xFF) | ((uint32_t) b[1] & 0xFF) << 8);
    } else {
#pragma unroll
        for (int i = 0; i < n; i += 4) {
            ((uint32_t *) payload)[i/4] = packed16_bytes(b[i], b[i + 1], b[i + 2], b[i + 3]);
        }
    }
    if (lane % lanes == 0) {
        scales[lane/lanes*apart] = fault ? __uint_as_float(0x7FC00000u) : r == 0.0f ? 0.0f : packed16_mul(s, scale_log2);
    }
}

// Quantises rows row0 .. of the n_rows = n_seq*n_head*nq, `most` of them, with one warp: query row by query row, then head by head. Where
// (g, q) of a KV head lands: g*stride_g + q*stride_q, see packed16-layout.cuh.
template <int D, int most>
static __device__ __forceinline__ void packed16_quantize_q_rows(
        const packed16_q_view & view, int * __restrict__ q_payload, float * __restrict__ q_scales, const int row0, const int n_rows,
        const int nq, const int n_head, const int gqa, const int stride_g, const int stride_q, const int lane) {
    int q     = row0 % nq;
    int head  = row0 / nq % n_head;
    int seq   = row0 / nq / n_head;
    int g     = head % gqa;
    int first = seq*n_head + head - g; // query head of the KV head

    float   x[most][D/32];
    int64_t out[most];
#pragma unroll
    for (int i = 0; i < most; ++i) {
        if (row0 + i < n_rows) { // the whole warp
            packed16_load_q<D>(x[i], view.q + q*view.nbq1 + head*view.nbq2 + seq*view.nbq3, lane);
        }
        out[i] = (int64_t) first*nq + g*stride_g + q*stride_q;
        if (++q == nq) {
            q = 0;
            if (++g == gqa) {
                g      = 0;
                first += gqa;
            }
            if (++head == n_head) {
                head = 0;
                ++seq;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < most; ++i) {
        if (row0 + i < n_rows) {
            packed16_quantize_q_row<D>(x[i], (int8_t *) q_payload + out[i]*D, q_scales + out[i]*(D/32), lane, view.scale_log2);
        }
    }
}

// Launch, for decode on vector units: grid (ceil(n_rows / 4)), block (32, 4). n_rows = n_seq*n_head*nq; columns q*gqa + g.
template <int D>
static __global__ void __launch_bounds__(128) packed16_quantize_q(
        const packed16_q_view view, int * __restrict__ q_payload, float * __restrict__ q_scales,
        const int n_rows, const int nq, const int n_head, const int gqa) {
    const int row = blockIdx.x*4 + threadIdx.y;
    if (row < n_rows) { // a whole warp
        packed16_quantize_q_rows<D, 1>(view, q_payload, q_scales, row, n_rows, nq, n_head, gqa, 1, gqa, threadIdx.x);
    }
}
