#pragma once

// The parts of the matrix-tile decode: shared memory, copies, the two products. packed16-decode-mma.cuh has the picture.

#include "packed16-cluster.cuh"
#include "packed16-decode-v.cuh"
#include "packed16-merge.cuh"
#include "packed16-mma.cuh"
#include "packed16-qk.cuh"

#ifndef PACKED16_MMA_DECODE_UNROLL
#define PACKED16_MMA_DECODE_UNROLL 4 // steps of 16 cells in PV
#endif // PACKED16_MMA_DECODE_UNROLL

#ifndef PACKED16_MMA_DECODE_RESIDENT
#define PACKED16_MMA_DECODE_RESIDENT 512 // threads per multiprocessor that the registers leave room for
#endif // PACKED16_MMA_DECODE_RESIDENT

template <int D, typename V_t, int nt>
struct packed16_decode_mma_smem {
    static constexpr int warps = packed16_decode_mma_warps(D);
    static constexpr int cols  = nt*8;
    static constexpr int rows  = cols < PACKED16_MAX_DECODE_NQ ? cols : PACKED16_MAX_DECODE_NQ; // query rows at most
    static constexpr int cells = PACKED16_CHUNK/warps;                                          // of a warp

    // Short calls have blocks of few columns (packed16_plan_decode), so the kernels of many need not know of clusters.
    static constexpr bool clusters = nt <= 2 && sizeof(packed16_cluster_parts<D, cols>) <= PACKED16_CHUNK*(D + 16); // in the place of K

    alignas(16) char  k[warps][cells][D + 16]; // payload, then scales; an odd number of 16 bytes: no bank conflicts
    packed16_v_smem<D, V_t> v;
    alignas(16) char  q[cols][D + 16];
    alignas(16) float qs[D/32][cols];
    union {
        struct {
            alignas(16) uint16_t p[cols][PACKED16_CHUNK + 8]; // weights
            uint16_t mask[2][rows][PACKED16_CHUNK];           // by parity of the chunk
            alignas(8) float m[warps][cols];                  // maxima of a warp's cells
            int      seen[2][warps];                          // by parity of the chunk: PACKED16_MASK_*
        };
        packed16_merge_smem<1> merge;
    };
};

#define PACKED16_MASK_SEEN  1 // one of the warp's cells is visible to one of the rows
#define PACKED16_MASK_PLAIN 2 // all of them are to all rows, without a bias

// The mask of a chunk: thread t has cell t of each query row of the block; a thread past the chunk has none.
template <int rows, int T>
struct packed16_decode_mask {
    static_assert(T >= PACKED16_CHUNK && PACKED16_CHUNK % WARP_SIZE == 0, "packed16: the cells of a chunk are not one each for whole warps");
    uint16_t bits[rows];

    static __device__ __forceinline__ bool idle() { return T > PACKED16_CHUNK && threadIdx.x >= PACKED16_CHUNK; } // whole warps

    __device__ __forceinline__ void load(const char * mask, const int nbm1, const int n_rows, const int k0, const int nk) {
        if (idle()) {
            return;
        }
        const int k = k0 + packed16_fresh(threadIdx.x);
        uintptr_t at = (uintptr_t) mask + (int64_t) 2*k;
#pragma unroll
        for (int r = 0; r < rows; ++r, at += nbm1) {
            bits[r] = PACKED16_MASK_DEAD;
            if (r < n_rows && k < nk) {
                bits[r] = mask ? *(const uint16_t *) at : 0;
            }
        }
    }
    // Returns what the warp has, PACKED16_MASK_*; a plain one is not stored. 0 for a warp without cells.
    __device__ __forceinline__ int store(uint16_t (&to)[rows][PACKED16_CHUNK], const int n_rows) const {
        if (idle()) {
            return 0;
        }
        bool seen  = false;
        bool plain = true;
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            if (r < n_rows) {
                seen  = seen || bits[r] != PACKED16_MASK_DEAD;
                plain = plain && bits[r] == 0;
            }
        }
        if (__all_sync(0xFFFFFFFF, plain)) {
            return PACKED16_MASK_SEEN | PACKED16_MASK_PLAIN;
        }
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            if (r < n_rows) {
                to[r][threadIdx.x] = bits[r];
            }
        }
        return warp_reduce_any(seen) ? PACKED16_MASK_SEEN : 0;
    }
};

// A warp copies its cells of K, from cell k0 on; past the last cell its row again.
template <int D, int cells>
static __device__ __forceinline__ void packed16_copy_k(
        char (&to)[cells][D + 16], const char * K, const char * K_scales, const packed16_args & args, const int k0, const int lane) {
    static_assert(cells <= WARP_SIZE, "packed16: a warp has more cells than lanes");
    constexpr int pieces = D/16;
    constexpr int rows   = WARP_SIZE/pieces; // of one round of copies
    const int     lane_  = packed16_fresh(lane);
    const int     last   = args.nk - 1 - k0;
    const int     r      = lane_/pieces;
    const char *  from   = K + (int64_t) k0*args.nbk1 + lane_%pieces*16;
    char *        at     = &to[r][lane_%pieces*16];
#pragma unroll
    for (int i = 0; i < cells; i += rows) {
        packed16_copy_async<16>(at + i*sizeof(to[0]), from + min(r + i, last)*args.nbk1);
    }
    if (cells >= WARP_SIZE || lane_ < cells) {
        packed16_copy_async<D/16>(&to[lane_][D], K_scales + (int64_t) k0*args.nbs1 + min(lane_, last)*args.nbs1);
    }
}

// B tiles of neighbouring columns from shared memory: column j is the 32 bytes at p + j*stride, an odd number of 16 bytes apart.
template <int nt>
static __device__ __forceinline__ void packed16_load_columns(packed16_mma_b (&b)[nt], const void * p, const int stride, const int lane) {
#if PACKED16_MMA_NATIVE
    const char * s = (const char *) p;
#pragma unroll
    for (int n = 0; n + 1 < nt; n += 2) { // lanes 0-7: bytes 0-15 of tile n, 8-15: bytes 16-31, 16-31: of tile n + 1
        const uint32_t at = (uint32_t) __cvta_generic_to_shared(s + (8*n + (lane & 7) + (lane >> 4)*8)*stride + (lane >> 3 & 1)*16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(b[n].x[0]), "=r"(b[n].x[1]), "=r"(b[n + 1].x[0]), "=r"(b[n + 1].x[1]) : "r"(at) : "memory");
    }
    if constexpr (nt % 2 != 0) {
        const uint32_t at = (uint32_t) __cvta_generic_to_shared(s + (8*(nt - 1) + (lane & 7))*stride + (lane >> 3 & 1)*16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
            : "=r"(b[nt - 1].x[0]), "=r"(b[nt - 1].x[1]) : "r"(at) : "memory");
    }
#else
    packed16_mma_load(b, p, stride, lane);
#endif // PACKED16_MMA_NATIVE
}

// s[m][n]: logits of the warp's cells 16m .. against columns 8n .., in base 2, without the mask.
template <int D, int nt, int cells, int cols>
static __device__ __forceinline__ void packed16_qk_mma(
        float (&s)[cells/16][nt][4], const char (&k)[cells][D + 16], const char (&q)[cols][D + 16], const float (&qs)[D/32][cols], const int lane) {
    constexpr int mt = cells/16;

    uint32_t scales[mt][2][D/64];
#pragma unroll
    for (int m = 0; m < mt; ++m) {
        packed16_load_scales<D>(scales[m][0], &k[16*m + (lane >> 2) + 0][D]);
        packed16_load_scales<D>(scales[m][1], &k[16*m + (lane >> 2) + 8][D]);
#pragma unroll
        for (int n = 0; n < nt; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[m][n][i] = 0.0f;
            }
        }
    }
    const packed16_mma_c<int> start = {{PACKED16_MAGIC_I, PACKED16_MAGIC_I, PACKED16_MAGIC_I, PACKED16_MAGIC_I}};
#pragma unroll
    for (int b = 0; b < D/32; ++b) {
        packed16_mma_b qb[nt];
        packed16_load_columns(qb, &q[0][32*b], D + 16, lane);
        float2 q_scale[nt];
#pragma unroll
        for (int n = 0; n < nt; ++n) {
            q_scale[n] = *(const float2 *) &qs[b][8*n + 2*((lane & 3))];
        }
#pragma unroll
        for (int m = 0; m < mt; ++m) {
            packed16_mma_a a;
            packed16_mma_load(a, &k[16*m][32*b], D + 16, lane);
            const float ks[2] = {packed16_scale_of<D, 1>(scales[m][0], b, 0), packed16_scale_of<D, 1>(scales[m][1], b, 0)};
            const float kb[2] = {-PACKED16_MAGIC_F*ks[0], -PACKED16_MAGIC_F*ks[1]};
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_c<int> c;
                packed16_mma_s8(c, a, qb[n], start, lane);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    s[m][n][i] = fmaf(fmaf(__int_as_float(c.x[i]), ks[i/2], kb[i/2]), i%2 ? q_scale[n].y : q_scale[n].x, s[m][n][i]);
                }
            }
        }
    }
}

// What the lane that has it knows of a column, for the columns of this lane: x of lane c is column c's.
template <int nt>
static __device__ __forceinline__ void packed16_from_owners(float (&to)[nt][2], const float x, const int lane) {
#pragma unroll
    for (int n = 0; n < nt; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            to[n][e] = __shfl_sync(0xFFFFFFFF, x, 8*n + 2*(lane & 3) + e, WARP_SIZE);
        }
    }
}

// Stores 1, 2 or 4 neighbouring values at once; `to` begins on as many floats.
template <int n>
static __device__ __forceinline__ void packed16_store_run(float * to, const float (&x)[n]) {
    static_assert(n == 1 || n == 2 || n == 4, "packed16: no store of so many values");
    if constexpr (n == 1) {
        *to = x[0];
    } else if constexpr (n == 2) {
        *(float2 *) to = make_float2(x[0], x[1]);
    } else {
        *(float4 *) to = make_float4(x[0], x[1], x[2], x[3]);
    }
}

// f(element j of part), where j is not known to the compiler and part stays in registers.
template <int tiles, int nt, typename F>
static __device__ __forceinline__ float packed16_part_at(packed16_mma_c<float> (&part)[tiles][nt], const int j, const F f) {
    float y = 0.0f;
#pragma unroll
    for (int e = 0; e < tiles*nt*4; ++e) {
        if (e == j) {
            y = f(part[e/(4*nt)][e/4%nt].x[e%4]);
        }
    }
    return y;
}

// The chunk's sums, of this warp's dimensions, and in warp 0 the sums of the weights as they are used: row 0 of the product with
// ones. Weights and V are in LDS; V is row 0 of the KV head in memory.
template <int D, typename V_t, int nt>
static __device__ __forceinline__ void packed16_pv_mma(
        packed16_mma_c<float> (&part)[packed16_decode_mma_tiles(D)][nt], packed16_mma_c<float> (&l)[nt], const packed16_decode_mma_smem<D, V_t, nt> & smem,
        const char * V, const int nbv1, const int k0, const int nk, const int warp, const int lane) {
    using tiles = packed16_v_tiles<D, V_t>;
    constexpr int dt = tiles::tiles;
    const packed16_mma_a ones = {{0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u}};
#pragma unroll
    for (int n = 0; n < nt; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            l[n].x[i] = 0.0f;
#pragma unroll
            for (int m = 0; m < dt; ++m) {
                part[m][n].x[i] = 0.0f;
            }
        }
    }
    constexpr int unroll = PACKED16_MMA_DECODE_UNROLL;
#pragma unroll unroll
    for (int k = 0; k < PACKED16_CHUNK; k += 16) {
        packed16_mma_b p[nt];
        packed16_load_columns(p, &smem.p[0][k], sizeof(smem.p[0]), lane);
        packed16_mma_a a[dt];
        tiles::load(a, smem.v, k, warp, lane);
#pragma unroll
        for (int m = 0; m < dt; ++m) {
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_f16(part[m][n], a[m], p[n], lane);
            }
        }
        if (warp == 0) {
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_f16(l[n], ones, p[n], lane);
            }
        }
    }
    float all = 0.0f; // not finite if one of them is not
#pragma unroll
    for (int m = 0; m < dt; ++m) {
#pragma unroll
        for (int n = 0; n < nt; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                all += fabsf(part[m][n].x[i]);
            }
        }
    }
    if (packed16_finite(all)) {
        return;
    }
#pragma unroll 1
    for (int j = 0; j < dt*nt*4; ++j) { // rare: one copy of the code
        const int   m = j/(4*nt), n = j/4%nt, i = j%4;
        const float x = packed16_part_at(part, j, [](float & y) { return y; });
        if (packed16_finite(x)) {
            continue;
        }
        const int dim = tiles::dim(warp, m, i/2, lane);
        float     sum = 0.0f;
        for (int k = 0; k < min(PACKED16_CHUNK, nk - k0); ++k) {
            const float w = packed16_half_bits(smem.p[8*n + 2*((lane & 3)) + i%2][k]);
            if (w != 0.0f) {
                sum = fmaf(w, V_t::value(V + (int64_t) (k0 + k)*nbv1, dim), sum);
            }
        }
        packed16_part_at(part, j, [=](float & y) { return y = sum; });
    }
}
