#pragma once

// Decode and verify: up to 8 query rows, all query heads of a KV head, one K/V stream.
//
// A column is one (query row, query head) pair; a block takes ncols columns of one KV head and a run of chunks of
// PACKED16_CHUNK cells. Every chunk gives one partial result (m, l, acc) per column whatever the rest of the launch
// looks like, and partials are folded in the fixed tree of packed16-merge.cuh, so that the output bits of a row do not
// depend on nq, on the other rows, on the split or on the route. A chunk that is dead for a column folds as an
// exact no-op; one that is dead for the whole block is not read.
//
// Tile, BN = PACKED16_DECODE_BN threads, one chunk at a time:
//
//     QK        thread t owns cell t of each BN cells: D/4 dot4 per column, 16-byte loads, then logits to LDS
//     softmax   a warp owns a column: CHUNK/32 cells per lane, 5+5 shuffles; weights to LDS, factors of the fold to LDS
//     PV        D/8 lanes own a V row, 8 dims each; BN*8/D groups of rows; acc[ncols][8] in registers
//     fold      the groups' sums meet in LDS, PACKED16_RED_COLS columns at a time; thread t keeps its share of the
//               running result: ncols*D/BN registers
//
// LDS: ncols*CHUNK*4 bytes of weights and BN*8*PACKED16_RED_COLS*4 of sums: 3 + 4 KiB for 6 columns and BN 64.
// Bytes per cell and KV head at D=256: 272 of K, 144 of q4_0 V, read once for all columns of the block.
// Instructions per (query head, cell) at 6 columns: 64 dot4 and 16 fma (QK); 256 fma and 21/6*32 unpack (PV).
//
// A hidden cell has weight 0, and 0*NaN must not leak: when the sums of a chunk are not all finite, the chunk is
// summed again and values with weight 0 are left out. Costs one check of the sums per chunk.

#include "packed16-merge.cuh"
#include "packed16-qk.cuh"
#include "packed16-v.cuh"

#define PACKED16_RED_COLS 2

#ifndef PACKED16_DECODE_AHEAD
#define PACKED16_DECODE_AHEAD 3 // blocks of 32 bytes per K row in flight
#endif // PACKED16_DECODE_AHEAD

// Values a lane needs of V at a time: at least 4 rows, so that weights are read 16 bytes wide.
static constexpr __host__ __device__ int packed16_v_rows(const int D) {
    return PACKED16_V_SUB_TILE*D/(8*PACKED16_DECODE_BN) > 4 ? PACKED16_V_SUB_TILE*D/(8*PACKED16_DECODE_BN) : 4;
}

template <int D, int ncols>
struct packed16_decode_smem {
    static constexpr int BN     = PACKED16_DECODE_BN;
    static constexpr int nred   = ncols < PACKED16_RED_COLS ? ncols : PACKED16_RED_COLS;
    static constexpr int rounds = ncols/nred;
    static constexpr int nout   = (nred*D + BN - 1)/BN; // outputs of a thread in one round

    // Column, within a round, of output o of thread t: known at compile time unless a column is narrower than the block.
    static __device__ __forceinline__ int column(const int o, const int t) { return D % BN == 0 ? o*BN/D : (o*BN + t)/D; }

    union {
        struct {
            float p[ncols][PACKED16_CHUNK];    // logits, then weights
            float red[BN*8/D][nred][D];        // sums of the groups
            float m[ncols], l[ncols];          // running state, kept by the lane that owns the column
            float a[ncols], b[ncols];          // factors of this chunk's fold
            int   alive[2][BN/WARP_SIZE];      // by parity of the chunk
            int   redo[2][BN/WARP_SIZE];
        };
        packed16_merge_smem merge;
    };
#if PACKED16_Q_IN_SMEM
    int   q[ncols][D/4];
    float qs[ncols][D/32];
#endif // PACKED16_Q_IN_SMEM
};

// acc[c][i] = sum of weight*value over this group's rows of the chunk.
template <int D, typename V_t, int ncols, bool guard>
static __device__ __forceinline__ void packed16_pv(
        float (&acc)[ncols][8], const float (&p)[ncols][PACKED16_CHUNK], const char * __restrict__ V, const int64_t nbv1,
        const int k0, const int nk) {
    constexpr int lanes = D/8;
    constexpr int step  = packed16_v_rows(D);
    constexpr int pass  = step*PACKED16_DECODE_BN/lanes;
    static_assert(PACKED16_CHUNK % pass == 0, "packed16: a chunk is not whole passes over V");

    const int lane = threadIdx.x % lanes;
    const int row0 = threadIdx.x / lanes * step;

#pragma unroll
    for (int c = 0; c < ncols; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            acc[c][i] = 0.0f;
        }
    }
    // Rows past the last cell have weight 0; they read the last row again.
#pragma unroll 1
    for (int k = row0; k < PACKED16_CHUNK; k += pass) {
        V_t raw[step];
#pragma unroll
        for (int r = 0; r < step; ++r) {
            raw[r].load(V + (int64_t) min(k0 + k + r, nk - 1)*nbv1, lane);
        }
#pragma unroll
        for (int r4 = 0; r4 < step; r4 += 4) {
            float v[4][8];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                raw[r4 + r].unpack(v[r]);
            }
#pragma unroll
            for (int c = 0; c < ncols; ++c) {
                const float4 w4 = *(const float4 *) &p[c][k + r4];
                const float  w[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
                for (int r = 0; r < 4; ++r) {
#pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        acc[c][i] = fmaf(w[r], guard && w[r] == 0.0f ? 0.0f : v[r][i], acc[c][i]);
                    }
                }
            }
        }
    }
}

// part[r][o] = the chunk's sum for output o*BN + t of the nred columns of round r. Returns whether all of mine are finite.
template <typename V_t, bool guard, int D, int ncols, int rounds, int nout>
static __device__ __forceinline__ bool packed16_chunk_sums(
        float (&part)[rounds][nout], packed16_decode_smem<D, ncols> & smem,
        const char * __restrict__ V, const int nbv1, const int k0, const int nk) {
    constexpr int BN   = PACKED16_DECODE_BN;
    constexpr int nred = packed16_decode_smem<D, ncols>::nred;

    const int tid   = threadIdx.x;
    const int lane  = tid % (D/8);
    const int group = tid / (D/8);

    float acc[ncols][8];
    packed16_pv<D, V_t, ncols, guard>(acc, smem.p, V, nbv1, k0, nk);

    bool finite = true;
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int c = 0; c < nred; ++c) {
#pragma unroll
            for (int i = 0; i < 8; i += 4) {
                *(float4 *) &smem.red[group][c][V_t::dim(lane, i)] =
                    make_float4(acc[r*nred + c][i + 0], acc[r*nred + c][i + 1], acc[r*nred + c][i + 2], acc[r*nred + c][i + 3]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int o = 0; o < nout; ++o) {
            float sum = 0.0f;
            if (nred*D % BN == 0 || o*BN + tid < nred*D) {
                const float * red = &smem.red[0][0][0] + o*BN + tid;
                sum = red[0];
#pragma unroll
                for (int g = 1; g < BN*8/D; ++g) {
                    sum += red[g*nred*D];
                }
            }
            part[r][o] = sum;
            finite = finite && packed16_finite(sum);
        }
        __syncthreads();
    }
    return finite;
}

// Launch: grid (ceil(chunks / args.chunks_per_cta), n_head_kv*ceil(nq*gqa / ncols), n_seq), block PACKED16_DECODE_BN;
// chunks = ceil(nk / PACKED16_CHUNK). args.chunks_per_cta is a multiple of args.unit_chunks.
//   Q, Q_scales  packed16_quantize_q, columns q*gqa + g
//   parts, meta  scratch, [seq][KV head][unit][column] of D floats and of (m, l)
//   dst          null: packed16_merge follows. Otherwise one block has all chunks (grid.x is 1) and merges its columns
//                itself: f32 [seq][q][head][D]; sinks: n_head floats or null
template <int D, typename V_t, int ncols>
static __global__ void PACKED16_LAUNCH_BOUNDS(PACKED16_DECODE_BN, 8) packed16_decode(
        const int * __restrict__ Q, const float * __restrict__ Q_scales,
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask, const float * __restrict__ sinks,
        float * __restrict__ parts, float2 * __restrict__ meta, float * __restrict__ dst, const packed16_args args) {
    constexpr int BN     = PACKED16_DECODE_BN;
    constexpr int nwarps = BN/WARP_SIZE;
    constexpr int lpk    = PACKED16_DECODE_LPK;
    constexpr int nred   = packed16_decode_smem<D, ncols>::nred;
    constexpr int rounds = packed16_decode_smem<D, ncols>::rounds;
    constexpr int nout   = packed16_decode_smem<D, ncols>::nout;
    static_assert(BN % WARP_SIZE == 0, "packed16: decode_bn is not whole warps");
    static_assert(PACKED16_CHUNK % BN == 0, "packed16: a chunk is not whole tiles");
    static_assert(D/8 <= BN, "packed16: a V row has more lanes than the block");
    static_assert(ncols % nred == 0, "packed16: odd number of columns");

    __shared__ packed16_decode_smem<D, ncols> smem;

    const int tid    = threadIdx.x;
    const int lane   = tid % WARP_SIZE;
    const int warp   = tid / WARP_SIZE;
    const int n_cols = args.nq*args.gqa;
    const int kv     = blockIdx.y % args.n_head_kv;
    const int col0   = blockIdx.y / args.n_head_kv * ncols;
    const int seq    = blockIdx.z;
    const int n_mine = min(ncols, n_cols - col0);
    const int q_low  = col0 / args.gqa;
    const int q_high = (col0 + n_mine - 1) / args.gqa;

    // Columns past the last one repeat it.
    const int64_t q_row = ((int64_t) seq*args.n_head_kv + kv)*n_cols + col0;
    Q        += q_row*(D/4);
    Q_scales += q_row*(D/32);
    K        += kv*args.nbk2 + seq*args.nbk3;
    K_scales += kv*args.nbs2 + seq*args.nbs3;
    V        += kv*args.nbv2 + seq*args.nbv3;
    if (mask) {
        mask += seq % args.n_mask3 * args.nbm3;
    }
    const int64_t parts_row = packed16_parts_row(args, seq, kv) + col0;

    const int n_chunks = (args.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    const int chunk_0  = blockIdx.x*args.chunks_per_cta;
    const int chunk_1  = min(chunk_0 + args.chunks_per_cta, n_chunks);

#if PACKED16_Q_IN_SMEM
    for (int i = tid; i < ncols*(D/4); i += BN) {
        smem.q[i/(D/4)][i%(D/4)] = Q[min(i/(D/4), n_mine - 1)*(D/4) + i%(D/4)];
    }
    for (int i = tid; i < ncols*(D/32); i += BN) {
        smem.qs[i/(D/32)][i%(D/32)] = Q_scales[min(i/(D/32), n_mine - 1)*(D/32) + i%(D/32)];
    }
#endif // PACKED16_Q_IN_SMEM
    for (int c = warp; c < ncols; c += nwarps) {
        if (lane == 0) {
            smem.m[c] = PACKED16_MAX_FLOOR;
            smem.l[c] = 0.0f;
        }
    }

    float run[rounds][nout] = {};
    int   flip = 0;

#pragma unroll 1
    for (int chunk = chunk_0; chunk < chunk_1; ++chunk, flip ^= 1) {
        const int k0 = chunk*PACKED16_CHUNK;

        // Does any row of this block see a cell of the chunk?
        int alive = mask == nullptr;
        if (mask) {
            for (int q = q_low; q <= q_high; ++q) {
                const uint16_t * row = (const uint16_t *) (mask + (int64_t) q*args.nbm1);
                for (int k = k0 + tid; k < min(k0 + PACKED16_CHUNK, args.nk); k += BN) {
                    alive = alive || row[k] != PACKED16_MASK_DEAD;
                }
            }
        }
        alive = warp_reduce_any(alive);
        if (lane == 0) {
            smem.alive[flip][warp] = alive;
        }
        __syncthreads();
        alive = 0;
#pragma unroll
        for (int w = 0; w < nwarps; ++w) {
            alive |= smem.alive[flip][w];
        }

        if (alive) {
#pragma unroll 1
            for (int t0 = 0; t0 < PACKED16_CHUNK; t0 += BN) {
                const int j  = lpk == 1 ? 0 : tid % lpk;
                const int k1 = k0 + t0 + tid - j;
                const char * rows[lpk];
                const char * srows[lpk];
#pragma unroll
                for (int r = 0; r < lpk; ++r) {
                    const int64_t k = min(k1 + r, args.nk - 1);
                    rows[r]  = K        + k*args.nbk1;
                    srows[r] = K_scales + k*args.nbs1;
                }
                float sum[lpk][ncols];
                float s[ncols];
#if PACKED16_Q_IN_SMEM
                packed16_qk<D, ncols, lpk, lpk, PACKED16_DECODE_AHEAD>(sum, rows, srows, smem.q[0], smem.qs[0], j);
#else
                packed16_qk<D, ncols, lpk, lpk, PACKED16_DECODE_AHEAD>(sum, rows, srows, Q, Q_scales, j);
#endif // PACKED16_Q_IN_SMEM
                packed16_qk_exchange<ncols, lpk>(s, sum, j);

                // Columns of one query row share its mask value.
                const int    k    = k0 + t0 + tid;
                int          q    = q_low;
                int          g    = col0 - q_low*args.gqa;
                uint32_t     bits = PACKED16_MASK_DEAD;
#pragma unroll
                for (int c = 0; c < ncols; ++c) {
                    if ((c == 0 || g == 0) && c < n_mine && k < args.nk) {
                        bits = mask ? ((const uint16_t *) (mask + (int64_t) q*args.nbm1))[k] : 0;
                    }
                    smem.p[c][t0 + tid] = bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD :
                        fmaf(packed16_half_bits(bits), 1.44269504f, s[c]);
                    if (++g == args.gqa) {
                        g = 0;
                        q++;
                    }
                }
            }
            __syncthreads();

            for (int c = warp; c < ncols; c += nwarps) {
                float p[PACKED16_CHUNK/WARP_SIZE];
                float m = PACKED16_MAX_FLOOR;
#pragma unroll
                for (int i = 0; i < PACKED16_CHUNK/WARP_SIZE; ++i) {
                    p[i] = smem.p[c][i*WARP_SIZE + lane];
                    m    = fmaxf(m, p[i]);
                }
                m = warp_reduce_max(m);
                float l = 0.0f;
#pragma unroll
                for (int i = 0; i < PACKED16_CHUNK/WARP_SIZE; ++i) {
                    p[i] = packed16_exp2(p[i] - m);
                    l   += p[i];
                    smem.p[c][i*WARP_SIZE + lane] = p[i];
                }
                l = warp_reduce_sum(l);
                if (lane == 0) {
                    float m_run = smem.m[c];
                    float a, b;
                    packed16_merge_factors(m_run, m, a, b);
                    smem.m[c] = m_run;
                    smem.l[c] = packed16_merge_add(smem.l[c], a, l, b);
                    smem.a[c] = a;
                    smem.b[c] = b;
                }
            }
            __syncthreads();

            float part[rounds][nout];
            int bad = !packed16_chunk_sums<V_t, false>(part, smem, V, args.nbv1, k0, args.nk);
            bad = warp_reduce_any(bad);
            if (lane == 0) {
                smem.redo[flip][warp] = bad;
            }
            __syncthreads();
            bad = 0;
#pragma unroll
            for (int w = 0; w < nwarps; ++w) {
                bad |= smem.redo[flip][w];
            }
            if (bad) {
                packed16_chunk_sums<V_t, true>(part, smem, V, args.nbv1, k0, args.nk);
            }
#pragma unroll
            for (int r = 0; r < rounds; ++r) {
#pragma unroll
                for (int o = 0; o < nout; ++o) {
                    const int c = r*nred + min(smem.column(o, tid), nred - 1);
                    run[r][o] = packed16_merge_add(run[r][o], smem.a[c], part[r][o], smem.b[c]);
                }
            }
        }

        if ((chunk + 1) % args.unit_chunks == 0 || chunk + 1 == chunk_1) {
            const int64_t unit_row = parts_row + (int64_t) (chunk/args.unit_chunks)*n_cols;
            float * unit = parts + unit_row*D;
#pragma unroll
            for (int r = 0; r < rounds; ++r) {
#pragma unroll
                for (int o = 0; o < nout; ++o) {
                    const int c = smem.column(o, tid);
                    if (c < nred && r*nred + c < n_mine) {
                        unit[r*nred*D + o*BN + tid] = run[r][o];
                    }
                    run[r][o] = 0.0f;
                }
            }
            for (int c = warp; c < ncols; c += nwarps) {
                if (lane == 0) {
                    if (c < n_mine) {
                        meta[unit_row + c] = make_float2(smem.m[c], smem.l[c]);
                    }
                    smem.m[c] = PACKED16_MAX_FLOOR;
                    smem.l[c] = 0.0f;
                }
            }
        }
    }

    if (dst) {
        const int per_super = PACKED16_SUPER_CHUNK/PACKED16_CHUNK/args.unit_chunks;
        for (int c = 0; c < n_mine; ++c) {
            const int     q    = (col0 + c) / args.gqa;
            const int     head = kv*args.gqa + (col0 + c) % args.gqa;
            const int64_t row  = parts_row + c;
            __syncthreads(); // what this block wrote is visible to all of it
            packed16_merge_column<D, BN>(smem.merge, parts + row*D, meta + row, sinks ? sinks + head : nullptr,
                dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D, args.n_units, n_cols, per_super);
        }
    }
}
