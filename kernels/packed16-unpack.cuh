#pragma once

// Prefill, variant f16: K and V as f16 for the backend's own attention kernel, which is the faster one while cells are few: then
// what counts is not attention but what surrounds it.
//
// Tile: a thread makes 8 neighbouring dimensions of K, and the 8 dimensions of one load of V, in whole words; D/8 threads to a
// cell, no LDS. Read per cell and KV head at D=256: 272 bytes of K, 144 of q4_0 V; written 512 and 512.
//
// The backend's kernel multiplies hidden cells by 0, and 0*NaN must not leak: what is not finite in f16 becomes 0 where no query of
// the call sees the cell. A value that is not finite in a cell that some query sees reaches all queries, as from upstream's caches.
// It also divides by the sum of the weights, which is 0 for a query that sees nothing: a call without sinks gets some that take no
// part in any other sum.

#include "packed16-mask.cuh"
#include "packed16-v-halves.cuh"

// Whether one of the queries of a sequence sees the cell. Rare, so slow.
static __device__ __forceinline__ bool packed16_cell_seen(const char * mask, const packed16_args & args, const int cell) {
    for (int q = 0; mask && q < args.nq; ++q) {
        if (((const uint16_t *) (mask + (int64_t) q*args.nbm1))[cell] != PACKED16_MASK_DEAD) {
            return true;
        }
    }
    return !mask;
}

#define PACKED16_NO_SINK (-1e30f) // above the least maximum of a row, far below every logit

// Launch: grid (ceil(nk*D/8 / 256), n_head_kv, n_seq), block 256. to_k, to_v: f16 [seq][kv][cell][D]; to_sinks: n_head floats.
template <int D, typename V_t>
static __global__ void __launch_bounds__(256) packed16_unpack(
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V, const char * __restrict__ mask,
        const float * __restrict__ sinks, half * __restrict__ to_k, half * __restrict__ to_v, float * __restrict__ to_sinks,
        const packed16_args args) {
    packed16_dependencies_trigger(); // what the backend launches next waits for the end of this before it reads

    const int i    = blockIdx.x*256 + threadIdx.x;
    const int cell = i / (D/8);
    const int l    = i % (D/8);
    const int kv   = blockIdx.y;
    const int seq  = blockIdx.z;
    if (seq == 0 && i < args.gqa) {
        const int head = kv*args.gqa + i;
        to_sinks[head] = sinks ? sinks[head] : PACKED16_NO_SINK;
    }
    if (cell >= args.nk) {
        return;
    }
    if (mask) {
        mask += seq % args.n_mask3 * args.nbm3;
    }
    const int64_t row = (((int64_t) seq*args.n_head_kv + kv)*args.nk + cell)*D;

    const int2  q = ((const int2 *) (K + kv*args.nbk2 + seq*args.nbk3 + (int64_t) cell*args.nbk1))[l];
    const float d = __half2float(((const half *) (K_scales + kv*args.nbs2 + seq*args.nbs3 + (int64_t) cell*args.nbs1))[l/4]);
    uint2 w[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const int x = j ? q.y : q.x;
        w[j].x = packed16_word(__float2half_rn((int8_t) (x >>  0)*d), __float2half_rn((int8_t) (x >>  8)*d));
        w[j].y = packed16_word(__float2half_rn((int8_t) (x >> 16)*d), __float2half_rn((int8_t) (x >> 24)*d));
    }
    V_t raw;
    raw.load(V + kv*args.nbv2 + seq*args.nbv3 + (int64_t) cell*args.nbv1, l);
    uint2 v[2];
    const bool bad_v = packed16_v_halves(raw, v);
    const bool bad_k = !packed16_finite_f16(127.0f*d);
    if ((bad_k || bad_v) && !packed16_cell_seen(mask, args, cell)) {
        w[0] = w[1] = v[0] = v[1] = make_uint2(0, 0);
    }
    *(uint4 *) (to_k + row + 8*l) = make_uint4(w[0].x, w[0].y, w[1].x, w[1].y);
    *(uint2 *) (to_v + row + V_t::dim(l, 0)) = v[0];
    *(uint2 *) (to_v + row + V_t::dim(l, 4)) = v[1];
}
