#pragma once

// Prefill, variant blockfa_recthist_v4_single: one launch, int8 dot products on the vector units, mask tiles by class.
//
// Tile: 8 warps; BM query rows of gqa_group query heads of one KV head (BM*group rows) against BN cells at a time.
//
//     QK        warp w owns BM*group/8 rows, lane t the cells t, t+32, ...: D/4 dot4 per (row, cell), Q wave-uniform (SGPRs on
//               AMD, broadcast from LDS elsewhere), K from LDS, where it was put with coalesced 16-byte loads
//               (k_staging none: straight from memory, every warp the same rows)
//     softmax   inside the warp that owns the row: 5 shuffles for the maximum; the sum stays in the lanes until the end
//     PV        lane t owns 8 dims (4 at 4t, 4 at D/2 + 4t) of all rows of its warp; at D < 256 groups of D/8 lanes take
//               every (256/D)th pair of cells and are added up once at the end: 64 accumulators at 8 rows
//
// LDS at D=256, BM 64, BN 64: K 64*(256+16) + scales 1024, reused for 32 rows of V as f16 pairs of cells
// (half2 = dim d of cells 2i, 2i+1); weights 4 KiB (f16, v_dot2) or 8 KiB (f32). Elsewhere than AMD also Q, 18 KiB.
// Bytes per cell and KV head: 272 of K, 144 of q4_0 V, read once per BM*group rows.
// Instructions per (row, cell) at D=256: 64 dot4, 16 fma, 256 fma (or 128 v_dot2) and about 1/8 of staging.
//
// A hidden cell has weight 0, and 0*NaN must not leak: staging replaces values that are not finite in f16 by 0 and
// notes their cells; those, if any, are then added in f32 for the rows that give them a weight.

#include "packed16-mask.cuh"
#include "packed16-qk.cuh"
#include "packed16-v.cuh"

#define PACKED16_PREFILL_WARPS   8
#define PACKED16_PREFILL_THREADS (PACKED16_PREFILL_WARPS*WARP_SIZE)
#define PACKED16_PREFILL_V_ROWS  32 // V rows staged at a time: a cell per lane

#ifndef PACKED16_PV_DOT2
#ifdef GGML_USE_HIP
#define PACKED16_PV_DOT2 1 // weights in f16, two cells per v_dot2_f32_f16
#else
#define PACKED16_PV_DOT2 0 // weights in f32
#endif // GGML_USE_HIP
#endif // PACKED16_PV_DOT2

#if PACKED16_PV_DOT2
typedef half  packed16_weight;
typedef half2 packed16_weight2;
#else
typedef float  packed16_weight;
typedef float2 packed16_weight2;
#endif // PACKED16_PV_DOT2

template <int D, int group>
struct packed16_prefill_smem {
    static constexpr int rows = PACKED16_BM*group;           // rows of the block
    static constexpr int nr   = rows/PACKED16_PREFILL_WARPS; // rows of a warp

    union {
        struct {
            alignas(16) int4     k[PACKED16_K_STAGING_LDS ? PACKED16_BN : 1][D/16 + 1]; // 16 bytes of padding: no bank conflicts by rows
            alignas(16) uint32_t ks[PACKED16_K_STAGING_LDS ? PACKED16_BN : 1][D/64];
        };
        alignas(16) uint32_t v[PACKED16_PREFILL_V_ROWS/2][D]; // two halves: rows 2i and 2i+1
    };
    alignas(16) packed16_weight2 p[PACKED16_PREFILL_WARPS][PACKED16_PREFILL_V_ROWS/2][nr];
    unsigned int     bad; // cells of the V tile with values that are not finite in f16
#if PACKED16_Q_IN_SMEM
    alignas(16) int q[rows][D/4];
    float           qs[rows][D/32];
#endif // PACKED16_Q_IN_SMEM
};

// acc += v.x*w.x + v.y*w.y
static __device__ __forceinline__ void packed16_pair(float & acc, const half2 v, const half2 w) {
    ggml_cuda_mad(acc, v, w);
}
static __device__ __forceinline__ void packed16_pair(float & acc, const float2 v, const float2 w) {
    acc = fmaf(v.x, w.x, fmaf(v.y, w.y, acc));
}

#if PACKED16_PV_DOT2
static __device__ __forceinline__ half2 packed16_values(const half2 v) { return v; }
static __device__ __forceinline__ half  packed16_to_weight(const float p) { return __float2half_rn(p); }
static __device__ __forceinline__ float packed16_from_weight(const half p) { return __half2float(p); }
#else
static __device__ __forceinline__ float2 packed16_values(const half2 v) { return __half22float2(v); }
static __device__ __forceinline__ float  packed16_to_weight(const float p) { return p; }
static __device__ __forceinline__ float  packed16_from_weight(const float p) { return p; }
#endif // PACKED16_PV_DOT2

// Stages V rows k0 .. k0+31 as f16 pairs; rows past the last cell repeat it (their weight is 0).
template <int D, typename V_t, int group>
static __device__ __forceinline__ void packed16_stage_v(
        packed16_prefill_smem<D, group> & smem, const char * __restrict__ V, const int nbv1, const int k0, const int nk) {
    for (int i = threadIdx.y*WARP_SIZE + threadIdx.x; i < PACKED16_PREFILL_V_ROWS/2*(D/8); i += PACKED16_PREFILL_THREADS) {
        const int pair = i / (D/8);
        const int l    = i % (D/8);

        V_t raw[2];
        raw[0].load(V + (int64_t) min(k0 + 2*pair + 0, nk - 1)*nbv1, l);
        raw[1].load(V + (int64_t) min(k0 + 2*pair + 1, nk - 1)*nbv1, l);
        float v[2][8];
        raw[0].unpack(v[0]);
        raw[1].unpack(v[1]);

        unsigned int bad = 0;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (!packed16_finite_f16(v[r][j])) {
                    v[r][j] = 0.0f;
                    bad |= 1u << (2*pair + r);
                }
            }
        }
        if (bad) {
            atomicOr(&smem.bad, bad);
        }
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            uint32_t w[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                w[e] = packed16_word(__float2half_rn(v[0][j + e]), __float2half_rn(v[1][j + e]));
            }
            *(uint4 *) &smem.v[pair][V_t::dim(l, j)] = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}

// Launch: grid (ceil(nq / PACKED16_BM), n_head/group, n_seq), block (32, 8). group divides gqa.
//   Q, Q_scales  columns g*nq + q; PACKED16_BM rows past the last one must be readable
//   classes      of PACKED16_BM rows and PACKED16_BN cells, or null: then every tile is full if mask is null, and mixed if not
//   dst          f32 [seq][q][head][D]; sinks: n_head floats or null
template <int D, typename V_t, int group>
static __global__ void PACKED16_LAUNCH_BOUNDS(PACKED16_PREFILL_THREADS, 4, 1) packed16_prefill(
        const int * __restrict__ Q, const float * __restrict__ Q_scales,
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask, const uint8_t * __restrict__ classes, const float * __restrict__ sinks,
        float * __restrict__ dst, const packed16_args args) {
    constexpr int nr    = packed16_prefill_smem<D, group>::nr;
    constexpr int cells = PACKED16_BN/WARP_SIZE; // of a lane
    constexpr int lanes = D/8;                   // that share a V row
    static_assert(PACKED16_BN % WARP_SIZE == 0, "packed16: bn is not whole warps of cells");
    static_assert(PACKED16_BM*group % PACKED16_PREFILL_WARPS == 0, "packed16: bm*gqa_group is not whole rows for each warp");
    static_assert(sizeof(packed16_prefill_smem<D, group>) <= 48*1024, "packed16: the prefill tile does not fit in shared memory");

    __shared__ packed16_prefill_smem<D, group> smem;

    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = packed16_uniform(threadIdx.y);
    const int tid  = warp*WARP_SIZE + lane;
    const int q0   = blockIdx.x*PACKED16_BM;
    const int head0 = blockIdx.y*group;
    const int kv   = head0 / args.gqa;
    const int seq  = blockIdx.z;

    K        += kv*args.nbk2 + seq*args.nbk3;
    K_scales += kv*args.nbs2 + seq*args.nbs3;
    V        += kv*args.nbv2 + seq*args.nbv3;
    const int slice = seq % args.n_mask3;
    if (mask) {
        mask += slice*args.nbm3;
    }
    const int n_tiles = (args.nk + PACKED16_BN - 1)/PACKED16_BN;
    classes = packed16_classes_of(classes, slice, gridDim.x, blockIdx.x, args.nk, PACKED16_BN);

    // Row r of the block is query row q0 + r % BM of head head0 + r / BM.
    const int64_t q_block = ((int64_t) seq*args.n_head + head0)*args.nq + q0;
#if PACKED16_Q_IN_SMEM
    for (int i = tid; i < PACKED16_BM*group*(D/16); i += PACKED16_PREFILL_THREADS) {
        const int r = i / (D/16);
        ((int4 *) smem.q[r])[i % (D/16)] =
            ((const int4 *) Q)[(q_block + r/PACKED16_BM*args.nq + min(r%PACKED16_BM, args.nq - q0 - 1))*(D/16) + i % (D/16)];
    }
    for (int i = tid; i < PACKED16_BM*group*(D/32); i += PACKED16_PREFILL_THREADS) {
        const int r = i / (D/32);
        smem.qs[r][i % (D/32)] = Q_scales[(q_block + r/PACKED16_BM*args.nq + min(r%PACKED16_BM, args.nq - q0 - 1))*(D/32) + i % (D/32)];
    }
#else
    static_assert(PACKED16_BM % nr == 0, "packed16: the rows of a warp belong to two heads");
    const int64_t q_row = q_block + warp*nr/PACKED16_BM*args.nq + warp*nr%PACKED16_BM;
    Q        += q_row*(D/4);
    Q_scales += q_row*(D/32);
#endif // PACKED16_Q_IN_SMEM

    float acc[nr][8] = {};
    float m[nr];
    float l[nr] = {}; // of this lane's cells
#pragma unroll
    for (int i = 0; i < nr; ++i) {
        m[i] = PACKED16_MAX_FLOOR;
    }

#pragma unroll 1
    for (int tile = 0; tile < n_tiles; ++tile) {
        const int k0 = tile*PACKED16_BN;
        const int kind = classes ? classes[tile] : mask || k0 + PACKED16_BN > args.nk ? PACKED16_TILE_MIXED : PACKED16_TILE_FULL;
        if (kind == PACKED16_TILE_DEAD) {
            continue;
        }

        if constexpr (PACKED16_K_STAGING_LDS) {
            for (int i = tid; i < PACKED16_BN*(D/16); i += PACKED16_PREFILL_THREADS) {
                const int r = i / (D/16);
                smem.k[r][i % (D/16)] = ((const int4 *) (K + (int64_t) min(k0 + r, args.nk - 1)*args.nbk1))[i % (D/16)];
            }
            for (int i = tid; i < PACKED16_BN*(D/64); i += PACKED16_PREFILL_THREADS) {
                const int r = i / (D/64);
                smem.ks[r][i % (D/64)] = ((const uint32_t *) (K_scales + (int64_t) min(k0 + r, args.nk - 1)*args.nbs1))[i % (D/64)];
            }
            __syncthreads();
        }

        float s[cells][nr];
        {
            const char * rows[cells];
            const char * srows[cells];
#pragma unroll
            for (int c = 0; c < cells; ++c) {
                if constexpr (PACKED16_K_STAGING_LDS) {
                    rows[c]  = (const char *) smem.k[c*WARP_SIZE + lane];
                    srows[c] = (const char *) smem.ks[c*WARP_SIZE + lane];
                } else {
                    const int64_t k = min(k0 + c*WARP_SIZE + lane, args.nk - 1);
                    rows[c]  = K        + k*args.nbk1;
                    srows[c] = K_scales + k*args.nbs1;
                }
            }
            packed16_k<D, 1, cells, 1> k;
            k.start(rows, srows, 0);
#if PACKED16_Q_IN_SMEM
            packed16_qk(s, k, smem.q[warp*nr], smem.qs[warp*nr], 0);
#else
            packed16_qk(s, k, Q, Q_scales, 0);
#endif // PACKED16_Q_IN_SMEM
        }

        if (kind == PACKED16_TILE_MIXED) {
            const int zero = packed16_zero_after<1>(s, 0); // or the rows' addresses would wait in scalar registers from tile to tile
#pragma unroll
            for (int i = 0; i < nr; ++i) {
                const char * row = mask ? mask + (int64_t) min(q0 + (warp*nr + i)%PACKED16_BM + zero, args.nq - 1)*args.nbm1 : nullptr;
#pragma unroll
                for (int c = 0; c < cells; ++c) {
                    const int k = k0 + c*WARP_SIZE + lane;
                    uint32_t bits = PACKED16_MASK_DEAD;
                    if (k < args.nk) {
                        bits = row ? ((const uint16_t *) row)[k] : 0;
                    }
                    s[c][i] = bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : fmaf(packed16_half_bits(bits), PACKED16_LOG2E, s[c][i]);
                }
            }
        }

#pragma unroll
        for (int i = 0; i < nr; ++i) {
            float top = m[i];
#pragma unroll
            for (int c = 0; c < cells; ++c) {
                top = fmaxf(top, s[c][i]);
            }
            top = warp_reduce_max(top);
            const float a = packed16_exp2(m[i] - top);
            m[i] = top;
            l[i] *= a;
#pragma unroll
            for (int c = 0; c < cells; ++c) {
                s[c][i] = packed16_exp2(s[c][i] - top);
                l[i] += s[c][i];
            }
            if (a != 1.0f) { // the same in all lanes
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    acc[i][j] *= a;
                }
            }
        }

#pragma unroll
        for (int c = 0; c < cells; ++c) {
            __syncthreads(); // K, or the V rows before these, are no longer read
            if (tid == 0) {
                smem.bad = 0;
            }
            __syncthreads();
            packed16_stage_v<D, V_t, group>(smem, V, args.nbv1, k0 + c*WARP_SIZE, args.nk);
#pragma unroll
            for (int i = 0; i < nr; ++i) {
                ((packed16_weight *) &smem.p[warp][lane/2][i])[lane%2] = packed16_to_weight(s[c][i]);
            }
            __syncthreads();

            const int sub = lane % lanes;
#pragma unroll 2
            for (int pair0 = 0; pair0 < PACKED16_PREFILL_V_ROWS/2; pair0 += WARP_SIZE/lanes) {
                const int pair = pair0 + lane/lanes;
                const uint4 h0 = *(const uint4 *) &smem.v[pair][4*sub];
                const uint4 h1 = *(const uint4 *) &smem.v[pair][D/2 + 4*sub];
                const uint32_t h[8] = {h0.x, h0.y, h0.z, h0.w, h1.x, h1.y, h1.z, h1.w};
#pragma unroll
                for (int i = 0; i < nr; ++i) {
                    const packed16_weight2 w = smem.p[warp][pair][i];
#pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        packed16_pair(acc[i][j], packed16_values(packed16_halves(h[j])), w);
                    }
                }
            }

            if (smem.bad) {
#pragma unroll 1
                for (int r = 0; r < PACKED16_PREFILL_V_ROWS; ++r) {
                    if (!(smem.bad >> r & 1) || lane/lanes != 0) {
                        continue;
                    }
                    float v[8];
                    const char * row = V + (int64_t) min(k0 + c*WARP_SIZE + r, args.nk - 1)*args.nbv1;
#pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        v[j] = V_t::value(row, (j < 4 ? 0 : D/2 - 4) + 4*sub + j);
                    }
#pragma unroll
                    for (int i = 0; i < nr; ++i) {
                        const float p = packed16_from_weight(((const packed16_weight *) &smem.p[warp][r/2][i])[r%2]);
#pragma unroll
                        for (int j = 0; j < 8; ++j) {
                            if (p != 0.0f && !packed16_finite_f16(v[j])) {
                                acc[i][j] = fmaf(p, v[j], acc[i][j]);
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < nr; ++i) {
        const int r    = warp*nr + i;
        const int q    = q0 + r%PACKED16_BM;
        const int head = head0 + r/PACKED16_BM;

        float sum = warp_reduce_sum(l[i]);
        float a   = 1.0f;
        if (sinks) { // one more logit without a value
            float top = m[i];
            float b;
            packed16_merge_factors(top, packed16_sink_logit(sinks[head]), a, b);
            sum = packed16_merge_add(sum, a, 1.0f, b);
        }
        // sum is 0 only when every cell of the row is masked
        const float scale = sum == 0.0f ? 0.0f : __fdiv_rn(a, sum);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
#pragma unroll
            for (int offset = lanes; offset < WARP_SIZE; offset *= 2) {
                acc[i][j] += __shfl_xor_sync(0xFFFFFFFF, acc[i][j], offset, WARP_SIZE);
            }
            acc[i][j] *= scale;
        }
        if (q < args.nq && lane < lanes) {
            float * out = dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D;
            *(float4 *) (out + 4*lane)       = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
            *(float4 *) (out + D/2 + 4*lane) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
        }
    }
}
