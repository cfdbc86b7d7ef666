#pragma once

// V for the matrix-tile decode: how rows lie in shared memory, and A tiles of V^T made of them.
//
// Rows are copied as they are, `piece` bytes at a time. A warp owns D/warps dimensions of every cell, `tiles` times 16; a tile of
// V^T is 16 of those on the M side and 16 cells on the k side. In the registers of lane (g, t) = (lane/4, lane%4) of tile m
//
//     x[r + 2*p], r and p 0 or 1:  row g + 8*r, cells 2t + 8*p (low half) and 2t + 8*p + 1 (high half)
//
// Which dimension a row stands for is free. f16 goes through a transposing load; a quantised row is read by the lane that
// needs it: two values of a cell per lane and tile, unpacked for two cells at once. dim() says which they are. Of the 2*tiles values of a
// column that a lane has, the i-th is row row_of(i) of tile tile_of(i); `neighbours` of them at a time are neighbouring dimensions.
//
//     q4_0   `tiles` neighbouring bytes: byte m is rows g (low nibble) and g + 8 (high nibble) of tile m
//     q8_0   2*tiles neighbouring bytes: bytes 2m and 2m + 1 are rows g and g + 8 of tile m
//
// A quant becomes the integer it stands for exactly (1024 + n is a half whose low bits are n), and its product with the scale is
// rounded once to f16: what an f16 V cache would hold.

#include "packed16-mma.cuh"
#include "packed16-v-halves.cuh"

static constexpr __host__ __device__ int packed16_decode_mma_warps(const int D) { return D == 64 || PACKED16_CHUNK < 128 ? 4 : 8; }
static constexpr __host__ __device__ int packed16_decode_mma_tiles(const int D) { return D/16/packed16_decode_mma_warps(D); }

template <int D, typename V_t>
struct packed16_v_smem {
    static constexpr int row   = V_t::row_bytes(D);
    static constexpr int piece = row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : 4;
    static constexpr int step  = row + (row == 2*D ? 16 : 0); // f16: 16 bytes of padding against bank conflicts

    alignas(16) char v[PACKED16_CHUNK][step];

    // The block's threads copy the rows of cells k0 .. k0 + PACKED16_CHUNK-1; past the last cell its row again.
    template <int threads>
    __device__ __forceinline__ void copy(const char * V, const int nbv1, const int k0, const int nk) {
        constexpr int pieces = row/piece;
        const int    tid  = packed16_fresh(threadIdx.x);
        const int    last = nk - 1 - k0;
        const char * from = V + (int64_t) k0*nbv1;
#pragma unroll
        for (int i = 0; i < PACKED16_CHUNK*pieces; i += threads) {
            const int r = (i + tid)/pieces;
            const int c = (i + tid)%pieces*piece;
            if (i + threads <= PACKED16_CHUNK*pieces || i + tid < PACKED16_CHUNK*pieces) {
                packed16_copy_async<piece>(&v[r][c], from + min(r, last)*nbv1 + c);
            }
        }
    }
};

// Tiles of the f16 V.
template <int D>
struct packed16_v_tiles_f16 {
    static constexpr int tiles      = packed16_decode_mma_tiles(D);
    static constexpr int neighbours = 1;
    static constexpr __device__ int tile_of(const int i) { return i/2; }
    static constexpr __device__ int row_of(const int i) { return i%2; }
    static __device__ __forceinline__ int dim(const int warp, const int m, const int r, const int lane) {
        return 16*(warp*tiles + m) + 8*r + (lane >> 2);
    }
    static __device__ __forceinline__ void load(
            packed16_mma_a (&a)[tiles], const packed16_v_smem<D, packed16_v_f16> & smem, const int k, const int warp, const int lane) {
        static_assert(sizeof(packed16_mma_vt<D, PACKED16_CHUNK>) == sizeof(smem), "packed16: two layouts of V");
        const packed16_mma_vt<D, PACKED16_CHUNK> & vt = *(const packed16_mma_vt<D, PACKED16_CHUNK> *) &smem;
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
            vt.load(a[m], 16*(warp*tiles + m), k, lane);
        }
    }
};

// Tiles of the q8_0 V.
template <int D>
struct packed16_v_tiles_q8_0 {
    static constexpr int tiles      = packed16_decode_mma_tiles(D);
    static constexpr int neighbours = 2*tiles < 4 ? 2*tiles : 4; // what a store takes
    static constexpr __device__ int tile_of(const int i) { return i/2; }
    static constexpr __device__ int row_of(const int i) { return i%2; }
    static __device__ __forceinline__ int first(const int warp, const int lane) { return (warp*8 + (lane >> 2))*2*tiles; }
    static __device__ __forceinline__ int dim(const int warp, const int m, const int r, const int lane) {
        return first(warp, lane) + 2*m + r;
    }
    static __device__ __forceinline__ void load(
            packed16_mma_a (&a)[tiles], const packed16_v_smem<D, packed16_v_q8_0> & smem, const int k, const int warp, const int lane) {
        const uint32_t k1152 = packed16_fresh(0x64806480); // in a register, so that mask and exponent are one operation
        const int at = first(warp, lane)/32*34;
        const int in = first(warp, lane)%32 + 2;
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            const char * even = smem.v[k + 8*p + 2*((lane & 3)) + 0] + at;
            const char * odd  = smem.v[k + 8*p + 2*((lane & 3)) + 1] + at;
            const half2  d    = packed16_as_half2(*(const uint16_t *) even | (uint32_t) *(const uint16_t *) odd << 16);
#pragma unroll
            for (int m = 0; m < tiles; ++m) {
                const uint32_t y = *(const uint16_t *) (even + in + 2*m) | (uint32_t) *(const uint16_t *) (odd + in + 2*m) << 16;
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const half2 n = packed16_as_half2((y >> 8*r & 0x00FF00FFu) ^ k1152); // 1024 + 128 + value
                    a[m].x[r + 2*p] = packed16_as_word(__hmul2(__hsub2(n, __float2half2_rn(1152.0f)), d));
                }
            }
        }
    }
};

// Tiles of the q4_0 V.
template <int D>
struct packed16_v_tiles_q4_0 {
    static constexpr int tiles      = packed16_decode_mma_tiles(D);
    static constexpr int neighbours = tiles;
    static constexpr __device__ int tile_of(const int i) { return i%tiles; }
    static constexpr __device__ int row_of(const int i) { return i/tiles; }
    static __device__ __forceinline__ int first(const int warp, const int lane) { return (warp*8 + (lane >> 2))*tiles; } // of the quants of a row
    static __device__ __forceinline__ int dim(const int warp, const int m, const int r, const int lane) {
        return first(warp, lane)/16*32 + first(warp, lane)%16 + m + 16*r;
    }
    // The lane's bytes of a row: two at a time, or the only one.
    static __device__ __forceinline__ uint32_t quants(const char * row, const int in, const int i) {
        if constexpr (tiles == 1) {
            return *(const uint8_t *) (row + in);
        } else {
            return *(const uint16_t *) (row + in + 2*i);
        }
    }
    static __device__ __forceinline__ void load(
            packed16_mma_a (&a)[tiles], const packed16_v_smem<D, packed16_v_q4_0> & smem, const int k, const int warp, const int lane) {
        const uint32_t k1024 = packed16_fresh(0x64006400); // in a register, so that mask and exponent are one operation
        const int at = first(warp, lane)/16*18;
        const int in = first(warp, lane)%16 + 2;
#pragma unroll
        for (int p = 0; p < 2; ++p) {
            const char * even = smem.v[k + 8*p + 2*((lane & 3)) + 0] + at;
            const char * odd  = smem.v[k + 8*p + 2*((lane & 3)) + 1] + at;
            const half2  d    = packed16_as_half2(*(const uint16_t *) even | (uint32_t) *(const uint16_t *) odd << 16);
#pragma unroll
            for (int m = 0; m < tiles; ++m) {
                const uint32_t y = (quants(even, in, m/2) | quants(odd, in, m/2) << 16) >> 8*(m%2);
                // 1024 + n from the low nibble, 1024 + 16*n from the high one
                const half2 low  = packed16_as_half2((y & 0x000F000Fu) | k1024);
                const half2 high = packed16_as_half2((y & 0x00F000F0u) | k1024);
                a[m].x[0 + 2*p] = packed16_as_word(__hmul2(__hsub2(low, __float2half2_rn(1032.0f)), d));
                a[m].x[1 + 2*p] = packed16_as_word(__hmul2(__hfma2(high, __float2half2_rn(0.0625f), __float2half2_rn(-72.0f)), d));
            }
        }
    }
};

template <int D, typename V_t> struct packed16_v_tiles;
template <int D> struct packed16_v_tiles<D, packed16_v_f16>  : packed16_v_tiles_f16<D> {};
template <int D> struct packed16_v_tiles<D, packed16_v_q8_0> : packed16_v_tiles_q8_0<D> {};
template <int D> struct packed16_v_tiles<D, packed16_v_q4_0> : packed16_v_tiles_q4_0<D> {};
