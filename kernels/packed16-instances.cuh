#pragma once

// The launches of packed16-launch.cuh for one V type: included by one .cu per type, so that they compile in parallel.

#include "packed16-launch.cuh"
#include "packed16-launch-prefill.cuh"
#include "packed16-pack.cuh"
#include "packed16-q.cuh"

template <int D, typename V_t, int ncols>
static void packed16_launch_decode(const packed16_call & call, cudaStream_t stream) {
    const packed16_args & a = call.args;
    const int n_cols   = a.nq*a.gqa;
    const int n_chunks = (a.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    const int n_blocks = (n_chunks + a.chunks_per_cta - 1)/a.chunks_per_cta;
    const bool single  = n_blocks == 1; // the block merges for itself

    const dim3 grid(n_blocks, a.n_head_kv*((n_cols + ncols - 1)/ncols), call.n_seq);
    packed16_decode<D, V_t, ncols><<<grid, PACKED16_DECODE_THREADS, 0, stream>>>(
        call.q_payload, call.q_scales, call.k, call.k_scales, call.v, call.mask, call.sinks,
        call.parts, call.meta, single ? call.dst : nullptr, a);
    CUDA_CHECK(cudaGetLastError());

    if (!single) {
        packed16_merge<D><<<dim3(n_cols, a.n_head_kv, call.n_seq), D, 0, stream>>>(call.parts, call.meta, call.sinks, call.dst, a);
        CUDA_CHECK(cudaGetLastError());
    }
}

template <int D, typename V_t>
static void packed16_launch_d(packed16_call call, cudaStream_t stream) {
    packed16_args & a = call.args;

    if (call.f16_k) {
        const dim3 grid(((int64_t) a.nk*(D/32) + 63)/64, a.n_head_kv, call.n_seq);
        packed16_pack_view<D><<<grid, 64, 0, stream>>>(
            call.k, call.packed_payload, call.packed_scales, a.nk, call.nbf1, call.nbf2, call.nbf3, call.scale_mode);
        CUDA_CHECK(cudaGetLastError());
        call.k        = call.packed_payload;
        call.k_scales = call.packed_scales;
        a.nbk1 = D;
        a.nbs1 = D/16;
        a.nbk2 = (int64_t) a.nk*a.nbk1;
        a.nbs2 = (int64_t) a.nk*a.nbs1;
        a.nbk3 = a.n_head_kv*a.nbk2;
        a.nbs3 = a.n_head_kv*a.nbs2;
    }

    const int n_rows = call.n_seq*a.n_head*a.nq;
    packed16_quantize_q<D><<<(n_rows + 3)/4, dim3(WARP_SIZE, 4), 0, stream>>>(
        call.q, call.q_payload, call.q_scales, n_rows, a.nq, a.n_head, a.gqa,
        call.prefill && !call.mma ? a.nq : 1, call.prefill && !call.mma ? 1 : a.gqa, call.nbq1, call.nbq2, call.nbq3, call.scale_log2);
    CUDA_CHECK(cudaGetLastError());

    if (call.prefill) {
        packed16_launch_prefill_side<D, V_t>(call, stream);
        return;
    }
    switch (packed16_decode_columns(a.nq*a.gqa)) {
        case 1: packed16_launch_decode<D, V_t, 1>(call, stream); break;
        case 2: packed16_launch_decode<D, V_t, 2>(call, stream); break;
        case 4: packed16_launch_decode<D, V_t, 4>(call, stream); break;
        case 6: packed16_launch_decode<D, V_t, 6>(call, stream); break;
        case 8: packed16_launch_decode<D, V_t, 8>(call, stream); break;
        default: GGML_ABORT("packed16: no decode kernel for these columns");
    }
}

template <typename V_t>
void packed16_launch(const packed16_call & call, const int head_size, cudaStream_t stream) {
    switch (head_size) {
#define X(d) case d: packed16_launch_d<d, V_t>(call, stream); break;
        PACKED16_HEAD_SIZES(X)
#undef X
        default: GGML_ABORT("packed16: no kernel for head size %d", head_size);
    }
}
