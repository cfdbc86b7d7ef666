// What the rest of the CUDA backend gives to our units, as little as links.

#include "common.cuh"

const ggml_cuda_device_info & ggml_cuda_info() {
    static ggml_cuda_device_info info = {};
    return info;
}

bool amd_wmma_available(int) { return true; }

void ggml_cuda_set_device(int device) { CUDA_CHECK(hipSetDevice(device)); }

cudaStream_t ggml_backend_cuda_context::stream() { return nullptr; }

// Upstream's attention, which packed16-fattn.cu calls on unpacked caches.
void ggml_cuda_flash_attn_ext(ggml_backend_cuda_context &, ggml_tensor *) { abort(); }
