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
        packed16_merge_smem<1> merge;
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

    V_t      raw[step];
    uint32_t at;  // of the lane's part of its next row, in bytes from the chunk's first row
    uint32_t end; // of its part of the last row that is there

    static __device__ __forceinline__ int first() { return threadIdx.x/lanes*step; }

    // The rows of the lane's first pass. V: the chunk's first row; last: the last row that is there, at least 0.
    __device__ __forceinline__ void start(const char * __restrict__ V, const int nbv1, const int last) {
        const int lane   = V_t::at(threadIdx.x % lanes);
        const int stride = packed16_again(nbv1); // offsets of these rows are not worth registers
        at  = lane + first()*stride;
        end = lane + min(last, PACKED16_CHUNK - 1)*stride;
        next(V, stride);
    }
    // Those of the pass after it. Rows past the last one have weight 0; they read the last one again.
    __device__ __forceinline__ void next(const char * __restrict__ V, const int nbv1) {
#pragma unroll
        for (int r = 0; r < step; ++r) {
            raw[r].load(V, min(at + (uint32_t) (r*nbv1), end), threadIdx.x % lanes);
        }
        at += pass*nbv1;
    }
};

// x in neighbouring registers, computed here and no later: from there their banks let two multiply-adds be issued as one.
static __device__ __forceinline__ void packed16_settle(float (&x)[8]) {
#if defined(GGML_USE_HIP)
    typedef float row_t __attribute__((ext_vector_type(8)));
    row_t row = {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
    asm volatile("" : "+v"(row));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        x[i] = row[i];
    }
#else
    GGML_UNUSED(x);
#endif // defined(GGML_USE_HIP)
}

// acc[c][i] = sum of weight*value over this group's rows of the chunk, the first of which are in `ahead`. V: the chunk's first row.
template <bool guard, int D, typename V_t, int ncols>
static __device__ __forceinline__ void packed16_pv(
        float (&acc)[ncols][8], const float (&p)[ncols][PACKED16_CHUNK], packed16_v_rows_of<D, V_t> & ahead,
        const char * __restrict__ V, const int nbv1) {
    constexpr int step = packed16_v_rows_of<D, V_t>::step;
    constexpr int pass = packed16_v_rows_of<D, V_t>::pass;

#pragma unroll
    for (int c = 0; c < ncols; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            acc[c][i] = 0.0f;
        }
    }
    int k = ahead.first();
#pragma unroll 1
    for (int i = 0; i < PACKED16_CHUNK/pass; ++i, k += pass) {
        float v[step][8];
#pragma unroll
        for (int r = 0; r < step; ++r) {
            ahead.raw[r].unpack(v[r]);
            packed16_settle(v[r]);
        }
        if (i + 1 < PACKED16_CHUNK/pass) {
            ahead.next(V, nbv1);
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
                    if constexpr (guard) {
                        packed16_settle(acc[c]); // one row after another: this rare loop must not be the one that needs the most registers
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
        const char * __restrict__ V, const int nbv1) {
    constexpr int T    = PACKED16_DECODE_THREADS;
    constexpr int nred = packed16_decode_smem<D, ncols>::nred;

    const int tid   = threadIdx.x;
    const int lane  = tid % (D/8);
    const int group = tid / (D/8);

    float acc[ncols][8];
    packed16_pv<guard>(acc, smem.p, ahead, V, nbv1);

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
