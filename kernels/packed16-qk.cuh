#pragma once

// Logits of K rows against columns of Q: D/4 dot4 per (query, key) pair.
//
// lpk neighbouring lanes own lpk neighbouring K rows. Lane j takes the blocks lpk*i + j of all of them and ends
// with the sums of row j:
//
//     lpk = 1   a lane owns a row; the address of Q does not depend on the lane (scalar loads on AMD)
//     lpk = 2   a pair owns a pair of rows: half the reads of Q per dot4, 64 contiguous bytes of K per pair
//     lpk = 4   a quad owns four rows: a quarter, 128 bytes
//
// Per lane and block: 2*lpk 16-byte loads of K, and per column 8*lpk dot4 and 2*lpk fused multiply-adds. The integer
// sum starts at 1.5*2^23 and so is a float already; one fma takes the bias off and applies the K scale exactly
// (bias*scale has 13 significant bits), another applies the Q scale: 0.25 VALU operations per dot4, without the
// exchange between lanes (lpk 2: 4 operations per 64 dot4 and column, lpk 4: 12).

#include "packed16-layout.cuh"

// Everything in columns c .. c+n-1 of x is computed here, no later.
template <int n, int nrows, int ncols>
static __device__ __forceinline__ void packed16_pin(const float (&x)[nrows][ncols], const int c) {
#if defined(GGML_USE_HIP)
#pragma unroll
    for (int r = 0; r < nrows; ++r) {
#pragma unroll
        for (int i = 0; i < n; ++i) {
            asm volatile("" : : "v"(x[r][c + i]));
        }
    }
#else
    GGML_UNUSED_VARS(x, c);
#endif // defined(GGML_USE_HIP)
}

// A zero that the compiler does not know and that is the same in all lanes, not there before those columns of x are: volatile
// statements keep their order. Added to the address of a block of Q it keeps that block's scalar loads behind those
// sums: they live in SGPRs, and loaded any earlier, or hoisted out of the loop over K, they would spill. (A zero
// made from x itself would count as divergent, and its addresses would be computed in VGPRs.)
template <int n, int nrows, int ncols>
static __device__ __forceinline__ int packed16_zero_after(const float (&x)[nrows][ncols], const int c) {
    int zero = 0;
    packed16_pin<n>(x, c);
#if defined(GGML_USE_HIP)
    asm volatile("s_mov_b32 %0, 0" : "=s"(zero));
#endif // defined(GGML_USE_HIP)
    return zero;
}

template <int D>
static __device__ __forceinline__ void packed16_load_scales(uint32_t (&w)[D/64], const char * __restrict__ row) {
    if constexpr (D == 256) {
        const uint4 v = *(const uint4 *) row;
        w[0] = v.x;
        w[1] = v.y;
        w[2] = v.z;
        w[3] = v.w;
    } else if constexpr (D == 128) {
        const uint2 v = *(const uint2 *) row;
        w[0] = v.x;
        w[1] = v.y;
    } else {
        static_assert(D == 64, "packed16: no scale load for this head size");
        w[0] = *(const uint32_t *) row;
    }
}

// The f16 scale of block lpk*i + j as float; j is 0 for lpk 1.
template <int D, int lpk>
static __device__ __forceinline__ float packed16_scale_of(const uint32_t (&w)[D/64], const int i, const int j) {
    if constexpr (lpk == 1) {
        return packed16_half_bits(w[i/2] >> 16*(i%2));
    } else if constexpr (lpk == 2) {
        return packed16_half_bits(w[i] >> 16*j);
    } else {
        static_assert(lpk == 4, "packed16: 1, 2 or 4 lanes per key");
        return packed16_half_bits((j < 2 ? w[2*i] : w[2*i + 1]) >> 16*(j%2));
    }
}

// K rows of a lane. start() puts the loads of their scales and of the first blocks under way; `ahead` blocks of 32 bytes stay
// in flight before the one in use, 8 registers per row each.
template <int D, int lpk, int nrows, int ahead>
struct packed16_k {
    static_assert((D/32) % lpk == 0, "packed16: a lane has no whole block");
    static constexpr int nblocks  = D/32/lpk; // of a lane
    static constexpr int prefetch = ahead < nblocks ? ahead : nblocks - 1;

    const char * rows[nrows];
    uint32_t     scales[nrows][D/64];
    int          k[prefetch + 1][nrows][8];

    // Block i of this lane, into its slot.
    __device__ __forceinline__ void load(const int i, const int j) {
        const int b = i*lpk + j;
#pragma unroll
        for (int r = 0; r < nrows; ++r) {
            int (&to)[8] = k[i % (prefetch + 1)][r];
            const int4 k0 = ((const int4 *) rows[r])[2*b + 0];
            const int4 k1 = ((const int4 *) rows[r])[2*b + 1];
            to[0] = k0.x;
            to[1] = k0.y;
            to[2] = k0.z;
            to[3] = k0.w;
            to[4] = k1.x;
            to[5] = k1.y;
            to[6] = k1.z;
            to[7] = k1.w;
        }
    }
    __device__ __forceinline__ void start(const char * const (&K)[nrows], const char * const (&K_scales)[nrows], const int j) {
#pragma unroll
        for (int r = 0; r < nrows; ++r) {
            rows[r] = K[r];
            packed16_load_scales<D>(scales[r], K_scales[r]);
        }
#pragma unroll
        for (int i = 0; i < prefetch; ++i) {
            load(i, j);
        }
    }
};

// sum[r][c]: row r against column c over the blocks lpk*i + j. K is started.
// Q, Q_scales: column 0; columns are D/4 words and D/32 floats apart.
template <int D, int lpk, int nrows, int ahead, int ncols>
static __device__ __forceinline__ void packed16_qk(
        float (&sum)[nrows][ncols], packed16_k<D, lpk, nrows, ahead> & K,
        const int * __restrict__ Q, const float * __restrict__ Q_scales, const int j) {
    constexpr int nblocks  = packed16_k<D, lpk, nrows, ahead>::nblocks;
    constexpr int prefetch = packed16_k<D, lpk, nrows, ahead>::prefetch;

    int total[nrows][ncols]; // scale_once only
#pragma unroll
    for (int r = 0; r < nrows; ++r) {
#pragma unroll
        for (int c = 0; c < ncols; ++c) {
            sum[r][c]   = 0.0f;
            total[r][c] = PACKED16_MAGIC_I;
        }
    }

    // Step = a block of K against a group of columns. The next step's Q may be loaded once the step before this one is done:
    // two steps in flight, 36 SGPRs.
    constexpr int group = ncols % 2 == 0 ? 2 : 1;

    int zero_next = packed16_zero_after<1>(sum, 0);
#pragma unroll
    for (int i = 0; i < nblocks; ++i) {
        const int b = i*lpk + j;
        if (i + prefetch < nblocks) {
            K.load(i + prefetch, j);
        }

        float ks[nrows];
        float kb[nrows];
#pragma unroll
        for (int r = 0; r < nrows; ++r) {
            ks[r] = packed16_scale_of<D, lpk>(K.scales[r], i, j);
            kb[r] = -PACKED16_MAGIC_F*ks[r];
        }
#pragma unroll
        for (int c0 = 0; c0 < ncols; c0 += group) {
            const int zero = zero_next;
            zero_next = packed16_zero_after<group>(sum, c0 > 0 ? c0 - group : ncols - group);
#pragma unroll
            for (int c = c0; c < c0 + group; ++c) {
                const int4 q0 = ((const int4 *) (Q + c*(D/4)))[2*b + zero + 0];
                const int4 q1 = ((const int4 *) (Q + c*(D/4)))[2*b + zero + 1];
                const int  q[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
#pragma unroll
                for (int r = 0; r < nrows; ++r) {
                    int acc = PACKED16_SCALE_ONCE ? total[r][c] : PACKED16_MAGIC_I;
#pragma unroll
                    for (int w = 0; w < 8; ++w) {
                        acc = ggml_cuda_dp4a(K.k[i % (prefetch + 1)][r][w], q[w], acc);
                    }
                    if constexpr (PACKED16_SCALE_ONCE) {
                        total[r][c] = acc;
                    } else {
                        sum[r][c] = fmaf(fmaf(__int_as_float(acc), ks[r], kb[r]), Q_scales[c*(D/32) + b + zero], sum[r][c]);
                    }
                }
            }
        }
    }
    packed16_pin<ncols>(sum, 0); // not behind the caller's branches

    if constexpr (PACKED16_SCALE_ONCE) {
#pragma unroll
        for (int r = 0; r < nrows; ++r) {
#pragma unroll
            for (int c = 0; c < ncols; ++c) {
                sum[r][c] = (__int_as_float(total[r][c]) - PACKED16_MAGIC_F)*packed16_half_bits(K.scales[r][0] & 0xFFFF)*Q_scales[c*(D/32)];
            }
        }
    }
}

// Adds up what the lpk lanes of a group hold: s[c] is the logit of row j on lane j.
template <int ncols, int lpk>
static __device__ __forceinline__ void packed16_qk_exchange(float (&s)[ncols], const float (&sum)[lpk][ncols], const int j) {
#pragma unroll
    for (int c = 0; c < ncols; ++c) {
        if constexpr (lpk == 1) {
            s[c] = sum[0][c];
        } else if constexpr (lpk == 2) {
            const float keep = j == 0 ? sum[0][c] : sum[1][c];
            const float give = j == 0 ? sum[1][c] : sum[0][c];
            s[c] = keep + __shfl_xor_sync(0xFFFFFFFF, give, 1, WARP_SIZE);
        } else {
            const bool  high  = j >= 2;
            const float keep0 = high ? sum[2][c] : sum[0][c];
            const float keep1 = high ? sum[3][c] : sum[1][c];
            const float give0 = high ? sum[0][c] : sum[2][c];
            const float give1 = high ? sum[1][c] : sum[3][c];
            const float half0 = keep0 + __shfl_xor_sync(0xFFFFFFFF, give0, 2, WARP_SIZE);
            const float half1 = keep1 + __shfl_xor_sync(0xFFFFFFFF, give1, 2, WARP_SIZE);
            const float keep  = j % 2 ? half1 : half0;
            const float give  = j % 2 ? half0 : half1;
            s[c] = keep + __shfl_xor_sync(0xFFFFFFFF, give, 1, WARP_SIZE);
        }
    }
}
