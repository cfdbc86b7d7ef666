#pragma once

// The softmax of a tile of the matrix-tile prefill. packed16-prefill-mma.cuh has the picture.

#include "packed16-prefill-mma-tile.cuh"

// Adds the mask to the logits of cells k0 .. of the columns from col0 on; what is hidden or past the last cell becomes a dead one.
template <int D, int shape>
static __device__ __forceinline__ void packed16_prefill_mask(
        packed16_prefill_s<D, shape> & s, const char * mask, const int col0, const int n_cols, const int k0,
        const packed16_args & args, const int lane) {
    using tile = packed16_prefill_tile<D, shape>;
    using c_t  = packed16_mma_c<float>;
#pragma unroll
    for (int n = 0; n < tile::nt; ++n) {
#pragma unroll
        for (int j = 0; j < c_t::n_cols; ++j) {
            const int    col = min(col0 + n*PACKED16_MMA_N + c_t::col(j, lane), n_cols - 1);
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
                    x = bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : fmaf(packed16_half_bits(bits), PACKED16_LOG2E, x);
                }
            }
        }
    }
}

// Makes weights of logits. A column whose weights exceed what f16 holds gets a new reference, in neg, and its sums so far follow: o, and l
// of this lane's cells, to which the weights are added. fresh: no cell was seen yet.
template <int D, int shape>
static __device__ __forceinline__ void packed16_prefill_softmax(
        packed16_prefill_s<D, shape> & s, packed16_prefill_o<D, shape> & o,
        float (&neg)[packed16_prefill_tile<D, shape>::nt][packed16_mma_c<float>::n_cols],
        bool (&fresh)[packed16_prefill_tile<D, shape>::nt][packed16_mma_c<float>::n_cols],
        float (&l)[packed16_prefill_tile<D, shape>::nt][packed16_mma_c<float>::n_cols]) {
    using tile = packed16_prefill_tile<D, shape>;
    using c_t  = packed16_mma_c<float>;
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
}
