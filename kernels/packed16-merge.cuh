#pragma once

// Stage 2 of the decode side: merges the partial results of one column, in cell order.
//
// The tree is fixed by absolute cell numbers, whoever computed the partials:
//
//     chunk  chunk  ...  chunk | chunk ...          PACKED16_CHUNK cells each
//        \     |          /    |   \                folded left to right, from nothing
//           super-chunk        | super-chunk        PACKED16_SUPER_CHUNK cells each
//                    \         |   /                folded left to right, from nothing
//                         result
//
// A unit is what stage 1 wrote: a chunk (unit_chunks 1) or a whole super-chunk, folded by stage 1 with the same
// operations; folding one newcomer into nothing keeps its bits. Dead units are skipped without being read.
//
// Tile: one block per column, thread t owns dimension t. LDS: the fold factors of PACKED16_MERGE_BATCH units, computed
// by one thread in order (max and 2 exp2 each), then applied by all. Per unit: D*4 + 8 bytes read.

#include "packed16-layout.cuh"

#define PACKED16_MERGE_BATCH 64

// Where the partial results of column 0 of a (sequence, KV head) begin: acc [unit][column][D], meta [unit][column].
static __device__ __forceinline__ int64_t packed16_parts_row(const packed16_args & args, const int seq, const int kv) {
    return ((int64_t) seq*args.n_head_kv + kv)*args.n_units*(args.nq*args.gqa);
}

struct packed16_merge_smem {
    float a[PACKED16_MERGE_BATCH], b[PACKED16_MERGE_BATCH]; // fold of a unit into its super-chunk
    float A[PACKED16_MERGE_BATCH], B[PACKED16_MERGE_BATCH]; // fold of the super-chunk that ends here; A < 0: none ends
    float m, l;                                             // of the open super-chunk
    float M, L;                                             // of the result
};

// Merges one column with the first nthreads threads of the block (all threads must call).
template <int D, int nthreads>
static __device__ __forceinline__ void packed16_merge_column(
        packed16_merge_smem & smem, const float * __restrict__ parts, const float2 * __restrict__ meta,
        const float * __restrict__ sink, float * __restrict__ dst, const int n_units, const int n_cols, const int per_super) {
    constexpr int nout = D <= nthreads ? 1 : D/nthreads;
    const int  tid  = threadIdx.x;
    const bool mine = D >= nthreads || tid < D;

    float sup[nout] = {};
    float tot[nout] = {};
    if (tid == 0) {
        smem.m = PACKED16_MAX_FLOOR;
        smem.l = 0.0f;
        smem.M = PACKED16_MAX_FLOOR;
        smem.L = 0.0f;
    }
    for (int u0 = 0; u0 < n_units; u0 += PACKED16_MERGE_BATCH) {
        const int n = min(PACKED16_MERGE_BATCH, n_units - u0);
        // a and b carry (m, l) of each unit to the thread that folds
        for (int u = tid; u < n; u += nthreads) {
            const float2 ml = meta[(int64_t) (u0 + u)*n_cols];
            smem.a[u] = ml.x;
            smem.b[u] = ml.y;
        }
        __syncthreads();
        if (tid == 0) {
            float m = smem.m, l = smem.l, M = smem.M, L = smem.L;
            for (int u = 0; u < n; ++u) {
                const float mu = smem.a[u], lu = smem.b[u];
                float a, b;
                packed16_merge_factors(m, mu, a, b);
                l = packed16_merge_add(l, a, lu, b);
                smem.a[u] = a;
                smem.b[u] = mu == PACKED16_MAX_FLOOR && lu == 0.0f ? -1.0f : b; // dead: not to be read
                smem.A[u] = -1.0f;
                if ((u0 + u + 1) % per_super == 0 || u0 + u + 1 == n_units) {
                    packed16_merge_factors(M, m, a, b);
                    L = packed16_merge_add(L, a, l, b);
                    smem.A[u] = a;
                    smem.B[u] = b;
                    m = PACKED16_MAX_FLOOR;
                    l = 0.0f;
                }
            }
            smem.m = m;
            smem.l = l;
            smem.M = M;
            smem.L = L;
        }
        __syncthreads();
        if (mine) {
#pragma unroll 4
            for (int u = 0; u < n; ++u) {
                const float a = smem.a[u];
                const float b = smem.b[u];
#pragma unroll
                for (int i = 0; i < nout; ++i) {
                    const float part = b < 0.0f ? 0.0f : parts[(int64_t) (u0 + u)*n_cols*D + i*nthreads + tid];
                    sup[i] = packed16_merge_add(sup[i], a, part, fmaxf(b, 0.0f));
                }
                const float A = smem.A[u];
                if (A >= 0.0f) {
#pragma unroll
                    for (int i = 0; i < nout; ++i) {
                        tot[i] = packed16_merge_add(tot[i], A, sup[i], smem.B[u]);
                        sup[i] = 0.0f;
                    }
                }
            }
        }
        __syncthreads();
    }

    float a = 1.0f;
    float l = smem.L;
    if (sink) { // one more logit without a value
        float m = smem.M;
        float b;
        packed16_merge_factors(m, *sink*1.44269504f, a, b);
        l = packed16_merge_add(l, a, 1.0f, b);
    }
    // l is 0 only when every cell of the row is masked
    const float scale = l == 0.0f ? 0.0f : __fdiv_rn(a, l);
    if (mine) {
#pragma unroll
        for (int i = 0; i < nout; ++i) {
            dst[i*nthreads + tid] = __fadd_rn(__fmul_rn(tot[i], scale), 0.0f); // no negative zeros
        }
    }
    __syncthreads();
}

// Launch: grid (nq*gqa, n_head_kv, n_seq), block D.
// dst: f32 [seq][q][head][D]; sinks: n_head floats or null.
template <int D>
static __global__ void __launch_bounds__(D) packed16_merge(
        const float * __restrict__ parts, const float2 * __restrict__ meta, const float * __restrict__ sinks,
        float * __restrict__ dst, const packed16_args args) {
    __shared__ packed16_merge_smem smem;

    const int     col    = blockIdx.x;
    const int     kv     = blockIdx.y;
    const int     seq    = blockIdx.z;
    const int     n_cols = args.nq*args.gqa;
    const int     q      = col / args.gqa;
    const int     head   = kv*args.gqa + col % args.gqa;
    const int64_t row    = packed16_parts_row(args, seq, kv) + col;

    packed16_merge_column<D, D>(smem, parts + row*D, meta + row, sinks ? sinks + head : nullptr,
        dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D, args.n_units, n_cols,
        PACKED16_SUPER_CHUNK/PACKED16_CHUNK/args.unit_chunks);
}
