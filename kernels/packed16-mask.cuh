#pragma once

// Mask tiles of the prefill: which tiles of query rows x cells of the mask need to be read at all. A tile has bn cells and the
// query rows of `cols` columns q*gqa + g: with gqa 1, cols rows.
//
//     dead    every cell is -inf, or past the last cell: the tile is skipped
//     full    every cell is 0: no mask loads, no compares
//     mixed   anything else: the mask is read
//
// The seed's split into a visible prefix and a causal tail, made exact: it holds for every mask, so also for sliding
// windows, for cells that are not in position order and for several sequences in one batch. The mask is read once
// for all heads; a plain causal batch has one diagonal of mixed tiles.
//
// Tile: a warp classifies one tile, a lane takes 8 cells of a query row with one load of 16 bytes, bn/8 lanes a row; 2-byte loads where
// rows do not begin on 16 bytes and in a tile that is not whole. No LDS. packed16_prepare launches them.

#include "packed16-layout.cuh"

enum packed16_tile_class {
    PACKED16_TILE_DEAD  = 0,
    PACKED16_TILE_FULL  = 1,
    PACKED16_TILE_MIXED = 2,
};

// Bytes of classes from one row of tiles to the next: one per tile, filled up with dead ones to words.
static __host__ __device__ __forceinline__ int packed16_class_stride(const int nk, const int bn) {
    return ((nk + bn - 1)/bn + 3) & ~3;
}

// Where the classes of a row of tiles are: [mask slice][row tile][cell tile].
static __device__ __forceinline__ const uint8_t * packed16_classes_of(
        const uint8_t * classes, const int slice, const int n_rows, const int row, const int nk, const int bn) {
    return classes ? classes + ((int64_t) slice*n_rows + row)*packed16_class_stride(nk, bn) : nullptr;
}

// Which tiles of a mask there are, and how they are classified.
struct packed16_mask_tiles {
    const char * mask;           // null: there are none
    uint8_t *    classes;
    int          n_x, n_y;       // tiles along the cells (packed16_class_stride) and along the columns
    int          cols, gqa, bn;
    int          assume_causal;  // unsafe: a tile below the diagonal counts as full without being read. n_kv is padded by at
                                 // most 255 cells, so the diagonal is taken 255 cells early.
};

// Which values of a mask there are, bits: 1 a zero, 2 a dead cell, 4 another value.
static __device__ __forceinline__ int packed16_mask_kinds(const uint32_t bits) {
    return bits == PACKED16_MASK_DEAD ? 2 : (bits & 0x7FFF) == 0 ? 1 : 4;
}
static __device__ __forceinline__ int packed16_mask_kinds(const uint4 w) { // 8 values
    constexpr uint32_t dead = PACKED16_MASK_DEAD*0x10001u;
    if (((w.x | w.y | w.z | w.w) & 0x7FFF7FFFu) == 0) {
        return 1;
    }
    if (w.x == dead && w.y == dead && w.z == dead && w.w == dead) {
        return 2;
    }
    return packed16_mask_kinds(w.x & 0xFFFF) | packed16_mask_kinds(w.x >> 16) | packed16_mask_kinds(w.y & 0xFFFF) | packed16_mask_kinds(w.y >> 16) |
           packed16_mask_kinds(w.z & 0xFFFF) | packed16_mask_kinds(w.z >> 16) | packed16_mask_kinds(w.w & 0xFFFF) | packed16_mask_kinds(w.w >> 16);
}

// Classifies tile (x, y) of slice z with one warp.
static __device__ __forceinline__ void packed16_classify_tile(
        const packed16_mask_tiles & tiles, const packed16_args & args, const int x, const int y, const int z, const int lane) {
    const int k0 = x*tiles.bn;
    const int k1 = min(k0 + tiles.bn, args.nk);
    const int q0 = y*tiles.cols/tiles.gqa;
    const int q1 = min((y*tiles.cols + tiles.cols - 1)/tiles.gqa + 1, args.nq);
    const char * mask = tiles.mask + z*args.nbm3;

    int seen = k1 < k0 + tiles.bn ? 2 : 0; // what is past the last cell counts as dead
    if (tiles.assume_causal && k0 + tiles.bn - 1 <= q0 + args.nk - args.nq - 255) {
        seen = 1;
    } else if (k1 == k0 + tiles.bn && (((uintptr_t) mask | (uintptr_t) args.nbm1) & 15) == 0) {
        const int    lanes = tiles.bn/8;
        const char * row   = mask + (int64_t) (q0 + lane/lanes)*args.nbm1 + 2*k0 + lane%lanes*16;
        const int    step  = WARP_SIZE/lanes; // rows at a time
#pragma unroll 4
        for (int q = q0 + lane/lanes; q < q1; q += step) {
            seen |= packed16_mask_kinds(*(const uint4 *) row);
            row  += (int64_t) step*args.nbm1;
        }
    } else {
        for (int q = q0; q < q1; ++q) {
            for (int k = k0 + lane; k < k1; k += WARP_SIZE) {
                seen |= packed16_mask_kinds((uint32_t) ((const uint16_t *) (mask + (int64_t) q*args.nbm1))[k]);
            }
        }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        seen |= __shfl_xor_sync(0xFFFFFFFF, seen, offset, WARP_SIZE);
    }
    if (lane == 0) {
        tiles.classes[((int64_t) z*tiles.n_y + y)*tiles.n_x + x] =
            seen == 1 ? PACKED16_TILE_FULL : seen == 2 ? PACKED16_TILE_DEAD : PACKED16_TILE_MIXED;
    }
}
