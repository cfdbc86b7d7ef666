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
// Tile: one block per column, thread t owns dimension t. LDS: states and fold factors of PACKED16_MERGE_BATCH units. The
// factors depend only on the maxima, so every unit has a thread that finds its own; what must run in cell order are one
// fused multiply-add per unit and dimension, fed by PACKED16_MERGE_AHEAD loads at a time. Per unit: D*4 + 8 bytes read.

#include "packed16-layout.cuh"

#define PACKED16_MERGE_BATCH 64
#define PACKED16_MERGE_AHEAD 16

// Where the partial results of column 0 of a (sequence, KV head) begin: acc [unit][column][D], meta [unit][column].
static __device__ __forceinline__ int64_t packed16_parts_row(const packed16_args & args, const int seq, const int kv) {
    return ((int64_t) seq*args.n_head_kv + kv)*args.n_units*(args.nq*args.gqa);
}

struct packed16_merge_smem {
    float m[PACKED16_MERGE_BATCH], l[PACKED16_MERGE_BATCH];         // of the units
    float m_upto[PACKED16_MERGE_BATCH];                             // maximum of the super-chunk's units so far
    float a[PACKED16_MERGE_BATCH], b[PACKED16_MERGE_BATCH];         // fold of a unit into its super-chunk
    float l_super[PACKED16_MERGE_BATCH];                            // at the last unit of a super-chunk: its l
    float a_super[PACKED16_MERGE_BATCH], b_super[PACKED16_MERGE_BATCH]; // and its fold into the result; a < 0 elsewhere
    float m_open, l_open;                                           // of a super-chunk that began in an earlier batch
    float m_result, l_result;
};

static_assert((PACKED16_SUPER_CHUNK/PACKED16_CHUNK & (PACKED16_SUPER_CHUNK/PACKED16_CHUNK - 1)) == 0,
    "packed16: super_chunk is not a power of two of chunks");

// Merges one column with the first nthreads threads of the block (all threads must call).
template <int D, int nthreads>
static __device__ __forceinline__ void packed16_merge_column(
        packed16_merge_smem & smem, const float * __restrict__ parts, const float2 * __restrict__ meta,
        const float * __restrict__ sink, float * __restrict__ dst, const int n_units, const int n_cols, const int per_super) {
    constexpr int nout = D <= nthreads ? 1 : D/nthreads;
    const int  tid  = threadIdx.x;
    const bool mine = D >= nthreads || tid < D;
    const int  mask = per_super - 1; // a power of two

    float sup[nout] = {};
    float tot[nout] = {};
    if (tid == 0) {
        smem.m_open   = PACKED16_MAX_FLOOR;
        smem.l_open   = 0.0f;
        smem.m_result = PACKED16_MAX_FLOOR;
        smem.l_result = 0.0f;
    }
    for (int u0 = 0; u0 < n_units; u0 += PACKED16_MERGE_BATCH) {
        const int n = min(PACKED16_MERGE_BATCH, n_units - u0);
        // First unit of u's super-chunk in this batch, and whether u is the last one of it.
        const auto first = [=](const int u) { return max(u - ((u0 + u) & mask), 0); };
        const auto last  = [=](const int u) { return ((u0 + u + 1) & mask) == 0 || u0 + u + 1 == n_units; };

        for (int u = tid; u < n; u += nthreads) {
            const float2 ml = meta[(int64_t) (u0 + u)*n_cols];
            smem.m[u] = ml.x;
            smem.l[u] = ml.y;
        }
        __syncthreads();

        const float m_open   = smem.m_open;
        const float l_open   = smem.l_open;
        const float m_result = smem.m_result;
        for (int u = tid; u < n; u += nthreads) {
            const int f = first(u);
            float     m = ((u0 + f) & mask) == 0 ? PACKED16_MAX_FLOOR : m_open;
            for (int i = f; i < u; ++i) {
                m = fmaxf(m, smem.m[i]);
            }
            float a, b;
            packed16_merge_factors(m, smem.m[u], a, b);
            smem.m_upto[u] = m;
            smem.a[u] = a;
            smem.b[u] = smem.m[u] == PACKED16_MAX_FLOOR && smem.l[u] == 0.0f ? -1.0f : b; // dead: not to be read
            smem.a_super[u] = -1.0f;
            smem.b_super[u] = 0.0f;
        }
        for (int u = n + tid; u < PACKED16_MERGE_BATCH; u += nthreads) { // past the last unit
            smem.a[u] = 1.0f;
            smem.b[u] = -1.0f;
            smem.a_super[u] = -1.0f;
            smem.b_super[u] = 0.0f;
        }
        __syncthreads();

        for (int u = tid; u < n; u += nthreads) {
            if (!last(u) && u != n - 1) {
                continue;
            }
            const int f = first(u);
            float     l = ((u0 + f) & mask) == 0 ? 0.0f : l_open;
            for (int i = f; i <= u; ++i) {
                l = packed16_merge_add(l, smem.a[i], smem.l[i], fmaxf(smem.b[i], 0.0f));
            }
            smem.l_super[u] = l;
            float m = m_result;
            for (int i = per_super - 1 - (u0 & mask); i < u; i += per_super) { // the last units before this one
                m = fmaxf(m, smem.m_upto[i]);
            }
            if (last(u)) {
                packed16_merge_factors(m, smem.m_upto[u], smem.a_super[u], smem.b_super[u]);
            }
            if (u == n - 1) {
                smem.m_open = smem.m_upto[u];
                smem.l_open = l;
                smem.m_result = m; // of the super-chunks that are complete
            }
        }
        __syncthreads();

        if (tid == 0) {
            float l = smem.l_result;
            for (int u = 0; u < n; ++u) {
                if (last(u)) {
                    l = packed16_merge_add(l, smem.a_super[u], smem.l_super[u], smem.b_super[u]);
                }
            }
            smem.l_result = l;
        }
        if (mine) {
            // No branches between the loads and their use, or the compiler moves each load behind them and they wait in turn.
            for (int u1 = 0; u1 < n; u1 += PACKED16_MERGE_AHEAD) {
                float part[PACKED16_MERGE_AHEAD][nout];
#pragma unroll
                for (int i = 0; i < PACKED16_MERGE_AHEAD; ++i) {
#pragma unroll
                    for (int o = 0; o < nout; ++o) {
                        part[i][o] = parts[(int64_t) (u0 + min(u1 + i, n - 1))*n_cols*D + o*nthreads + tid];
                    }
                }
#pragma unroll
                for (int i = 0; i < PACKED16_MERGE_AHEAD; ++i) {
                    const float a = smem.a[u1 + i];
                    const float b = smem.b[u1 + i];
                    const float A = smem.a_super[u1 + i];
                    const float B = smem.b_super[u1 + i];
#pragma unroll
                    for (int o = 0; o < nout; ++o) {
                        const float s = packed16_merge_add(sup[o], a, b < 0.0f ? 0.0f : part[i][o], fmaxf(b, 0.0f));
                        const float t = packed16_merge_add(tot[o], A, s, B);
                        tot[o] = A < 0.0f ? tot[o] : t;
                        sup[o] = A < 0.0f ? s : 0.0f;
                    }
                }
            }
        }
        __syncthreads();
    }

    float a = 1.0f;
    float l = smem.l_result;
    if (sink) { // one more logit without a value
        float m = smem.m_result;
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
}

// Launch: grid (nq*gqa, n_head_kv, n_seq), block D.
// dst: f32 [seq][q][head][D]; sinks: n_head floats or null.
template <int D>
static __global__ void __launch_bounds__(D, 1) packed16_merge(
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
