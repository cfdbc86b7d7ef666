#pragma once

// What a prefill call does before attention, in one launch: Q is quantised (packed16-q.cuh) and the tiles of the mask are
// classified (packed16-mask.cuh). Neither reads what the other writes.
//
//     block    0 .. n_q - 1    32 rows of Q each, four neighbouring ones per warp
//              n_q ..          8 tiles of the mask each, one per warp

#include "packed16-mask.cuh"
#include "packed16-q.cuh"

#define PACKED16_PREPARE_WARPS     8
#define PACKED16_PREPARE_WARP_ROWS 4
#define PACKED16_PREPARE_ROWS      (PACKED16_PREPARE_WARPS*PACKED16_PREPARE_WARP_ROWS)

// The blocks for rows of Q; and all of them, those for tiles of the mask behind.
static __host__ __device__ __forceinline__ int packed16_prepare_row_blocks(const int n_rows) {
    return (n_rows + PACKED16_PREPARE_ROWS - 1)/PACKED16_PREPARE_ROWS;
}
static inline unsigned int packed16_prepare_blocks(const int n_rows, const packed16_mask_tiles & tiles, const packed16_args & args) {
    const int64_t n_tiles = (int64_t) tiles.n_x*tiles.n_y*args.n_mask3;
    return (unsigned int) (packed16_prepare_row_blocks(n_rows) + (n_tiles + PACKED16_PREPARE_WARPS - 1)/PACKED16_PREPARE_WARPS);
}

// Launch: grid packed16_prepare_blocks, block PACKED16_PREPARE_WARPS*32. n_rows = n_seq*n_head*nq.
// stride_g, stride_q: where (g, q) of a KV head lands.
template <int D>
static __global__ void __launch_bounds__(PACKED16_PREPARE_WARPS*WARP_SIZE) packed16_prepare(
        const packed16_q_view view, int * __restrict__ q_payload, float * __restrict__ q_scales, const int n_rows,
        const int stride_g, const int stride_q, const packed16_mask_tiles tiles, const packed16_args args) {
    packed16_dependencies_trigger();

    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = packed16_uniform(threadIdx.x / WARP_SIZE);
    const int n_q  = packed16_prepare_row_blocks(n_rows);
    if ((int) blockIdx.x < n_q) {
        const int row = blockIdx.x*PACKED16_PREPARE_ROWS + warp*PACKED16_PREPARE_WARP_ROWS;
        if (row < n_rows) {
            packed16_quantize_q_rows<D, PACKED16_PREPARE_WARP_ROWS>(
                view, q_payload, q_scales, row, n_rows, args.nq, args.n_head, args.gqa, stride_g, stride_q, lane);
        }
        return;
    }
    const unsigned int tile = (blockIdx.x - n_q)*PACKED16_PREPARE_WARPS + warp;
    const unsigned int row  = tile / tiles.n_x;
    if (row < (unsigned int) tiles.n_y*args.n_mask3) {
        packed16_classify_tile(tiles, args, tile % tiles.n_x, row % tiles.n_y, row / tiles.n_y, lane);
    }
}
