// For compiling dot4fa's own device units with HIP's real headers and without
// upstream: the stand-in for the part of ggml-cuda that kernels use, and besides
// it what their host side uses, on the small ggml of testdata/fixture.

#pragma once

#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

#include <stdint.h>

// The names of CUDA that ggml-cuda maps on HIP's. A wave of RDNA has no masks.
#define __shfl_sync(mask, x, lane, width)     __shfl(x, lane, width)
#define __shfl_up_sync(mask, x, by, width)    __shfl_up(x, by, width)
#define __shfl_xor_sync(mask, x, bits, width) __shfl_xor(x, bits, width)
#define __all_sync(mask, x)                   __all(x)
#define __any_sync(mask, x)                   __any(x)
#define cudaEvent_t            hipEvent_t
#define cudaEventDestroy       hipEventDestroy
#define cudaEventRecord        hipEventRecord
#define cudaEventSynchronize   hipEventSynchronize
#define cudaFuncSetAttribute   hipFuncSetAttribute
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize

// For the host's compile of device functions, which nothing calls there.
static __host__ __device__ inline int __dp4a(const int a, const int b, const int c) {
    int sum = c;
    for (int i = 0; i < 32; i += 8) {
        sum += (int8_t) (a >> i)*(int8_t) (b >> i);
    }
    return sum;
}

#include "ggml/common.cuh"

#undef GGML_UNUSED
#undef GGML_PAD
#undef GGML_ABORT
#undef GGML_ASSERT
#include "ggml.h"
#include "ggml-impl.h"

#define GGML_CUDA_NAME "ROCm"

struct ggml_cuda_device_info {
    struct cuda_device_info {
        int cc;
        int nsm;
        size_t smpbo; // shared memory a block may have
    };
    cuda_device_info devices[16];
};

const ggml_cuda_device_info & ggml_cuda_info();
void ggml_cuda_set_device(int device);
bool amd_wmma_available(int cc);

struct ggml_backend_cuda_context {
    int device;
    cudaStream_t stream();
};
