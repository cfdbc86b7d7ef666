#pragma once

// Decode and verify: up to 8 query rows, all query heads of a KV head, one K/V stream.
//
// A column is one (query row, query head) pair; a block takes ncols columns of one KV head and a run of chunks of
// PACKED16_CHUNK cells. Every chunk gives one partial result (m, l, acc) per column whatever the rest of the launch
// looks like, and partials are folded in the fixed tree of packed16-merge.cuh, so that the output bits of a row do not
// depend on nq, on the other rows, on the split or on the route. A chunk that is dead for a column folds as an
// exact no-op; one that is dead for the whole block is not read.
//
// Tile, T = PACKED16_DECODE_THREADS threads (two tiles of DECODE_BN cells side by side), one chunk at a time:
//
//     mask      thread t reads the mask of cell t for each query row, into LDS; a vote skips dead chunks
//     QK        thread t owns cell t of each T cells: D/4 dot4 per column, 16-byte loads that are under way before the vote
//     softmax   a warp owns a column: CHUNK/32 cells per lane, 5+5 shuffles; weights to LDS, factors of the fold to LDS
//     PV        D/8 lanes own a V row, 8 dims each; T*8/D groups of rows; acc[ncols][8] in registers; the rows of the
//               next pass, and before QK those of the first, are loaded ahead
//     fold      the groups' sums meet in LDS, PACKED16_RED_COLS columns at a time; thread t keeps its share of the
//               running result: ncols*D/T registers
//
// LDS: ncols*CHUNK*4 bytes of weights and T*8*PACKED16_RED_COLS*4 of sums: 3 + 8 KiB for 6 columns and T 128.
// Bytes per cell and KV head at D=256: 272 of K, 144 of q4_0 V, read once for all columns of the block.
// Instructions per (query head, cell) at 6 columns: 64 dot4 and 16 fma (QK); 256 fma and 21/6*32 unpack (PV); 16/6*32 on AMD.
//
// A hidden cell has weight 0, and 0*NaN must not leak: when the sums of a chunk are not all finite, the chunk is
// summed again and values with weight 0 are left out. Costs one check of the sums per chunk.

#include "packed16-decode-pv.cuh"
#include "packed16-qk.cuh"

// Threads per multiprocessor that the registers must leave room for, elsewhere than on AMD: 6 columns fit in 128 registers.
#ifndef PACKED16_DECODE_RESIDENT
#define PACKED16_DECODE_RESIDENT(ncols) ((ncols) <= 6 ? 512 : 384)
#endif // PACKED16_DECODE_RESIDENT

// Waves per SIMD the registers leave room for: 1536 VGPRs per lane allow 192 each, targets with 1024 the same in 5 waves.
#if defined(__gfx1102__) || defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1152__) || defined(__gfx1153__)
#define PACKED16_DECODE_WAVES 5
#else
#define PACKED16_DECODE_WAVES 8
#endif // defined(__gfx1102__) || defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1152__) || defined(__gfx1153__)

#ifndef PACKED16_DECODE_AHEAD
#define PACKED16_DECODE_AHEAD 3 // blocks of 32 bytes per K row in flight
#endif // PACKED16_DECODE_AHEAD

// Launch: grid (ceil(chunks / args.chunks_per_cta), n_head_kv*ceil(nq*gqa / ncols), n_seq), block PACKED16_DECODE_THREADS;
// chunks = ceil(nk / PACKED16_CHUNK). args.chunks_per_cta is a multiple of args.unit_chunks.
//   Q, Q_scales  packed16_quantize_q, columns q*gqa + g
//   parts, meta  scratch, [seq][KV head][unit][column] of D floats and of (m, l)
//   dst          null: packed16_merge follows. Otherwise one block has all chunks (grid.x is 1) and merges its columns
//                itself: f32 [seq][q][head][D]; sinks: n_head floats or null
template <int D, typename V_t, int ncols>
static __global__ void PACKED16_LAUNCH_BOUNDS(PACKED16_DECODE_THREADS, PACKED16_DECODE_WAVES, PACKED16_DECODE_RESIDENT(ncols)/PACKED16_DECODE_THREADS)
packed16_decode(
        const int * __restrict__ Q, const float * __restrict__ Q_scales,
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask, const float * __restrict__ sinks,
        float * __restrict__ parts, float2 * __restrict__ meta, float * __restrict__ dst, const packed16_args args) {
    constexpr int T      = PACKED16_DECODE_THREADS;
    constexpr int nwarps = T/WARP_SIZE;
    constexpr int lpk    = PACKED16_DECODE_LPK < D/32 ? PACKED16_DECODE_LPK : D/32;
    constexpr int nred   = packed16_decode_smem<D, ncols>::nred;
    constexpr int rounds = packed16_decode_smem<D, ncols>::rounds;
    constexpr int nout   = packed16_decode_smem<D, ncols>::nout;
    static_assert(PACKED16_DECODE_BN % WARP_SIZE == 0, "packed16: decode_bn is not whole warps");
    static_assert(PACKED16_CHUNK % T == 0, "packed16: a chunk is not whole tiles");
    static_assert(D/8 <= T, "packed16: a V row has more lanes than the block");
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
    for (int i = tid; i < ncols*(D/16); i += T) {
        ((int4 *) smem.q[0])[i] = ((const int4 *) Q)[min(i/(D/16), n_mine - 1)*(D/16) + i%(D/16)];
    }
    for (int i = tid; i < ncols*(D/32); i += T) {
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

        // Thread t reads K rows k0 + t0 + t, or with lpk > 1 its group of lanes does.
        const int j = lpk == 1 ? 0 : tid % lpk;
        packed16_k<D, lpk, lpk, PACKED16_DECODE_AHEAD> k_rows;
        const auto start = [&](const int k1) {
            const char * rows[lpk];
            const char * srows[lpk];
#pragma unroll
            for (int r = 0; r < lpk; ++r) {
                const int64_t k = min(k1 - j + r, args.nk - 1);
                rows[r]  = K        + k*args.nbk1;
                srows[r] = K_scales + k*args.nbs1;
            }
            k_rows.start(rows, srows, j);
        };
        start(k0 + tid);

        // Logits begin as the mask, in base 2. Columns of one query row share its mask.
        int alive = 0;
#pragma unroll 1
        for (int t0 = 0; t0 < PACKED16_CHUNK; t0 += T) {
            const int k = k0 + t0 + tid;
            int       q = packed16_again(q_low); // or offsets made from it take 2 registers per column for the whole loop
            int       g = col0 - q*args.gqa;
            float     s = PACKED16_LOGIT_DEAD;
#pragma unroll
            for (int c = 0; c < ncols; ++c) {
                if ((c == 0 || g == 0) && c < n_mine && k < args.nk) {
                    const uint32_t bits = mask ? ((const uint16_t *) (mask + (int64_t) q*args.nbm1))[k] : 0;
                    s     = bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : PACKED16_LOG2E*packed16_half_bits(bits);
                    alive = alive || bits != PACKED16_MASK_DEAD;
                }
                smem.p[c][t0 + tid] = s;
                if (++g == args.gqa) {
                    g = 0;
                    q++;
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
            packed16_v_rows_of<D, V_t> v_rows;
            v_rows.start(V + (int64_t) k0*args.nbv1, args.nbv1, args.nk - 1 - k0);

#pragma unroll 1
            for (int t0 = 0; ; ) {
                float sum[lpk][ncols];
                float s[ncols];
#if PACKED16_Q_IN_SMEM
                packed16_qk(sum, k_rows, smem.q[0], smem.qs[0], j);
#else
                packed16_qk(sum, k_rows, Q, Q_scales, j);
#endif // PACKED16_Q_IN_SMEM
                packed16_qk_exchange<ncols, lpk>(s, sum, j);
#pragma unroll
                for (int c = 0; c < ncols; ++c) {
                    const float mask_c = smem.p[c][t0 + tid];
                    smem.p[c][t0 + tid] = mask_c == PACKED16_LOGIT_DEAD ? PACKED16_LOGIT_DEAD : s[c] + mask_c;
                }
                t0 += T;
                if (t0 >= PACKED16_CHUNK) {
                    break;
                }
                start(k0 + t0 + tid);
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
            int bad = !packed16_chunk_sums<false>(part, smem, v_rows, V + (int64_t) k0*args.nbv1, args.nbv1);
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
                v_rows.start(V + (int64_t) k0*args.nbv1, args.nbv1, args.nk - 1 - k0);
                packed16_chunk_sums<true>(part, smem, v_rows, V + (int64_t) k0*args.nbv1, args.nbv1);
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

        if (((chunk + 1) & (args.unit_chunks - 1)) == 0 || chunk + 1 == chunk_1) {
            const int64_t unit_row = parts_row + (int64_t) (chunk >> (__ffs(args.unit_chunks) - 1))*n_cols;
            float * unit = parts + unit_row*D;
#pragma unroll
            for (int r = 0; r < rounds; ++r) {
#pragma unroll
                for (int o = 0; o < nout; ++o) {
                    const int c = smem.column(o, tid);
                    if (c < nred && r*nred + c < n_mine) {
                        unit[r*nred*D + o*T + tid] = run[r][o];
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
        const int y = packed16_again(blockIdx.y); // or numbers that only the merge needs are kept through the loop
        const int z = packed16_again(blockIdx.z);
        packed16_merge_own<D, T>(smem.merge, parts, meta, sinks, dst, args, z, y % args.n_head_kv, y / args.n_head_kv * ncols, n_mine);
    }
}
