#pragma once

// Launches of the decode side: which kernel, how many columns a block takes, and the merge behind it.
//
//     matrix tiles   decode (quantises Q itself), merge; a short call where there are clusters of blocks: decode (packed16-cluster.cuh)
//     vector units   quantise Q, decode, merge
//
// The merge is put in place while decode on matrix tiles runs, that decode itself only when all before it is done: a chain of calls
// whose decodes come early too takes a fifth to a third longer (docs/performance.md).
//
// Where one block has all cells of its columns it merges for itself and there is no merge.

#include "packed16-decode.cuh"
#include "packed16-launch.cuh"
#include "packed16-q.cuh"
#if PACKED16_DECODE_MATRIX
#include "packed16-decode-mma.cuh"
#endif // PACKED16_DECODE_MATRIX

#include <algorithm>
#include <atomic>

#ifndef PACKED16_MERGE_WIDE
#define PACKED16_MERGE_WIDE 3 // blocks of 64 dimensions per multiprocessor beyond which a block takes 128
#endif // PACKED16_MERGE_WIDE

template <int D>
static void packed16_launch_merge(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const auto launch = [&](auto merge, const int quads) {
        packed16_start(merge, dim3(a.nq*a.gqa*(D/packed16_merge_dims(quads)), a.n_head_kv, call.n_seq), dim3(PACKED16_MERGE_THREADS), 0, stream,
            call.parts, call.meta, call.sinks, call.dst, a);
    };
#if PACKED16_DECODE_MATRIX // timed on NVIDIA GPUs alone
    if constexpr (D >= packed16_merge_dims(2)) {
        if ((int64_t) a.nq*a.n_head*call.n_seq*(D/packed16_merge_dims(1)) > PACKED16_MERGE_WIDE*call.nsm) {
            return launch(packed16_merge<D, 2>, 2);
        }
    }
#endif // PACKED16_DECODE_MATRIX
    launch(packed16_merge<D, 1>, 1);
}

template <int D, typename V_t, int ncols>
static void packed16_launch_decode(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const int  n_blocks = packed16_decode_blocks(a);
    const bool single   = n_blocks == 1;

    const dim3 grid(n_blocks, a.n_head_kv*((a.nq*a.gqa + ncols - 1)/ncols), call.n_seq);
    packed16_decode<D, V_t, ncols><<<grid, PACKED16_DECODE_THREADS, 0, stream>>>(
        call.q_payload, call.q_scales, call.k, call.k_scales, call.v, call.mask, call.sinks,
        call.parts, call.meta, single ? call.dst : nullptr, a);
    CUDA_CHECK(cudaGetLastError());
    if (!single) {
        packed16_launch_merge<D>(call, stream);
    }
}

#if PACKED16_DECODE_MATRIX
#if PACKED16_CLUSTERS
// Whether the kernel's code for the current device is for sm_90 or newer: for a newer device than any it was compiled for, the driver
// may have made it from older PTX, which knows nothing of clusters.
template <int D, typename V_t, int nt>
static bool packed16_decode_has_clusters() {
    static std::atomic<int> known[GGML_CUDA_MAX_DEVICES] = {}; // 0: not asked yet
    std::atomic<int> & ptx = known[ggml_cuda_get_device()];
    if (ptx == 0) {
        cudaFuncAttributes attr = {};
        CUDA_CHECK(cudaFuncGetAttributes(&attr, packed16_decode_mma<D, V_t, nt>));
        ptx = attr.ptxVersion;
    }
    return ptx >= 90;
}

// Launches decode in clusters of all blocks of the same columns, which merge among themselves. False, and nothing done, where
// not all clusters run at once.
template <int D, typename V_t, int nt>
static bool packed16_launch_decode_clusters(
        const packed16_call & call, const packed16_q_view & q, const dim3 grid, const size_t shared, cudaStream_t stream) {
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = 1;
    attr.val.clusterDim.y = grid.y;
    attr.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim          = grid;
    config.blockDim         = dim3(packed16_decode_mma_warps(D)*WARP_SIZE);
    config.dynamicSmemBytes = shared;
    config.stream           = stream;
    config.attrs            = &attr;
    config.numAttrs         = 1;

    static std::atomic<int> known[GGML_CUDA_MAX_DEVICES][PACKED16_CLUSTER_MOST + 1] = {}; // clusters at once, plus 1; 0: not asked yet
    std::atomic<int> & room = known[ggml_cuda_get_device()][grid.y];
    if (room == 0) {
        int n = 0;
        if (cudaOccupancyMaxActiveClusters(&n, packed16_decode_mma<D, V_t, nt>, &config) != cudaSuccess) {
            (void) cudaGetLastError(); // not one of this size
            n = 0;
        }
        room = n + 1;
    }
    if ((int64_t) grid.x*grid.z >= room) {
        return false;
    }
    CUDA_CHECK(cudaLaunchKernelEx(&config, packed16_decode_mma<D, V_t, nt>,
        q, call.k, call.k_scales, call.v, call.mask, call.sinks, call.parts, call.meta, call.dst, call.args));
    return true;
}
#endif // PACKED16_CLUSTERS

template <int D, typename V_t, int nt>
static void packed16_launch_decode_mma(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const int  n_blocks = packed16_decode_blocks(a);
    const bool single   = n_blocks == 1;

    static_assert(PACKED16_MMA_DECODE_RESIDENT/WARP_SIZE/packed16_decode_mma_warps(D) == packed16_decode_resident(D),
        "packed16: the cut counts on other blocks than the registers leave room for");
    static_assert(sizeof(packed16_decode_mma_smem<D, V_t, nt>) <= packed16_decode_mma_shared(D, V_t::row_bytes(D), 8*nt),
        "packed16: a decode block needs more shared memory than was asked of the device");
#if PACKED16_DYNAMIC_SMEM
    using smem_t = packed16_decode_mma_smem<D, V_t, nt>;
    constexpr size_t shared = sizeof(smem_t);
    size_t           limit  = shared;
#if PACKED16_CLUSTERS
    constexpr size_t shared_in_cluster = shared + sizeof(packed16_cluster_inbox<D, smem_t::cols>);
    const bool       clusters = smem_t::clusters && shared_in_cluster <= call.smem_limit && packed16_decode_has_clusters<D, V_t, nt>();
    limit = clusters ? shared_in_cluster : shared;
#endif // PACKED16_CLUSTERS
    CUDA_SET_SHARED_MEMORY_LIMIT((packed16_decode_mma<D, V_t, nt>), limit);
#else
    constexpr size_t shared = 0;
#endif // PACKED16_DYNAMIC_SMEM
    const dim3 grid(a.n_head_kv*((a.nq*a.gqa + 8*nt - 1)/(8*nt)), n_blocks, call.n_seq);
    const packed16_q_view q = {call.q, call.nbq1, call.nbq2, call.nbq3, call.scale_log2};
#if PACKED16_CLUSTERS
    // every block has one chunk, and all chunks are of one super-chunk
    if (clusters && !single && a.chunks_per_cta == 1 && a.n_units == n_blocks &&
            n_blocks <= std::min({PACKED16_DECODE_CLUSTER, PACKED16_CLUSTER_MOST, PACKED16_SUPER_CHUNK/PACKED16_CHUNK}) &&
            packed16_launch_decode_clusters<D, V_t, nt>(call, q, grid, shared_in_cluster, stream)) {
        return;
    }
#endif // PACKED16_CLUSTERS
    packed16_decode_mma<D, V_t, nt><<<grid, packed16_decode_mma_warps(D)*WARP_SIZE, shared, stream>>>(
        q, call.k, call.k_scales, call.v, call.mask, call.sinks, call.parts, call.meta, single ? call.dst : nullptr, a);
    CUDA_CHECK(cudaGetLastError());
    if (!single) {
        packed16_launch_merge<D>(call, stream);
    }
}

template <int D, typename V_t>
static void packed16_launch_decode_side_mma(const packed16_call & call, cudaStream_t stream) {
    switch (call.columns > 0 ? call.columns : packed16_decode_columns(call.args.nq*call.args.gqa, D, true)) {
        case  8: packed16_launch_decode_mma<D, V_t, 1>(call, stream); break;
        case 16: packed16_launch_decode_mma<D, V_t, 2>(call, stream); break;
        case 24: packed16_launch_decode_mma<D, V_t, 3>(call, stream); break;
        case 32:
            if constexpr (D < 256) {
                packed16_launch_decode_mma<D, V_t, 4>(call, stream);
                break;
            }
        default: GGML_ABORT("packed16: no decode kernel for these columns");
    }
}
#endif // PACKED16_DECODE_MATRIX

// The vector kernel.
template <int D, typename V_t>
static void packed16_launch_decode_side(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const packed16_q_view q = {call.q, call.nbq1, call.nbq2, call.nbq3, call.scale_log2};
    const int n_rows = call.n_seq*a.n_head*a.nq;
    packed16_quantize_q<D><<<(n_rows + 3)/4, dim3(WARP_SIZE, 4), 0, stream>>>(
        q, call.q_payload, call.q_scales, n_rows, a.nq, a.n_head, a.gqa);
    CUDA_CHECK(cudaGetLastError());

    switch (packed16_decode_columns(call.args.nq*call.args.gqa, D, false)) {
        case 1: packed16_launch_decode<D, V_t, 1>(call, stream); break;
        case 2: packed16_launch_decode<D, V_t, 2>(call, stream); break;
        case 4: packed16_launch_decode<D, V_t, 4>(call, stream); break;
        case 6: packed16_launch_decode<D, V_t, 6>(call, stream); break;
        case 8: packed16_launch_decode<D, V_t, 8>(call, stream); break;
        default: GGML_ABORT("packed16: no decode kernel for these columns");
    }
}
