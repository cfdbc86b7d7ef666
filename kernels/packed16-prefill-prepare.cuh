#pragma once

// What a prefill call does before attention, in one launch: Q is quantised (packed16-q.cuh) and the tiles of the mask are
// classified (packed16-mask.cuh). Neither reads what the other writes.
//
//     block    0 .. n_q - 1    8 rows of Q each, one per warp
//              n_q ..          one tile of the mask each

#include "packed16-mask.cuh"
#include "packed16-q.cuh"

#define PACKED16_PREPARE_ROWS (PACKED16_MASK_THREADS/WARP_SIZE)

// Launch: grid (ceil(n_rows / PACKED16_PREPARE_ROWS) + tiles.n_x*tiles.n_y*n_mask3), block PACKED16_MASK_THREADS. n_rows = n_seq*n_head*nq.
// stride_g, stride_q: where (g, q) of a KV head lands.
template <int D>
static __global__ void __launch_bounds__(PACKED16_MASK_THREADS) packed16_prepare(
        const packed16_q_view view, int * __restrict__ q_payload, float * __restrict__ q_scales, const int n_rows,
        const int stride_g, const int stride_q, const packed16_mask_tiles tiles, const packed16_args args) {
    __shared__ packed16_mask_smem smem;

    packed16_dependencies_trigger();

    const int n_q = (n_rows + PACKED16_PREPARE_ROWS - 1)/PACKED16_PREPARE_ROWS;
    if ((int) blockIdx.x < n_q) {
        const int row = blockIdx.x*PACKED16_PREPARE_ROWS + threadIdx.x/WARP_SIZE;
        if (row < n_rows) { // a whole warp
            packed16_quantize_q_of<D>(view, q_payload, q_scales, row, args.nq, args.n_head, args.gqa, stride_g, stride_q, threadIdx.x % WARP_SIZE);
        }
        return;
    }
    const unsigned int tile = blockIdx.x - n_q;
    packed16_classify_tile(smem, tiles, args, tile % tiles.n_x, tile / tiles.n_x % tiles.n_y, tile / tiles.n_x / tiles.n_y);
}
