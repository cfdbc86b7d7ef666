#include "packed16-fattn.cuh"
#include "packed16-pack.cuh"

// The rows of both cache tensors are numbered over all streams; their row strides say where one is.
void ggml_cuda_op_pack_k_packed16(ggml_backend_cuda_context & ctx, ggml_tensor * dst) {
    const ggml_tensor * k_cur     = dst->src[0];
    const ggml_tensor * k_idxs    = dst->src[1];
    const ggml_tensor * k_payload = dst->src[2];
    const ggml_tensor * k_scales  = dst->src[3];

    const int n_blocks = k_cur->ne[0]/PACKED16_SCALE_BLOCK;
    const int n_tokens = k_cur->ne[1];
    const int mode     = ggml_get_op_params_i32(dst, 0);

    // both are views of, or are, whole rows: the streams follow each other
    GGML_ASSERT(k_payload->ne[2] == 1 || k_payload->nb[2] == k_payload->ne[1]*k_payload->nb[1]);
    GGML_ASSERT(k_scales->ne[2]  == 1 || k_scales->nb[2]  == k_scales->ne[1]*k_scales->nb[1]);

    if (n_tokens == 0) {
        return;
    }
    const int grid = ((int64_t) n_blocks*n_tokens + 63)/64;
    if (k_cur->type == GGML_TYPE_F32) {
        packed16_pack_rows<float><<<grid, 64, 0, ctx.stream()>>>(
            (const float *) k_cur->data, (const int64_t *) k_idxs->data, (char *) k_payload->data, (char *) k_scales->data,
            n_blocks, n_tokens, k_cur->nb[1], k_payload->nb[1], k_scales->nb[1], mode);
    } else {
        packed16_pack_rows<half><<<grid, 64, 0, ctx.stream()>>>(
            (const half *) k_cur->data, (const int64_t *) k_idxs->data, (char *) k_payload->data, (char *) k_scales->data,
            n_blocks, n_tokens, k_cur->nb[1], k_payload->nb[1], k_scales->nb[1], mode);
    }
    CUDA_CHECK(cudaGetLastError());
}
