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
// Tile: 256 threads classify one tile, 2-byte loads along the cells. LDS: 4 bytes per warp. packed16_prepare launches them.

#include "packed16-layout.cuh"

enum packed16_tile_class {
    PACKED16_TILE_DEAD  = 0,
    PACKED16_TILE_FULL  = 1,
    PACKED16_TILE_MIXED = 2,
};

#define PACKED16_MASK_THREADS 256

struct packed16_mask_smem {
    int seen[PACKED16_MASK_THREADS/WARP_SIZE]; // bits: 1 a zero, 2 a dead cell, 4 another value
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

// Classifies tile (x, y) of slice z with the whole block.
static __device__ __forceinline__ void packed16_classify_tile(
        packed16_mask_smem & smem, const packed16_mask_tiles & tiles, const packed16_args & args, const int x, const int y, const int z) {
    const int tid = threadIdx.x;
    const int k0  = x*tiles.bn;
    const int q0  = y*tiles.cols/tiles.gqa;
    const int q1  = min((y*tiles.cols + tiles.cols - 1)/tiles.gqa + 1, args.nq);

    int seen = 0;
    if (tiles.assume_causal && k0 + tiles.bn - 1 <= q0 + args.nk - args.nq - 255) {
        seen = 1;
    } else {
        const int k = k0 + tid % tiles.bn; // bn divides the block
        for (int q = q0 + tid/tiles.bn; q < q1; q += PACKED16_MASK_THREADS/tiles.bn) {
            const int bits = k < args.nk ?
                ((const uint16_t *) (tiles.mask + z*args.nbm3 + (int64_t) q*args.nbm1))[k] : PACKED16_MASK_DEAD;
            seen |= bits == PACKED16_MASK_DEAD ? 2 : (bits & 0x7FFF) == 0 ? 1 : 4;
        }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        seen |= __shfl_xor_sync(0xFFFFFFFF, seen, offset, WARP_SIZE);
    }
    if (tid % WARP_SIZE == 0) {
        smem.seen[tid/WARP_SIZE] = seen;
    }
    __syncthreads();
    if (tid == 0) {
        seen = 0;
        for (int w = 0; w < PACKED16_MASK_THREADS/WARP_SIZE; ++w) {
            seen |= smem.seen[w];
        }
        tiles.classes[((int64_t) z*tiles.n_y + y)*tiles.n_x + x] =
            seen == 1 ? PACKED16_TILE_FULL : seen == 2 ? PACKED16_TILE_DEAD : PACKED16_TILE_MIXED;
    }
}
