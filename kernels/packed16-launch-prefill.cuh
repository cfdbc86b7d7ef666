#pragma once

// Launches of the prefill: Q and the mask are prepared, then attention, then for matrix tiles what puts shares together.

#include "packed16-launch.cuh"
#include "packed16-prefill-prepare.cuh"

// Prepares for blocks of `rows` columns q*gqa + g (mma), or of `rows` query rows with columns g*nq + q, and bn cells.
template <int D>
static void packed16_launch_prepare(const packed16_call & call, const int rows, const int bn, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const packed16_q_view q = {call.q, call.nbq1, call.nbq2, call.nbq3, call.scale_log2};

    packed16_mask_tiles tiles = {};
    tiles.mask    = call.mask;
    tiles.classes = call.classes;
    tiles.gqa     = call.mma ? a.gqa : 1;
    tiles.cols    = rows;
    tiles.bn      = bn;
    tiles.n_x     = call.mask ? packed16_class_stride(a.nk, bn) : 0;
    tiles.n_y     = (a.nq*tiles.gqa + rows - 1)/rows;
    tiles.assume_causal = call.assume_causal;

    const int n_rows = call.n_seq*a.n_head*a.nq;
    packed16_prepare<D><<<packed16_prepare_blocks(n_rows, tiles, a), PACKED16_PREPARE_WARPS*WARP_SIZE, 0, stream>>>(
        q, call.q_payload, call.q_scales, n_rows, call.mma ? 1 : a.nq, call.mma ? a.gqa : 1, tiles, a);
    CUDA_CHECK(cudaGetLastError());
}

template <int D, typename V_t, int group>
static void packed16_launch_prefill(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const dim3 grid((a.nq + PACKED16_BM - 1)/PACKED16_BM, a.n_head/group, call.n_seq);
    packed16_launch_prepare<D>(call, PACKED16_BM, PACKED16_BN, stream);
    packed16_prefill<D, V_t, group><<<grid, dim3(WARP_SIZE, PACKED16_PREFILL_WARPS), 0, stream>>>(
        call.q_payload, call.q_scales, call.k, call.k_scales, call.v, call.mask, call.mask ? call.classes : nullptr,
        call.sinks, call.dst, a);
    CUDA_CHECK(cudaGetLastError());
}

template <int D, typename V_t, int shape>
static void packed16_launch_prefill_mma(const packed16_call & call, cudaStream_t stream) {
    using tile = packed16_prefill_tile<D, shape>;
    static_assert(tile::cols <= PACKED16_MMA_MAX_COLS, "packed16: scratch is too small for this tile");
    packed16_args a = call.args;
#if PACKED16_DYNAMIC_SMEM
    constexpr size_t smem = sizeof(packed16_prefill_mma_smem<D, V_t, shape>);
    CUDA_SET_SHARED_MEMORY_LIMIT((packed16_prefill_mma<D, V_t, shape>), smem);
#else
    constexpr size_t smem = 0;
#endif // PACKED16_DYNAMIC_SMEM
    int resident = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, packed16_prefill_mma<D, V_t, shape>, tile::threads, smem));

    const int n_rows = packed16_prefill_rows(a, call.n_seq, tile::cols);
    const int slots  = call.nsm*std::max(std::min(resident, tile::resident), 1);
    const int n_x    = (a.nq*a.gqa + tile::cols - 1)/tile::cols;
    a.n_units = n_rows ? 0 : packed16_prefill_units(a, call.n_seq, D, tile::cols, tile::bn, call.nsm, slots);
    const dim3 grid  = n_rows ? dim3(packed16_prefill_shares(a, n_rows, tile::bn, slots)) : dim3(n_x, a.n_head_kv, call.n_seq*a.n_units);

    packed16_launch_prepare<D>(call, tile::cols, tile::bn, stream);
    packed16_start(packed16_prefill_mma<D, V_t, shape>, grid, dim3(tile::threads), smem, stream,
        (const int *) call.q_payload, (const float *) call.q_scales, call.k, call.k_scales, call.v, call.mask,
        (const uint8_t *) (call.mask ? call.classes : nullptr), call.sinks, call.dst, call.parts, call.meta, call.ends, n_rows, a);
    if (a.n_units != 1) {
        constexpr int cols = packed16_merge_shares_cols(D);
        const dim3    merge((a.nq*a.gqa + cols - 1)/cols, a.n_head_kv, call.n_seq);
        packed16_start(packed16_merge_shares<D>, merge, dim3(PACKED16_MERGE_SHARES_THREADS), 0, stream,
            (const float *) call.parts, (const float2 *) call.meta, (const int2 *) call.ends, call.sinks, call.dst, (int) tile::cols, a);
    }
}

template <int D, typename V_t>
static void packed16_launch_prefill_side(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    if (call.mma) {
        // few columns, or too little shared memory: blocks of 4 warps
        const bool many = a.nq*a.gqa > packed16_prefill_tile<D, 4>::cols;
        if (many && sizeof(packed16_prefill_mma_smem<D, V_t, 8>) <= call.smem_limit) {
            return packed16_launch_prefill_mma<D, V_t, 8>(call, stream);
        }
        if constexpr (PACKED16_MMA_ASYNC && D == 128) {
            if (many && sizeof(packed16_prefill_mma_smem<D, V_t, PACKED16_SHAPE_LOW>) <= call.smem_limit) {
                return packed16_launch_prefill_mma<D, V_t, PACKED16_SHAPE_LOW>(call, stream);
            }
        }
        packed16_launch_prefill_mma<D, V_t, 4>(call, stream);
    } else if (PACKED16_GQA_GROUP > 1 && a.gqa % PACKED16_GQA_GROUP == 0) {
        packed16_launch_prefill<D, V_t, PACKED16_GQA_GROUP>(call, stream);
    } else {
        packed16_launch_prefill<D, V_t, 1>(call, stream);
    }
}
