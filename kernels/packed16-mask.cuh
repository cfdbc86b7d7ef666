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
// Tile: one block of 256 threads classifies one tile, 2-byte loads along the cells. LDS: 12 bytes per warp.

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

// Launch: grid (ceil(nk / bn), ceil(nq*gqa / cols), n_mask3), block 256.
// classes: one byte per tile, [mask slice][row tile][cell tile].
// assume_causal (unsafe): a tile below the diagonal counts as full without being read. n_kv is padded by at most 255
// cells, so the diagonal is taken 255 cells early.
static __global__ void __launch_bounds__(PACKED16_MASK_THREADS) packed16_classify_mask(
        const char * __restrict__ mask, uint8_t * __restrict__ classes, const int nk, const int nq,
        const int nbm1, const int64_t nbm3, const int cols, const int gqa, const int bn, const int assume_causal) {
    __shared__ packed16_mask_smem smem;

    const int tid = threadIdx.x;
    const int k0  = blockIdx.x*bn;
    const int q0  = blockIdx.y*cols/gqa;
    const int q1  = min(((int) blockIdx.y*cols + cols - 1)/gqa + 1, nq);

    int seen = 0;
    if (assume_causal && k0 + bn - 1 <= q0 + nk - nq - 255) {
        seen = 1;
    } else {
        const int k = k0 + tid % bn; // bn divides the block
        for (int q = q0 + tid/bn; q < q1; q += PACKED16_MASK_THREADS/bn) {
            const int bits = k < nk ?
                ((const uint16_t *) (mask + blockIdx.z*nbm3 + (int64_t) q*nbm1))[k] : PACKED16_MASK_DEAD;
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
        classes[((int64_t) blockIdx.z*gridDim.y + blockIdx.y)*gridDim.x + blockIdx.x] =
            seen == 1 ? PACKED16_TILE_FULL : seen == 2 ? PACKED16_TILE_DEAD : PACKED16_TILE_MIXED;
    }
}
