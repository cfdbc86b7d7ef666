#pragma once

// Prefill, variant mma: int8 QK and f16 PV on matrix instructions (packed16-mma.cuh), masks by exact tile class.
//
// A column is a (query, head) pair of one KV head, q*gqa + g. Tile: 8 (or 4) warps; a warp owns 16 columns (NVIDIA: 32
// below D=256) and all D dimensions of their results; the block stages bn cells at a time, a warp takes their logits in steps.
//
//              columns of the block (128 or 256; half with 4 warps)
//            +------+------+- ... -+            S = K*Q^T, 16 cells x N columns and a q8 block at a time: exact s32,
//      cells |warp 0|warp 1|       |            then 2 fma per (cell, column): Q scale, K scale
//         bn |      |      |       |            softmax down the columns: state in the lanes that see the column
//            +------+------+- ... -+            O^T += V^T*P: 16 dimensions x N columns x 16 cells, f32
//          D |  O^T in registers   |
//            +---------------------+
//
//                     NVIDIA                                    AMD
//     bn              64 (4 warps: 32)                          32
//     shared memory   two tiles of K, scales, V; Q: 165 KiB     one tile of K, scales, V: 31 KiB at D=256
//                     (q4_0 V, D=256, 8 warps)
//     per tile        1 barrier: cp.async brings the next       2 barriers, 3 to 5 blocks beside each other; Q blocks
//                     tile, V after it is made f16 meanwhile    come from memory through the caches
//
// Bytes per cell and KV head at D=256: 272 of K, 144 of q4_0 V, read once per 128 columns.
// Instructions per warp for 16 cells x 16 columns at D=256, NVIDIA: 16 mma (s8) and 32 mma (f16); 8 + 16 + 2 ldmatrix;
// 128 fma for scales, 8 exp2, about 40 to make V f16 (a warp's share) and 50 for the rest of the softmax.
// RDNA3: 16 v_wmma (iu8) and 16 v_wmma (f16), the arithmetic floor.
//
// A hidden cell has weight 0, and 0*NaN must not leak: staging replaces values of V that are not finite in f16 by 0 and notes
// their cells; those, if any, are then added in f32 for the columns that give them a weight.
//
// A block takes its share of all tiles, which may begin and end within the cells of its columns: packed16-prefill-share.cuh.

#include "packed16-prefill-mma-softmax.cuh"
#include "packed16-prefill-share.cuh"

// Waves per SIMD at D=128: eight leave 192 of 1536 registers, which is enough, or 128 of 1024, which is not.
#if defined(__gfx1102__) || defined(__gfx1103__) || defined(__gfx1150__)
#define PACKED16_PREFILL_WAVES_128 4
#else
#define PACKED16_PREFILL_WAVES_128 8
#endif // defined(__gfx1102__) || defined(__gfx1103__) || defined(__gfx1150__)

// Launch: block tile::threads, on NVIDIA with sizeof(smem) bytes; grid: see packed16_share.
//   Q, Q_scales  columns q*gqa + g; tile::cols rows past the last one must be readable
//   classes      for tile::cols columns and tile::bn cells, or null: then every tile is full if mask is null, and mixed if not
//   dst          f32 [seq][q][head][D]; sinks: n_head floats or null
//   parts, meta, ends   for packed16_merge_shares; not used with n_units 1
//   n_rows       of items in a line: packed16_prefill_rows
template <int D, typename V_t, int shape>
static __global__ void PACKED16_LAUNCH_BOUNDS(
        packed16_shape_warps(shape)*WARP_SIZE, D == 128 ? PACKED16_PREFILL_WAVES_128 : 4, shape == 4 ? 2 : 1) packed16_prefill_mma(
        const int * Q_all, const float * Q_scales_all,
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask_all, const uint8_t * classes_all, const float * __restrict__ sinks,
        float * __restrict__ dst, float * __restrict__ parts, float2 * __restrict__ meta, int2 * __restrict__ ends,
        const int n_rows, const packed16_args args) {
#if PACKED16_MMA_NATIVE || defined(HOSTRUN)
    using tile = packed16_prefill_tile<D, shape>;
    using smem_t = packed16_prefill_mma_smem<D, V_t, shape>;
    using c_t  = packed16_mma_c<float>;

    PACKED16_SHARED(smem_t, smem);

    const int n_cols  = args.nq*args.gqa;
    const int n_x     = (n_cols + tile::cols - 1)/tile::cols;
    const int n_tiles = (args.nk + tile::bn - 1)/tile::bn;

    packed16_dependencies_trigger();
    packed16_dependencies_wait();

    const packed16_share<tile::threads> share = {
        smem.share, classes_all, args.n_units, n_rows, n_x, args.n_head_kv, args.n_mask3, args.nk, tile::bn, n_tiles};
#if PACKED16_MMA_LINE
    share.lay_out(threadIdx.x);
#endif // PACKED16_MMA_LINE
#pragma unroll 1
    do {
        if (!share.next(threadIdx.x)) {
            break;
        }
        const int tid      = threadIdx.x;
        const int lane     = threadIdx.x % WARP_SIZE;
        const int warp     = packed16_uniform(threadIdx.x / WARP_SIZE);
        const int warp_col = warp*tile::warp_cols; // in the block

        const packed16_piece piece = share.piece();
        const int  kv   = piece.kv;
        const int  seq  = piece.row / n_x;
        const int  x    = piece.row % n_x;
        const int  col0 = x*tile::cols;
        const bool busy = col0 + warp_col < n_cols; // the warp has a column

        packed16_prefill_source from;
        from.k    = K        + kv*args.nbk2 + seq*args.nbk3;
        from.ks   = K_scales + kv*args.nbs2 + seq*args.nbs3;
        from.v    = V        + kv*args.nbv2 + seq*args.nbv3;
        from.nbk1 = args.nbk1;
        from.nbs1 = args.nbs1;
        from.nbv1 = args.nbv1;
        from.nk   = args.nk;
        from.v_aligned = (((uintptr_t) from.v | (uintptr_t) args.nbv1) & (packed16_v_piece<D, V_t>() - 1)) == 0;

        const int       slice   = seq % args.n_mask3;
        const char *    mask    = mask_all ? mask_all + slice*args.nbm3 : nullptr;
        const uint8_t * classes = packed16_classes_of(classes_all, slice, n_x, x, args.nk, tile::bn);
        const int       t_end   = piece.to;
        const auto kind_of = [=](const int t) -> int {
            return t >= t_end ? PACKED16_TILE_FULL : classes ? classes[t] : mask || (t + 1)*tile::bn > args.nk ? PACKED16_TILE_MIXED : PACKED16_TILE_FULL;
        };

        const int64_t first_row = ((int64_t) seq*args.n_head_kv + kv)*n_cols + col0;
        const int *   Q         = Q_all        + first_row*(D/4);
        const float * Q_scales  = Q_scales_all + first_row*(D/32);
#if PACKED16_MMA_ASYNC
        for (int i = tid; i < tile::cols*(D/16); i += tile::threads) {
            const int r = i / (D/16);
            packed16_copy_async<16>(&smem.q[r][i % (D/16)*16], Q + min(r, n_cols - col0 - 1)*(D/4) + i % (D/16)*4);
        }
        for (int i = tid; i < tile::cols*(D/32); i += tile::threads) {
            const int r = i % tile::cols;
            smem.qs[i/tile::cols][r] = packed16_round_22(Q_scales[min(r, n_cols - col0 - 1)*(D/32) + i/tile::cols]);
        }
#endif // PACKED16_MMA_ASYNC

        c_t   o[D/PACKED16_MMA_M][tile::nt] = {};
        float neg[tile::nt][c_t::n_cols];      // minus the reference that a column's weights are relative to
        bool  fresh[tile::nt][c_t::n_cols];    // no cell was seen yet: the reference is an arbitrary one
        float l[tile::nt][c_t::n_cols] = {};   // of this lane's cells
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int j = 0; j < c_t::n_cols; ++j) {
                neg[n][j]   = 0.0f;
                fresh[n][j] = true;
            }
        }

        // The tile in hand and the two after it that are not dead, and their kinds; from t_end on all count as full.
        struct walk {
            int t[3], kind[3];
        } w;
        w.t[0] = piece.from - 1;
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            w.t[j] = (j > 0 ? w.t[j - 1] : w.t[0]) + 1;
            while ((w.kind[j] = kind_of(w.t[j])) == PACKED16_TILE_DEAD) {
                ++w.t[j];
            }
        }
        for (int i = tid; i < 3*(tile::bn/32); i += tile::threads) {
            smem.bad[i/(tile::bn/32)][i%(tile::bn/32)] = 0;
        }
#if PACKED16_MMA_ASYNC
        packed16_copy_k  (smem, from, 0, w.t[0]*tile::bn, tid);
        packed16_copy_v  (smem, from, 0, w.t[0]*tile::bn, tid);
        packed16_copy_raw(smem, from, 0, w.t[0]*tile::bn, tid);
        packed16_copy_commit();
        packed16_copy_raw(smem, from, 1, w.t[1]*tile::bn, tid);
        packed16_copy_commit();
        packed16_copy_wait<1>();
        __syncthreads();
        packed16_convert(smem, from, 0, 0, w.t[0]*tile::bn, tid);
#endif // PACKED16_MMA_ASYNC

        int buf = 0, slot = 0;
#pragma unroll 1
        while (w.t[0] < t_end) {
            const int k0    = w.t[0]*tile::bn;
            const int kind  = w.kind[0];
            const int mine  = buf;
            const int bad   = slot;
            const int slot1 = slot == 2 ? 0 : slot + 1;
            const int ahead = kind_of(w.t[2] + 1); // on its way while this tile is worked on
#if PACKED16_MMA_ASYNC
            // K of this tile and the raw bytes of the next one have landed; no warp reads the tile before this one any more.
            packed16_copy_wait<0>();
            packed16_check_v(smem, buf, slot, tid);
            __syncthreads();
            packed16_copy_k  (smem, from, 1 - buf, w.t[1]*tile::bn, tid);
            packed16_copy_v  (smem, from, 1 - buf, w.t[1]*tile::bn, tid);
            packed16_copy_raw(smem, from, buf,     w.t[2]*tile::bn, tid);
            packed16_copy_commit();
            // Half of the warps make the next V f16 before their products, half after them: a scheduler has one of each, so that
            // vector and matrix units are not all busy, or idle, at once.
            const int  k1    = w.t[1]*tile::bn;
            const bool early = warp < tile::warps/2 || !busy;
            if (early) {
                packed16_convert(smem, from, 1 - buf, slot1, k1, tid);
            }
            buf = 1 - buf;
#else
            __syncthreads();
            packed16_copy_k  (smem, from, buf, k0, tid);
            packed16_convert (smem, from, buf, slot, k0, tid);
            __syncthreads();
#endif // PACKED16_MMA_ASYNC
            if (tid < tile::bn/32) {
                smem.bad[slot1 == 2 ? 0 : slot1 + 1][tid] = 0;
            }
            slot = slot1;
            w.t[0] = w.t[1];
            w.t[1] = w.t[2];
            w.t[2] = w.t[2] + 1;
            w.kind[0] = w.kind[1];
            w.kind[1] = w.kind[2];
            w.kind[2] = ahead;
            while (w.kind[2] == PACKED16_TILE_DEAD) {
                w.kind[2] = kind_of(++w.t[2]);
            }
            if (!busy) {
                continue;
            }

#pragma unroll 1
            for (int first = 0; first < tile::bn; first += tile::step) {
                packed16_prefill_s<D, shape> s;
                packed16_prefill_logits<D, V_t, shape>(s, neg, smem, mine, first, Q, Q_scales, warp_col, lane);

                if (kind == PACKED16_TILE_MIXED) {
                    packed16_prefill_mask<D, shape>(s, mask, col0 + warp_col, n_cols, k0 + first, args, lane);
                }
                packed16_prefill_softmax<D, shape>(s, o, neg, fresh, l);

#pragma unroll
                for (int mi = 0; mi < tile::mt; ++mi) {
                    packed16_mma_b p[tile::nt];
#pragma unroll
                    for (int n = 0; n < tile::nt; ++n) {
                        packed16_mma_weights(p[n], s[mi][n], lane);
                    }
#pragma unroll
                    for (int d = 0; d < D/PACKED16_MMA_M; ++d) {
                        packed16_mma_a v;
                        smem.v[mine].load(v, d*PACKED16_MMA_M, first + mi*PACKED16_MMA_M, lane);
#pragma unroll
                        for (int n = 0; n < tile::nt; ++n) {
                            packed16_mma_f16(o[d][n], v, p[n], lane);
                        }
                    }
                }

                unsigned int any_bad = 0;
#pragma unroll
                for (int i = 0; i < tile::bn/32; ++i) {
                    any_bad |= smem.bad[bad][i];
                }
                if (any_bad) { // rare: cells with values that f16 does not hold
#pragma unroll
                    for (int mi = 0; mi < tile::mt; ++mi) {
                        const int c = first + mi*PACKED16_MMA_M;
                        packed16_prefill_add_bad<D, V_t, shape>(o, s[mi], smem.bad[bad][c/32] >> c%32 & 0xFFFF, from, k0 + c, lane);
                    }
                }
            }
#if PACKED16_MMA_ASYNC
            if (!early) {
                packed16_convert(smem, from, buf, slot, k1, tid);
            }
#endif // PACKED16_MMA_ASYNC
        }

#if PACKED16_MMA_ASYNC
        packed16_copy_wait<0>(); // of tiles past the last one
#endif // PACKED16_MMA_ASYNC
        const packed16_piece done  = PACKED16_MMA_LINE ? share.piece() : piece; // once more, not through the loop in registers
        const bool           whole = done.first && done.last;
        const int            head0 = done.kv*args.gqa;
        const int            first = done.row % n_x*tile::cols + warp_col;
        if (args.n_units == 0 && tid == 0) {
            int * end = (int *) &ends[done.row*args.n_head_kv + done.kv];
            if (done.first) {
                end[0] = blockIdx.x;
            }
            if (done.last) {
                end[1] = blockIdx.x;
            }
        }
        if (!busy) {
            continue;
        }
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int j = 0; j < c_t::n_cols; ++j) {
                const int c    = n*PACKED16_MMA_N + c_t::col(j, lane); // in the warp
                const int col  = first + c;
                const int head = head0 + col % args.gqa;

                float   sum   = packed16_mma_over_rows(l[n][j], [](const float x, const float y) { return x + y; });
                float   top   = fresh[n][j] ? PACKED16_MAX_FLOOR : -neg[n][j];
                float   scale = 1.0f;
                float * out   = dst + (((int64_t) (done.row / n_x)*args.nq + col/args.gqa)*args.n_head + head)*D;
                if (!whole) {
                    const int64_t row = PACKED16_MMA_LINE ? (int64_t) (2*blockIdx.x + done.first)*tile::cols + warp_col + c :
                        (((int64_t) (done.row / n_x)*args.n_head_kv + done.kv)*args.n_units + blockIdx.z % args.n_units)*n_cols + col;
                    out = parts + row*D;
                    if (col < n_cols && c_t::row(0, lane) == 0) {
                        meta[row] = make_float2(top, sum);
                    }
                } else {
                    float a = 1.0f;
                    if (sinks) { // one more logit without a value
                        float b;
                        packed16_merge_factors(top, packed16_sink_logit(sinks[min(head, args.n_head - 1)]), a, b);
                        sum = packed16_merge_add(sum, a, 1.0f, b);
                    }
                    // sum is 0 only when every cell of the column is masked
                    scale = sum == 0.0f ? 0.0f : __fdiv_rn(a, sum);
                }
                if (col < n_cols) {
#pragma unroll
                    for (int d = 0; d < D/PACKED16_MMA_M; ++d) {
#pragma unroll
                        for (int r = j; r < c_t::n; r += c_t::n_cols) {
                            out[d*PACKED16_MMA_M + c_t::row(r, lane)] = o[d][n].x[r]*scale;
                        }
                    }
                }
            }
        }
    } while (PACKED16_MMA_LINE);
#else
    GGML_UNUSED_VARS(Q_all, Q_scales_all, K, K_scales, V, mask_all, classes_all, sinks, dst, parts, meta, ends, n_rows, args);
    NO_DEVICE_CODE;
#endif // PACKED16_MMA_NATIVE || defined(HOSTRUN)
}
