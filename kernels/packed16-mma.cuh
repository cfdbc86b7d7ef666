#pragma once

// Matrix products of one warp: C += A*B, int8 with exact s32 sums or f16 with f32 sums.
//
//                     N columns                    M = 16 rows, always
//                    +---------+                   k = 32 bytes: 32 int8 values (one q8 block) or 16 halves
//         32 bytes k |    B    |                   N = PACKED16_MMA_N columns: 8 on NVIDIA, 16 elsewhere
//                    |         |
//     32 bytes k     +---------+
//   +------------+   +---------+                   A and B are kept with k contiguous: a row of A and a column of B
// 16|     A      |   |    C    | 16 rows           are 32 bytes of memory each
//   +------------+   +---------+
//
// What lane l owns; g = l/4, t = l%4, h = l/16, c = l%16; one register r is 4 bytes of k, or one value of C:
//
//     layout          A (16 rows)                       B (N columns)                   C: row, column
//     1 NVIDIA sm_80  row g + 8*(r%2),                  column g,                       g + 8*(r/2), 2*t + r%2
//                     bytes 4t + 16*(r/2); 4 registers  bytes 4t + 16*r; 2 registers    4 registers
//     2 RDNA3         row c, bytes 4r; 8 registers,     column c, bytes 4r; 8, the      2*r + h, c
//                     the same in both halves           same in both halves             8 registers
//     3 RDNA4         row c, bytes 16*h + 4r; 4         column c, bytes 16*h + 4r; 4    r + 8*h, c; 8 registers
//
// One mma() of 16 x N x 32 bytes: NVIDIA 1 mma.sync (m16n8k32 s8 or m16n8k16 f16); RDNA3 and RDNA4 2 v_wmma for int8,
// 1 for f16. On the CPU (host-run tests) the same result comes out of shuffles, in any of the layouts; a GPU without these
// instructions has no code (PACKED16_MMA_NATIVE 0).
//
// For attention put what is streamed on the M side: K rows for the logits, V^T for the result. Then C has one query
// per column, so that softmax state is one value per column a lane sees, and packed16_mma_weights turns a C of
// 16 cells into the B of the second product (NVIDIA: movmatrix; RDNA3: one exchange between the halves; RDNA4: nothing).

#include "packed16-layout.cuh"

#ifndef PACKED16_MMA_LAYOUT
#if !defined(GGML_USE_HIP)
#define PACKED16_MMA_LAYOUT 1
#elif defined(__GFX12__)
#define PACKED16_MMA_LAYOUT 3
#else
#define PACKED16_MMA_LAYOUT 2
#endif // !defined(GGML_USE_HIP)
#endif // PACKED16_MMA_LAYOUT

// 1 where this compilation has the instructions of the layout.
#if defined(GGML_USE_HIP) && (defined(__GFX11__) || defined(__GFX12__))
#define PACKED16_MMA_NATIVE 1
#elif !defined(GGML_USE_HIP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define PACKED16_MMA_NATIVE 1
#else
#define PACKED16_MMA_NATIVE 0
#endif // defined(GGML_USE_HIP) && (defined(__GFX11__) || defined(__GFX12__))

#define PACKED16_MMA_M 16
#define PACKED16_MMA_N (PACKED16_MMA_LAYOUT == 1 ? 8 : 16)

// A 16 x 32 byte operand.
struct packed16_mma_a {
    static constexpr int n = PACKED16_MMA_LAYOUT == 2 ? 8 : 4;
    uint32_t x[n];
};

// A 32 byte x N operand.
struct packed16_mma_b {
    static constexpr int n = PACKED16_MMA_LAYOUT == 1 ? 2 : PACKED16_MMA_LAYOUT == 2 ? 8 : 4;
    uint32_t x[n];
};

// A 16 x N result: T is int or float. Lane `lane` has element (row(r), col(r)) in x[r]; a lane sees n_cols different
// columns, register r belongs to the (r % n_cols)-th of them.
template <typename T>
struct packed16_mma_c {
    static constexpr int n      = PACKED16_MMA_LAYOUT == 1 ? 4 : 8;
    static constexpr int n_cols = PACKED16_MMA_LAYOUT == 1 ? 2 : 1;
    T x[n];

    static __device__ __forceinline__ int row(const int r, const int lane) {
        return PACKED16_MMA_LAYOUT == 1 ? lane/4 + 8*(r/2) : PACKED16_MMA_LAYOUT == 2 ? 2*r + lane/16 : r + 8*(lane/16);
    }
    static __device__ __forceinline__ int col(const int r, const int lane) {
        return PACKED16_MMA_LAYOUT == 1 ? 2*(lane%4) + r%2 : lane%16;
    }

    // An order of the 16 rows in which the n_rows rows a lane sees are neighbours, from first(lane) on: per-row factors
    // stored by place(row) are loaded at once. factor i belongs to the registers i*n_cols ...
    static constexpr int n_rows = n/n_cols;
    static __device__ __forceinline__ int place(const int row) {
        return PACKED16_MMA_LAYOUT == 1 ? row%8*2 + row/8 : PACKED16_MMA_LAYOUT == 2 ? row%2*8 + row/2 : row;
    }
    static __device__ __forceinline__ int first(const int lane) {
        return PACKED16_MMA_LAYOUT == 1 ? lane/4*2 : lane/16*8;
    }
};

// x[j]: the element in row `row` (the same in all lanes) of the j-th column that the lane sees.
template <typename T>
static __device__ __forceinline__ void packed16_mma_at_row(
        T (&x)[packed16_mma_c<T>::n_cols], const packed16_mma_c<T> & c, const int row, const int lane) {
    constexpr int n_cols = packed16_mma_c<T>::n_cols;
    const int i    = PACKED16_MMA_LAYOUT == 1 ? row/8 : PACKED16_MMA_LAYOUT == 2 ? row/2 : row%8; // of the rows its lanes see
    const int from = PACKED16_MMA_LAYOUT == 1 ? row%8*4 + lane%4 : lane%16 + 16*(PACKED16_MMA_LAYOUT == 2 ? row%2 : row/8);
#pragma unroll
    for (int j = 0; j < n_cols; ++j) {
        T y = c.x[j];
#pragma unroll
        for (int r = 1; r < packed16_mma_c<T>::n_rows; ++r) {
            y = r == i ? c.x[r*n_cols + j] : y;
        }
        x[j] = __shfl_sync(0xFFFFFFFF, y, from, WARP_SIZE);
    }
}

// Reduces over the rows of a column: every lane gets op over all lanes that see its column.
template <typename Op>
static __device__ __forceinline__ float packed16_mma_over_rows(float x, const Op op) {
#pragma unroll
    for (int offset = PACKED16_MMA_LAYOUT == 1 ? 4 : 16; offset < WARP_SIZE; offset *= 2) {
        x = op(x, __shfl_xor_sync(0xFFFFFFFF, x, offset, WARP_SIZE));
    }
    return x;
}

// --- loads ---------------------------------------------------------------------------------------------------------

// A from shared memory: row i is the 32 bytes at p + i*stride. p and stride are multiples of 16; stride/16 odd keeps
// banks apart on NVIDIA and RDNA.
static __device__ __forceinline__ void packed16_mma_load(packed16_mma_a & a, const void * p, const int stride, const int lane) {
    const char * s = (const char *) p;
#if PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
    const uint32_t at = (uint32_t) __cvta_generic_to_shared(s + lane%16*stride + lane/16*16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(a.x[0]), "=r"(a.x[1]), "=r"(a.x[2]), "=r"(a.x[3]) : "r"(at) : "memory");
#elif PACKED16_MMA_LAYOUT == 1
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        a.x[r] = *(const uint32_t *) (s + (lane/4 + 8*(r%2))*stride + 4*(lane%4) + 16*(r/2));
    }
#else
    s += lane%16*stride + (PACKED16_MMA_LAYOUT == 3 ? lane/16*16 : 0);
#pragma unroll
    for (int i = 0; i < packed16_mma_a::n/4; ++i) {
        const uint4 w = ((const uint4 *) s)[i];
        a.x[4*i + 0] = w.x;
        a.x[4*i + 1] = w.y;
        a.x[4*i + 2] = w.z;
        a.x[4*i + 3] = w.w;
    }
#endif // PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
}

// nb neighbouring B tiles from memory of any kind: column j of tile i is the 32 bytes at p + (i*N + j)*stride.
// Meant for operands that are loaded once and kept.
template <int nb>
static __device__ __forceinline__ void packed16_mma_load(packed16_mma_b (&b)[nb], const void * p, const int stride, const int lane) {
#pragma unroll
    for (int i = 0; i < nb; ++i) {
        const char * s = (const char *) p + i*PACKED16_MMA_N*stride;
        if constexpr (PACKED16_MMA_LAYOUT == 1) {
            b[i].x[0] = *(const uint32_t *) (s + lane/4*stride + 4*(lane%4));
            b[i].x[1] = *(const uint32_t *) (s + lane/4*stride + 4*(lane%4) + 16);
        } else {
            s += lane%16*stride + (PACKED16_MMA_LAYOUT == 3 ? lane/16*16 : 0);
#pragma unroll
            for (int r = 0; r < packed16_mma_b::n; r += 4) {
                const uint4 w = *(const uint4 *) (s + 4*r);
                b[i].x[r + 0] = w.x;
                b[i].x[r + 1] = w.y;
                b[i].x[r + 2] = w.z;
                b[i].x[r + 3] = w.w;
            }
        }
    }
}

// The same from shared memory, where NVIDIA loads two tiles at once. p and stride as for A.
template <int nb>
static __device__ __forceinline__ void packed16_mma_load_shared(packed16_mma_b (&b)[nb], const void * p, const int stride, const int lane) {
#if PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
    static_assert(nb % 2 == 0, "packed16: B tiles are loaded in pairs");
#pragma unroll
    for (int i = 0; i < nb; i += 2) {
        const uint32_t at = (uint32_t) __cvta_generic_to_shared((const char *) p + (8*i + lane%8 + lane/16*8)*stride + lane/8%2*16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(b[i].x[0]), "=r"(b[i].x[1]), "=r"(b[i + 1].x[0]), "=r"(b[i + 1].x[1]) : "r"(at) : "memory");
    }
#else
    packed16_mma_load(b, p, stride, lane);
#endif // PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
}

// The same operands straight from global memory, in wide loads. The order of k inside the 32 bytes is another one on NVIDIA
// (lane t has bytes 8t .. 8t+7), so A and B must both come this way. p and stride are multiples of 16.
static __device__ __forceinline__ void packed16_mma_load_wide(packed16_mma_a & a, const void * p, const int stride, const int lane) {
#if PACKED16_MMA_LAYOUT == 1
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const uint2 w = *(const uint2 *) ((const char *) p + (lane/4 + 8*r)*stride + 8*(lane%4));
        a.x[r + 0] = w.x;
        a.x[r + 2] = w.y;
    }
#else
    packed16_mma_load(a, p, stride, lane);
#endif // PACKED16_MMA_LAYOUT == 1
}
static __device__ __forceinline__ void packed16_mma_load_wide(packed16_mma_b & b, const void * p, const int stride, const int lane) {
#if PACKED16_MMA_LAYOUT == 1
    const uint2 w = *(const uint2 *) ((const char *) p + lane/4*stride + 8*(lane%4));
    b.x[0] = w.x;
    b.x[1] = w.y;
#else
    packed16_mma_b one[1];
    packed16_mma_load(one, p, stride, lane);
    b = one[0];
#endif // PACKED16_MMA_LAYOUT == 1
}

// V^T as A tiles: D dimensions on the M side, n cells on the k side, f16. NVIDIA keeps it as V is, cell by cell, and
// transposes while loading (ldmatrix.trans); elsewhere it is stored transposed. 16 bytes of padding per row.
template <int D, int n>
struct packed16_mma_vt {
#if PACKED16_MMA_LAYOUT == 1
    alignas(16) uint16_t v[n][D + 8];
#else
    alignas(16) uint16_t v[D][n + 8];
#endif // PACKED16_MMA_LAYOUT == 1

    // Four neighbouring dimensions d .. d+3 of cells 2*pair and 2*pair + 1: two words of two halves for each cell.
    __device__ __forceinline__ void store(const int pair, const int d, const uint2 even, const uint2 odd) {
#if PACKED16_MMA_LAYOUT == 1
        *(uint2 *) &v[2*pair + 0][d] = even;
        *(uint2 *) &v[2*pair + 1][d] = odd;
#else
        const uint32_t e[2] = {even.x, even.y};
        const uint32_t o[2] = {odd.x, odd.y};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            *(uint32_t *) &v[d + 2*i + 0][2*pair] = (e[i] & 0xFFFF) | o[i] << 16;
            *(uint32_t *) &v[d + 2*i + 1][2*pair] = e[i] >> 16 | (o[i] & 0xFFFF0000u);
        }
#endif // PACKED16_MMA_LAYOUT == 1
    }

    // Dimensions d .. d+15 of cells k .. k+15.
    __device__ __forceinline__ void load(packed16_mma_a & a, const int d, const int k, const int lane) const {
#if PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
        // Matrix i of the four is dimensions d + 8*(i%2), cells k + 8*(i/2); lane l brings the address of row l%8 of matrix l/8.
        const uint32_t at = (uint32_t) __cvta_generic_to_shared(&v[k + lane%8 + lane/16*8][d + lane/8%2*8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(a.x[0]), "=r"(a.x[1]), "=r"(a.x[2]), "=r"(a.x[3]) : "r"(at) : "memory");
#elif PACKED16_MMA_LAYOUT == 1
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int row  = d + lane/4 + 8*(r%2);
            const int cell = k + 2*(lane%4) + 8*(r/2);
            a.x[r] = (uint32_t) v[cell][row] | (uint32_t) v[cell + 1][row] << 16;
        }
#else
        packed16_mma_load(a, &v[d][k], sizeof(v[0]), lane);
#endif // PACKED16_MMA_LAYOUT == 1 && PACKED16_MMA_NATIVE
    }
};

#include "packed16-mma-ops.cuh"
