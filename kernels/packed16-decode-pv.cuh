#pragma once

// V in the vector decode: a lane's share of rows, the sums of a chunk, and how groups of lanes add theirs up.
// packed16-decode.cuh has the picture.

#include "packed16-merge.cuh"
#include "packed16-v.cuh"

#define PACKED16_RED_COLS 2

// V rows a lane has in hand: at least 4, so that weights are read 16 bytes wide.
static constexpr __host__ __device__ int packed16_v_rows(const int D) {
    return PACKED16_V_SUB_TILE*D/(8*PACKED16_DECODE_BN) > 4 ? PACKED16_V_SUB_TILE*D/(8*PACKED16_DECODE_BN) : 4;
}

template <int D, int ncols>
struct packed16_decode_smem {
    static constexpr int T      = PACKED16_DECODE_THREADS;
    static constexpr int nred   = ncols < PACKED16_RED_COLS ? ncols : PACKED16_RED_COLS;
    static constexpr int rounds = ncols/nred;
    static constexpr int nout   = (nred*D + T - 1)/T; // outputs of a thread in one round

    // Column, within a round, of output o of thread t: known at compile time unless a column is narrower than the block.
    static __device__ __forceinline__ int column(const int o, const int t) { return D % T == 0 ? o*T/D : (o*T + t)/D; }

    union {
        struct {
            alignas(16) float p[ncols][PACKED16_CHUNK]; // mask, then logits, then weights
            alignas(16) float red[T*8/D][nred][D];      // sums of the groups
            float m[ncols], l[ncols];                   // running state, kept by the lane that owns the column
            float a[ncols], b[ncols];                   // factors of this chunk's fold
            int   alive[2][T/WARP_SIZE];                // by parity of the chunk
            int   redo[2][T/WARP_SIZE];
        };
        packed16_merge_smem merge;
    };
#if PACKED16_Q_IN_SMEM
    alignas(16) int q[ncols][D/4];
    float           qs[ncols][D/32];
#endif // PACKED16_Q_IN_SMEM
};

// A lane's share of V rows: which rows of a chunk, and loading some of them.
template <int D, typename V_t>
struct packed16_v_rows_of {
    static constexpr int lanes = D/8;
    static constexpr int step  = packed16_v_rows(D);
    static constexpr int pass  = step*PACKED16_DECODE_THREADS/lanes; // rows of the block
    static_assert(PACKED16_CHUNK % pass == 0, "packed16: a chunk is not whole passes over V");

    V_t raw[step];

    static __device__ __forceinline__ int first() { return threadIdx.x/lanes*step; }

    // Rows past the last cell have weight 0; they read the last row again.
    __device__ __forceinline__ void load(const char * __restrict__ V, const int nbv1, const int k, const int nk) {
        const char * row = V + (int64_t) k*nbv1;
#pragma unroll
        for (int r = 0; r < step; ++r) {
            raw[r].load(row + min(r, nk - 1 - k)*nbv1, threadIdx.x % lanes);
        }
    }
};

// acc[c][i] = sum of weight*value over this group's rows of the chunk, the first of which are in `ahead`.
template <bool guard, int D, typename V_t, int ncols>
static __device__ __forceinline__ void packed16_pv(
        float (&acc)[ncols][8], const float (&p)[ncols][PACKED16_CHUNK], packed16_v_rows_of<D, V_t> & ahead,
        const char * __restrict__ V, const int nbv1, const int k0, const int nk) {
    constexpr int step = packed16_v_rows_of<D, V_t>::step;
    constexpr int pass = packed16_v_rows_of<D, V_t>::pass;

#pragma unroll
    for (int c = 0; c < ncols; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            acc[c][i] = 0.0f;
        }
    }
#pragma unroll 1
    for (int k = ahead.first(); k < PACKED16_CHUNK; k += pass) {
        float v[step][8];
#pragma unroll
        for (int r = 0; r < step; ++r) {
            ahead.raw[r].unpack(v[r]);
        }
        if (k + pass < PACKED16_CHUNK) {
            ahead.load(V, nbv1, k0 + k + pass, nk);
        }
#pragma unroll
        for (int c = 0; c < ncols; ++c) {
#pragma unroll
            for (int r4 = 0; r4 < step; r4 += 4) {
                const float4 w4 = *(const float4 *) &p[c][k + r4];
                const float  w[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
                for (int r = 0; r < 4; ++r) {
#pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        acc[c][i] = fmaf(w[r], guard && w[r] == 0.0f ? 0.0f : v[r4 + r][i], acc[c][i]);
                    }
                }
            }
        }
    }
}

// part[r][o] = the chunk's sum for output o*T + t of the nred columns of round r. Returns whether all of mine are finite.
template <bool guard, typename V_t, int D, int ncols, int rounds, int nout>
static __device__ __forceinline__ bool packed16_chunk_sums(
        float (&part)[rounds][nout], packed16_decode_smem<D, ncols> & smem, packed16_v_rows_of<D, V_t> & ahead,
        const char * __restrict__ V, const int nbv1, const int k0, const int nk) {
    constexpr int T    = PACKED16_DECODE_THREADS;
    constexpr int nred = packed16_decode_smem<D, ncols>::nred;

    const int tid   = threadIdx.x;
    const int lane  = tid % (D/8);
    const int group = tid / (D/8);

    float acc[ncols][8];
    packed16_pv<guard>(acc, smem.p, ahead, V, nbv1, k0, nk);

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
            if (nred*D % T == 0 || o*T + tid < nred*D) {
                const float * red = &smem.red[0][0][0] + o*T + tid;
                sum = red[0];
#pragma unroll
                for (int g = 1; g < T*8/D; ++g) {
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
