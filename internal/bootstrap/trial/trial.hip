// Needs of the device libraries: the maths (ocml), the rest (ockl), the target's
// own file. And of the host's: a launch, and hipBLAS.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <hipblas/hipblas.h>

__global__ void trial(float * x, half * y) {
    __shared__ float s[32];
    s[threadIdx.x] = expf(x[threadIdx.x]);
    __syncthreads();
    const float v = s[threadIdx.x ^ 1] + __shfl_xor(x[threadIdx.x], 16, 32);
    y[threadIdx.x] = __float2half(v);
    atomicAdd(x, v);
}

extern "C" int run_trial(float * x, half * y) {
    hipblasHandle_t handle;
    if (hipblasCreate(&handle) != HIPBLAS_STATUS_SUCCESS) {
        return 1;
    }
    trial<<<1, 32, 0, nullptr>>>(x, y);
    return hipStreamSynchronize(nullptr) != hipSuccess;
}
