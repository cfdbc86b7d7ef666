#pragma once

// Prefill, variant mma: int8 QK and f16 PV on matrix instructions (packed16-mma.cuh), masks by exact tile class.
//
// A column is a (query, head) pair of one KV head, q*gqa + g. Tile: 8 (or 4) warps; a warp owns 16 columns (NVIDIA: 32
// below D=256) and all D dimensions of their results; the block takes bn cells at a time.
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
//     bn              64 (4 warps, or D=128: 32)                32
//     shared memory   two tiles of K, scales, V; Q: 162 KiB     one tile of K, scales, V: 30 KiB at D=256
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
// With n_units > 1 a block takes a share of the tiles and leaves (maximum, sum, result) for packed16_merge_shares.

#include "packed16-mask.cuh"
#include "packed16-prefill-mma-stage.cuh"
#include "packed16-prefill-plan.cuh"

// Weights are relative to a reference per column, 2^10 at most when that was taken. It follows the largest logit only when a
// weight exceeds 2^14: f16 holds that, and most tiles need no exchange between lanes and leave the result as it is.
#define PACKED16_MMA_WEIGHT_LOG2 10.0f
#define PACKED16_MMA_GROWTH_LOG2 4.0f

// x to 22 significant bits, so that 1.5*2^23*x is exact.
static __device__ __forceinline__ float packed16_round_22(const float x) {
    return __uint_as_float((__float_as_uint(x) + 2) & 0xFFFFFFFCu);
}

// Logits of a warp's columns against a tile of cells.
template <int D, int n_warps>
using packed16_prefill_s = packed16_mma_c<float>[packed16_prefill_tile<D, n_warps>::mt][packed16_prefill_tile<D, n_warps>::nt];

// s[m][n] = from + logits of cells 16*m .. of K tile `buf` against the columns of this warp.
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_prefill_logits(
        packed16_prefill_s<D, n_warps> & s, const float (&from)[packed16_prefill_tile<D, n_warps>::nt][packed16_mma_c<float>::n_cols],
        const packed16_prefill_mma_smem<D, V_t, n_warps> & smem, const int buf,
        const int * __restrict__ Q, const float * __restrict__ Q_scales, const int warp_col, const int lane) {
    using tile = packed16_prefill_tile<D, n_warps>;
    using c_t  = packed16_mma_c<float>;

    packed16_mma_c<int> start;
#pragma unroll
    for (int r = 0; r < c_t::n; ++r) {
        start.x[r] = PACKED16_MAGIC_I;
    }
#pragma unroll
    for (int m = 0; m < tile::mt; ++m) {
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int r = 0; r < c_t::n; ++r) {
                s[m][n].x[r] = from[n][r % c_t::n_cols];
            }
        }
    }
#pragma unroll
    for (int b = 0; b < D/32; ++b) {
        packed16_mma_b q[tile::nt];
        float qs[tile::nt][c_t::n_cols]; // scales, and what takes the start of the sums off again
        float qo[tile::nt][c_t::n_cols];
#if PACKED16_MMA_ASYNC
        packed16_mma_load_shared(q, &smem.q[warp_col][32*b], D + 16, lane);
#else
        packed16_mma_load(q, (const char *) Q + warp_col*D + 32*b, D, lane);
#endif // PACKED16_MMA_ASYNC
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int j = 0; j < c_t::n_cols; ++j) {
                const int col = warp_col + n*PACKED16_MMA_N + c_t::col(j, lane);
                qs[n][j] = PACKED16_MMA_ASYNC ? smem.qs[b][col] : packed16_round_22(Q_scales[col*(D/32) + b]);
                qo[n][j] = -PACKED16_MAGIC_F*qs[n][j];
            }
        }
#pragma unroll
        for (int m = 0; m < tile::mt; ++m) {
            packed16_mma_a k;
            packed16_mma_load(k, &smem.k[buf][m*PACKED16_MMA_M][32*b], D + 16, lane);
            float ks[c_t::n_rows];
            const float * at = &smem.ks[buf][b][m*PACKED16_MMA_M + c_t::first(lane)];
            if constexpr (c_t::n_rows == 2) {
                const float2 x = *(const float2 *) at;
                ks[0] = x.x;
                ks[1] = x.y;
            } else {
#pragma unroll
                for (int i = 0; i < c_t::n_rows; i += 4) {
                    const float4 x = *(const float4 *) (at + i);
                    ks[i + 0] = x.x;
                    ks[i + 1] = x.y;
                    ks[i + 2] = x.z;
                    ks[i + 3] = x.w;
                }
            }
#pragma unroll
            for (int n = 0; n < tile::nt; ++n) {
                packed16_mma_c<int> sum;
                packed16_mma_s8(sum, k, q[n], start, lane);
#pragma unroll
                for (int r = 0; r < c_t::n; ++r) {
                    const int j = r % c_t::n_cols;
                    s[m][n].x[r] = fmaf(fmaf(__int_as_float(sum.x[r]), qs[n][j], qo[n][j]), ks[r/c_t::n_cols], s[m][n].x[r]);
                }
            }
        }
    }
}

// Launch: grid (ceil(nq*gqa / tile::cols), n_head_kv, n_seq*n_units), block n_warps*32, on NVIDIA with sizeof(smem) bytes.
//   Q, Q_scales  packed16_quantize_q, columns q*gqa + g; tile::cols rows past the last one must be readable
//   classes      packed16_classify_mask for tile::cols columns and tile::bn cells, or null: then every tile is full if mask
//                is null, and mixed if not
//   n_units 1: dst f32 [seq][q][head][D], sinks n_head floats or null; otherwise parts [seq][kv][unit][column][D] and
//   meta [seq][kv][unit][column]
template <int D, typename V_t, int n_warps>
static __global__ void PACKED16_LAUNCH_BOUNDS(n_warps*WARP_SIZE, 4, n_warps == 8 ? 1 : 2) packed16_prefill_mma(
        const int * __restrict__ Q, const float * __restrict__ Q_scales,
        const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask, const uint8_t * __restrict__ classes, const float * __restrict__ sinks,
        float * __restrict__ dst, float * __restrict__ parts, float2 * __restrict__ meta, const packed16_args args) {
#if PACKED16_MMA_NATIVE || defined(HOSTRUN)
    using tile = packed16_prefill_tile<D, n_warps>;
    using smem_t = packed16_prefill_mma_smem<D, V_t, n_warps>;
    using c_t  = packed16_mma_c<float>;

    PACKED16_SHARED(smem_t, smem);

    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = packed16_uniform(threadIdx.x / WARP_SIZE);
    const int tid  = threadIdx.x;
    const int kv   = blockIdx.y;
    const int seq  = blockIdx.z / args.n_units;
    const int unit = blockIdx.z % args.n_units;

    const int  n_cols   = args.nq*args.gqa;
    const int  col0     = blockIdx.x*tile::cols;
    const int  warp_col = warp*tile::warp_cols;     // in the block
    const bool busy     = col0 + warp_col < n_cols; // the warp has a column

    packed16_prefill_source from;
    from.k    = K        + kv*args.nbk2 + seq*args.nbk3;
    from.ks   = K_scales + kv*args.nbs2 + seq*args.nbs3;
    from.v    = V        + kv*args.nbv2 + seq*args.nbv3;
    from.nbk1 = args.nbk1;
    from.nbs1 = args.nbs1;
    from.nbv1 = args.nbv1;
    from.nk   = args.nk;
    from.v_aligned = (((uintptr_t) from.v | (uintptr_t) args.nbv1) & (packed16_v_piece<D, V_t>() - 1)) == 0;

    const int slice = seq % args.n_mask3;
    if (mask) {
        mask += slice*args.nbm3;
    }
    const int n_tiles = (args.nk + tile::bn - 1)/tile::bn;
    const int t_end   = (int) ((int64_t) n_tiles*(unit + 1)/args.n_units);
    if (classes) {
        classes += ((int64_t) slice*gridDim.x + blockIdx.x)*n_tiles;
    }
    const auto kind_of = [=](const int t) -> int {
        return t >= t_end ? PACKED16_TILE_FULL : classes ? classes[t] : mask || (t + 1)*tile::bn > args.nk ? PACKED16_TILE_MIXED : PACKED16_TILE_FULL;
    };

    const int64_t first_row = ((int64_t) seq*args.n_head_kv + kv)*n_cols + col0;
    Q        += first_row*(D/4);
    Q_scales += first_row*(D/32);
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
    w.t[0] = (int) ((int64_t) n_tiles*unit/args.n_units) - 1;
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
        const bool early = warp < n_warps/2 || !busy;
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

        packed16_prefill_s<D, n_warps> s;
        packed16_prefill_logits<D, V_t, n_warps>(s, neg, smem, mine, Q, Q_scales, warp_col, lane);

        if (kind == PACKED16_TILE_MIXED) {
#pragma unroll
            for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
                for (int j = 0; j < c_t::n_cols; ++j) {
                    const int    col = min(col0 + warp_col + n*PACKED16_MMA_N + c_t::col(j, lane), n_cols - 1);
                    const char * row = mask ? mask + (int64_t) (col/args.gqa)*args.nbm1 : nullptr;
#pragma unroll
                    for (int mi = 0; mi < tile::mt; ++mi) {
#pragma unroll
                        for (int r = j; r < c_t::n; r += c_t::n_cols) {
                            const int k = k0 + mi*PACKED16_MMA_M + c_t::row(r, lane);
                            uint32_t bits = PACKED16_MASK_DEAD;
                            if (k < args.nk) {
                                bits = row ? ((const uint16_t *) row)[k] : 0;
                            }
                            float & x = s[mi][n].x[r];
                            x = bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : fmaf(packed16_half_bits(bits), 1.44269504f, x);
                        }
                    }
                }
            }
        }

        float top[tile::nt][c_t::n_cols];
        bool  grown = false;
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int j = 0; j < c_t::n_cols; ++j) {
                top[n][j] = s[0][n].x[j];
#pragma unroll
                for (int mi = 0; mi < tile::mt; ++mi) {
#pragma unroll
                    for (int r = j; r < c_t::n; r += c_t::n_cols) {
                        top[n][j] = fmaxf(top[n][j], s[mi][n].x[r]);
                    }
                }
                grown = grown || fresh[n][j] || top[n][j] > PACKED16_MMA_WEIGHT_LOG2 + PACKED16_MMA_GROWTH_LOG2;
            }
        }
        if (__any_sync(0xFFFFFFFF, grown)) { // a column has a new reference
            float a[tile::nt][c_t::n_cols];
#pragma unroll
            for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
                for (int j = 0; j < c_t::n_cols; ++j) {
                    const float most = packed16_mma_over_rows(top[n][j], [](const float x, const float y) { return fmaxf(x, y); });
                    // up to the largest logit, down to it only from the reference that a column begins with
                    const bool  seen = most > 0.5f*PACKED16_LOGIT_DEAD;
                    const float by   = !seen ? 0.0f : fresh[n][j] ? most - PACKED16_MMA_WEIGHT_LOG2 : fmaxf(most - PACKED16_MMA_WEIGHT_LOG2, 0.0f);
                    a[n][j]     = packed16_exp2(-by);
                    a[n][j]     = fresh[n][j] ? 0.0f : a[n][j];
                    fresh[n][j] = fresh[n][j] && !seen;
                    neg[n][j]  -= by;
                    l[n][j]    *= a[n][j];
#pragma unroll
                    for (int mi = 0; mi < tile::mt; ++mi) {
#pragma unroll
                        for (int r = j; r < c_t::n; r += c_t::n_cols) {
                            s[mi][n].x[r] -= by;
                        }
                    }
                }
            }
#pragma unroll
            for (int d = 0; d < D/PACKED16_MMA_M; ++d) {
#pragma unroll
                for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
                    for (int r = 0; r < c_t::n; ++r) {
                        o[d][n].x[r] *= a[n][r % c_t::n_cols];
                    }
                }
            }
        }
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
            for (int j = 0; j < c_t::n_cols; ++j) {
                float sum = 0.0f;
#pragma unroll
                for (int mi = 0; mi < tile::mt; ++mi) {
#pragma unroll
                    for (int r = j; r < c_t::n; r += c_t::n_cols) {
                        s[mi][n].x[r] = packed16_exp2(s[mi][n].x[r]);
                        sum += s[mi][n].x[r];
                    }
                }
                l[n][j] += sum;
            }
        }

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
                smem.v[mine].load(v, d*PACKED16_MMA_M, mi*PACKED16_MMA_M, lane);
#pragma unroll
                for (int n = 0; n < tile::nt; ++n) {
                    packed16_mma_f16(o[d][n], v, p[n], lane);
                }
            }
        }

#pragma unroll
        for (int mi = 0; mi < tile::mt; ++mi) {
            unsigned int cells = smem.bad[bad][mi/2] >> mi%2*16 & 0xFFFF;
#pragma unroll 1
            for (; cells; cells &= cells - 1) {
                const int    row  = __ffs((int) cells) - 1;
                const char * cell = from.v + (int64_t) min(k0 + mi*PACKED16_MMA_M + row, args.nk - 1)*args.nbv1;
                float p[tile::nt][c_t::n_cols];
#pragma unroll
                for (int n = 0; n < tile::nt; ++n) {
                    packed16_mma_at_row(p[n], s[mi][n], row, lane);
                }
#pragma unroll
                for (int d = 0; d < D/PACKED16_MMA_M; ++d) {
#pragma unroll
                    for (int r = 0; r < c_t::n; ++r) {
                        const float x = V_t::value(cell, d*PACKED16_MMA_M + c_t::row(r, lane));
                        const float y = packed16_finite(__half2float(__float2half_rn(x))) ? 0.0f : x; // the others were in the product
#pragma unroll
                        for (int n = 0; n < tile::nt; ++n) {
                            const float w = p[n][r % c_t::n_cols];
                            const float z = fmaf(w, y, o[d][n].x[r]);
                            o[d][n].x[r] = w != 0.0f ? z : o[d][n].x[r];
                        }
                    }
                }
            }
        }
#if PACKED16_MMA_ASYNC
        if (!early) {
            packed16_convert(smem, from, buf, slot, k1, tid);
        }
#endif // PACKED16_MMA_ASYNC
    }

    if (!busy) {
        return;
    }
#pragma unroll
    for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
        for (int j = 0; j < c_t::n_cols; ++j) {
            const int col  = col0 + warp_col + n*PACKED16_MMA_N + c_t::col(j, lane);
            const int head = kv*args.gqa + col % args.gqa;

            float   sum   = packed16_mma_over_rows(l[n][j], [](const float x, const float y) { return x + y; });
            float   top   = fresh[n][j] ? PACKED16_MAX_FLOOR : -neg[n][j];
            float   scale = 1.0f;
            float * out   = dst + (((int64_t) seq*args.nq + col/args.gqa)*args.n_head + head)*D;
            if (args.n_units > 1) {
                const int64_t row = (((int64_t) seq*args.n_head_kv + kv)*args.n_units + unit)*n_cols + col;
                out = parts + row*D;
                if (col < n_cols && c_t::row(0, lane) == 0) {
                    meta[row] = make_float2(top, sum);
                }
            } else {
                float a = 1.0f;
                if (sinks) { // one more logit without a value
                    float b;
                    packed16_merge_factors(top, sinks[min(head, args.n_head - 1)]*1.44269504f, a, b);
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
#else
    GGML_UNUSED_VARS(Q, Q_scales, K, K_scales, V, mask, classes, sinks, dst, parts, meta, args);
    NO_DEVICE_CODE;
#endif // PACKED16_MMA_NATIVE || defined(HOSTRUN)
}

// Adds up the shares of the units, in their order. One warp per column, D/32 dimensions a lane.
//
// Launch: grid (ceil(nq*gqa / 4), n_head_kv, n_seq), block (32, 4).
template <int D>
static __global__ void __launch_bounds__(128) packed16_merge_shares(
        const float * __restrict__ parts, const float2 * __restrict__ meta, const float * __restrict__ sinks,
        float * __restrict__ dst, const packed16_args args) {
    const int n_cols = args.nq*args.gqa;
    const int col    = blockIdx.x*4 + threadIdx.y;
    if (col >= n_cols) {
        return; // a whole warp
    }
    const int     lane = threadIdx.x;
    const int     kv   = blockIdx.y;
    const int     seq  = blockIdx.z;
    const int     head = kv*args.gqa + col % args.gqa;
    const int64_t row  = ((int64_t) seq*args.n_head_kv + kv)*args.n_units*n_cols + col;

    float top = sinks ? sinks[head]*1.44269504f : PACKED16_MAX_FLOOR;
    for (int u = 0; u < args.n_units; ++u) {
        top = fmaxf(top, meta[row + (int64_t) u*n_cols].x);
    }
    float sum = sinks ? packed16_exp2(sinks[head]*1.44269504f - top) : 0.0f;
    float2 acc[D/64] = {};
#pragma unroll 4
    for (int u = 0; u < args.n_units; ++u) {
        const int64_t at = row + (int64_t) u*n_cols;
        const float2  ml = meta[at];
        const float   b  = packed16_exp2(ml.x - top);
        sum = fmaf(ml.y, b, sum);
#pragma unroll
        for (int i = 0; i < D/64; ++i) {
            const float2 x = *(const float2 *) (parts + at*D + 64*i + 2*lane);
            acc[i].x = fmaf(x.x, b, acc[i].x);
            acc[i].y = fmaf(x.y, b, acc[i].y);
        }
    }
    // sum is 0 only when every cell of the column is masked
    const float scale = sum == 0.0f ? 0.0f : __fdiv_rn(1.0f, sum);
    float *     out   = dst + (((int64_t) seq*args.nq + col/args.gqa)*args.n_head + head)*D;
#pragma unroll
    for (int i = 0; i < D/64; ++i) {
        *(float2 *) (out + 64*i + 2*lane) = make_float2(acc[i].x*scale, acc[i].y*scale);
    }
}
