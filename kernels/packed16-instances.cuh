#pragma once

// The launches of packed16-launch.cuh for one V type: included by one .cu per type, so that they compile in parallel.

#include "packed16-launch.cuh"
#include "packed16-launch-prefill.cuh"
#include "packed16-launch-decode.cuh"
#include "packed16-pack.cuh"
#include "packed16-q.cuh"
#include "packed16-unpack.cuh"

template <int D, typename V_t>
static void packed16_launch_d(packed16_call call, cudaStream_t stream) {
    packed16_args & a = call.args;

    if (call.unpacked_k) {
        const dim3 grid(((int64_t) a.nk*(D/8) + 255)/256, a.n_head_kv, call.n_seq);
        packed16_unpack<D, V_t><<<grid, 256, 0, stream>>>(
            call.k, call.k_scales, call.v, call.mask, call.sinks, call.unpacked_k, call.unpacked_v, call.unpacked_sinks, a);
        CUDA_CHECK(cudaGetLastError());
        return;
    }
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

#if PACKED16_DECODE_MATRIX
    if (!call.prefill && call.matrix_decode) {
        packed16_launch_decode_side_mma<D, V_t>(call, stream);
        return;
    }
#endif // PACKED16_DECODE_MATRIX

    if (call.prefill) {
        packed16_launch_prefill_side<D, V_t>(call, stream);
        return;
    }
    packed16_launch_decode_side<D, V_t>(call, stream);
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
