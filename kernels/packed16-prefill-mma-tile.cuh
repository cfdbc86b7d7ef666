#pragma once

// The logits of a tile of the matrix-tile prefill. packed16-prefill-mma.cuh has the picture.

#include "packed16-prefill-mma-stage.cuh"

// Weights are relative to a reference per column, 2^10 at most when that was taken. It follows the largest logit only when a
// weight exceeds 2^14: f16 holds that, and most tiles need no exchange between lanes and leave the result as it is.
#define PACKED16_MMA_WEIGHT_LOG2 10.0f
#define PACKED16_MMA_GROWTH_LOG2 4.0f

// x to 22 significant bits, so that 1.5*2^23*x is exact.
static __device__ __forceinline__ float packed16_round_22(const float x) {
    return __uint_as_float((__float_as_uint(x) + 2) & 0xFFFFFFFCu);
}

// Logits of a warp's columns against a tile of cells.
template <int D, int shape>
using packed16_prefill_s = packed16_mma_c<float>[packed16_prefill_tile<D, shape>::mt][packed16_prefill_tile<D, shape>::nt];

// Results of a warp's columns.
template <int D, int shape>
using packed16_prefill_o = packed16_mma_c<float>[D/PACKED16_MMA_M][packed16_prefill_tile<D, shape>::nt];

// s[m][n] = from + logits of cells first + 16*m .. of K tile `buf` against the columns of this warp.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_prefill_logits(
        packed16_prefill_s<D, shape> & s, const float (&from)[packed16_prefill_tile<D, shape>::nt][packed16_mma_c<float>::n_cols],
        const packed16_prefill_mma_smem<D, V_t, shape> & smem, const int buf, const int first,
        const int * __restrict__ Q, const float * __restrict__ Q_scales, const int warp_col, const int lane) {
    using tile = packed16_prefill_tile<D, shape>;
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
            packed16_mma_load(k, &smem.k[buf][first + m*PACKED16_MMA_M][32*b], D + 16, lane);
            float ks[c_t::n_rows];
            const float * at = &smem.ks[buf][b][first + m*PACKED16_MMA_M + c_t::first(lane)];
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

// o += the values that f16 does not hold, of the cells k0 + i for the bits i of `cells`, for the columns that give them a weight.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_prefill_add_bad(
        packed16_prefill_o<D, shape> & o,
        const packed16_mma_c<float> (&s)[packed16_prefill_tile<D, shape>::nt], unsigned int cells,
        const packed16_prefill_source & from, const int k0, const int lane) {
    using tile = packed16_prefill_tile<D, shape>;
    using c_t  = packed16_mma_c<float>;
#pragma unroll 1
    for (; cells; cells &= cells - 1) {
        const int    row  = __ffs((int) cells) - 1;
        const char * cell = from.v + (int64_t) min(k0 + row, from.nk - 1)*from.nbv1;
        float p[tile::nt][c_t::n_cols];
#pragma unroll
        for (int n = 0; n < tile::nt; ++n) {
            packed16_mma_at_row(p[n], s[n], row, lane);
        }
#pragma unroll
        for (int d = 0; d < D/PACKED16_MMA_M; ++d) {
#pragma unroll
            for (int r = 0; r < c_t::n; ++r) {
                const float x = V_t::value(cell, d*PACKED16_MMA_M + c_t::row(r, lane));
                const float y = packed16_finite_f16(x) ? 0.0f : x; // the others were in the product
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
