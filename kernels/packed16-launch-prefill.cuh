#pragma once

// Launches of the prefill kernels.

#include "packed16-launch.cuh"

template <int D, typename V_t, int group>
static void packed16_launch_prefill(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const dim3 grid((a.nq + PACKED16_BM - 1)/PACKED16_BM, a.n_head/group, call.n_seq);
    if (call.mask) {
        const dim3 tiles((a.nk + PACKED16_BN - 1)/PACKED16_BN, grid.x, a.n_mask3);
        packed16_classify_mask<<<tiles, PACKED16_MASK_THREADS, 0, stream>>>(
            call.mask, call.classes, a.nk, a.nq, a.nbm1, a.nbm3, PACKED16_BM, 1, PACKED16_BN, call.assume_causal);
        CUDA_CHECK(cudaGetLastError());
    }
    packed16_prefill<D, V_t, group><<<grid, dim3(WARP_SIZE, PACKED16_PREFILL_WARPS), 0, stream>>>(
        call.q_payload, call.q_scales, call.k, call.k_scales, call.v, call.mask, call.mask ? call.classes : nullptr,
        call.sinks, call.dst, a);
    CUDA_CHECK(cudaGetLastError());
}

template <int D, typename V_t, int n_warps>
static void packed16_launch_prefill_mma(packed16_call call, cudaStream_t stream) {
    using tile = packed16_prefill_tile<D, n_warps>;
    static_assert(tile::bn >= 32 && tile::cols >= 64 && tile::cols <= PACKED16_MMA_MAX_COLS, "packed16: scratch is too small for this tile");
    packed16_args & a = call.args;

    const dim3 columns((a.nq*a.gqa + tile::cols - 1)/tile::cols, a.n_head_kv, call.n_seq);
    if (call.mask) {
        const dim3 tiles((a.nk + tile::bn - 1)/tile::bn, columns.x, a.n_mask3);
        packed16_classify_mask<<<tiles, PACKED16_MASK_THREADS, 0, stream>>>(
            call.mask, call.classes, a.nk, a.nq, a.nbm1, a.nbm3, tile::cols, a.gqa, tile::bn, call.assume_causal);
        CUDA_CHECK(cudaGetLastError());
    }
    a.n_units = packed16_prefill_units(a, call.n_seq, D, call.nsm, tile::cols, tile::bn, 8/n_warps);
    const dim3 grid(columns.x, columns.y, columns.z*a.n_units);
#if PACKED16_DYNAMIC_SMEM
    constexpr size_t smem = sizeof(packed16_prefill_mma_smem<D, V_t, n_warps>);
    CUDA_SET_SHARED_MEMORY_LIMIT((packed16_prefill_mma<D, V_t, n_warps>), smem);
#else
    constexpr size_t smem = 0;
#endif // PACKED16_DYNAMIC_SMEM
    packed16_prefill_mma<D, V_t, n_warps><<<grid, tile::threads, smem, stream>>>(
        call.q_payload, call.q_scales, call.k, call.k_scales, call.v, call.mask, call.mask ? call.classes : nullptr,
        call.sinks, call.dst, call.parts, call.meta, a);
    CUDA_CHECK(cudaGetLastError());
    if (a.n_units > 1) {
        packed16_merge_shares<D><<<dim3((a.nq*a.gqa + 3)/4, a.n_head_kv, call.n_seq), dim3(WARP_SIZE, 4), 0, stream>>>(
            call.parts, call.meta, call.sinks, call.dst, a);
        CUDA_CHECK(cudaGetLastError());
    }
}

// Q is quantised: columns q*gqa + g for mma, g*nq + q otherwise.
template <int D, typename V_t>
static void packed16_launch_prefill_side(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    if (call.mma) {
        // few columns, or too little shared memory: blocks of 4 warps
        if (a.nq*a.gqa > packed16_prefill_tile<D, 4>::cols && sizeof(packed16_prefill_mma_smem<D, V_t, 8>) <= call.smem_limit) {
            packed16_launch_prefill_mma<D, V_t, 8>(call, stream);
        } else {
            packed16_launch_prefill_mma<D, V_t, 4>(call, stream);
        }
    } else if (PACKED16_GQA_GROUP > 1 && a.gqa % PACKED16_GQA_GROUP == 0) {
        packed16_launch_prefill<D, V_t, PACKED16_GQA_GROUP>(call, stream);
    } else {
        packed16_launch_prefill<D, V_t, 1>(call, stream);
    }
}
