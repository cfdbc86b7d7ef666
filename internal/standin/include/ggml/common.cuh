// A stand-in for the part of upstream's ggml-cuda/common.cuh that packed16
// kernels use, for machines without an upstream tree. Same names and meaning,
// written for dot4fa. It is compiled two ways:
//   -DGGML_USE_HIP  for an AMD GPU, over hip/hip_runtime.h beside this file
//   otherwise       for the CPU, over hostrun.h (a block runs as fibers)
// What is missing here is missing on purpose: a kernel that needs it needs
// upstream, and should say so by failing to compile.

#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(GGML_USE_HIP)
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#define cudaStream_t     hipStream_t
#define cudaError_t      hipError_t
#define cudaSuccess      hipSuccess
#define cudaGetLastError hipGetLastError
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor hipOccupancyMaxActiveBlocksPerMultiprocessor
#else
#include "hostrun.h"
#endif // defined(GGML_USE_HIP)

#define WARP_SIZE 32

#ifndef GGML_UNUSED
#define GGML_UNUSED(x) (void)(x)
#endif
template <typename... Args>
__host__ __device__ constexpr inline void ggml_unused_vars_impl(Args &&...) noexcept {}
#define GGML_UNUSED_VARS(...) (decltype(ggml_unused_vars_impl(__VA_ARGS__))())
#define GGML_PAD(x, n) (((x) + (n) - 1) & ~((n) - 1))

#define GGML_ABORT(...)                                    \
    do {                                                   \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);    \
        fprintf(stderr, __VA_ARGS__);                      \
        fprintf(stderr, "\n");                             \
        abort();                                           \
    } while (0)
#define GGML_ASSERT(x) do { if (!(x)) { GGML_ABORT("GGML_ASSERT(%s) failed", #x); } } while (0)

#define CUDA_CHECK(err) GGML_ASSERT((err) == cudaSuccess)

// Reached only where the shape table and the compiled instances disagree.
#if defined(GGML_USE_HIP)
#define NO_DEVICE_CODE __builtin_trap()
#else
#define NO_DEVICE_CODE GGML_ABORT("no device code for this instance")
#endif

#define GGML_CUDA_RESTRICT __restrict__

// The generations that ggml names; set by the compiler's own target macros.
#if defined(__GFX12__)
#define RDNA4
#endif
#if defined(__GFX11__)
#define RDNA3
#endif
#if defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1152__) || defined(__gfx1153__)
#define RDNA3_5
#endif
#if defined(RDNA3) && !defined(RDNA3_5)
#define RDNA3_0
#endif
#if defined(RDNA3) || defined(RDNA4)
#define RDNA
#define AMD_WMMA_AVAILABLE
#endif

#define FP16_AVAILABLE
#define FAST_FP16_AVAILABLE
#if defined(RDNA3) || defined(RDNA4)
#define V_DOT2_F32_F16_AVAILABLE
#endif

// Block formats of V, as stored by ggml.
typedef half  ggml_half;
typedef half2 ggml_half2;

#define QK4_0 32
struct block_q4_0 {
    ggml_half d;             // scale
    uint8_t   qs[QK4_0 / 2]; // byte i: element i in the low nibble, i+16 in the high one, both offset by 8
};
static_assert(sizeof(block_q4_0) == 18, "q4_0 is 18 bytes for 32 values");

#define QK8_0 32
struct block_q8_0 {
    ggml_half d;         // scale
    int8_t    qs[QK8_0]; // values
};
static_assert(sizeof(block_q8_0) == 34, "q8_0 is 34 bytes for 32 values");

static constexpr __device__ int ggml_cuda_get_physical_warp_size() { return WARP_SIZE; }
static constexpr __device__ int ggml_cuda_get_max_cpy_bytes() { return 16; }

static __device__ __forceinline__ void ggml_cuda_pdl_sync() {}
static __device__ __forceinline__ void ggml_cuda_pdl_lc() {}

// c + sum of the four products of signed bytes of a and b.
static __device__ __forceinline__ int ggml_cuda_dp4a(const int a, const int b, int c) {
#if defined(RDNA3) || defined(RDNA4)
    return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#else
    return __dp4a(a, b, c);
#endif
}

// Butterfly reductions over groups of `width` neighbouring lanes; every lane gets the result.
template <int width = WARP_SIZE>
static __device__ __forceinline__ int warp_reduce_sum(int x) {
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x += __shfl_xor_sync(0xffffffff, x, offset, width);
    }
    return x;
}

template <int width = WARP_SIZE>
static __device__ __forceinline__ float warp_reduce_sum(float x) {
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x += __shfl_xor_sync(0xffffffff, x, offset, width);
    }
    return x;
}

template <int width = WARP_SIZE>
static __device__ __forceinline__ float2 warp_reduce_sum(float2 a) {
    a.x = warp_reduce_sum<width>(a.x);
    a.y = warp_reduce_sum<width>(a.y);
    return a;
}

template <int width = WARP_SIZE>
static __device__ __forceinline__ float warp_reduce_max(float x) {
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, offset, width));
    }
    return x;
}

template <int width = WARP_SIZE>
static __device__ __forceinline__ int warp_reduce_all(int x) {
    if constexpr (width == WARP_SIZE) {
        return __all_sync(0xffffffff, x);
    }
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x = __shfl_xor_sync(0xffffffff, x, offset, width) && x;
    }
    return x;
}

template <int width = WARP_SIZE>
static __device__ __forceinline__ int warp_reduce_any(int x) {
    if constexpr (width == WARP_SIZE) {
        return __any_sync(0xffffffff, x);
    }
#pragma unroll
    for (int offset = width / 2; offset > 0; offset >>= 1) {
        x = __shfl_xor_sync(0xffffffff, x, offset, width) || x;
    }
    return x;
}

static __device__ __forceinline__ void ggml_cuda_mad(float & acc, const float v, const float u) {
    acc += v * u;
}

static __device__ __forceinline__ void ggml_cuda_mad(float & acc, const float2 v, const float2 u) {
    acc += v.x * u.x;
    acc += v.y * u.y;
}

static __device__ __forceinline__ void ggml_cuda_mad(float & acc, const half2 v, const half2 u) {
#if defined(GGML_USE_HIP) && defined(V_DOT2_F32_F16_AVAILABLE)
    asm volatile("v_dot2_f32_f16 %0, %1, %2, %0" : "+v"(acc) : "v"(v), "v"(u));
#else
    const float2 fv = __half22float2(v);
    const float2 fu = __half22float2(u);
    acc += fv.x * fu.x;
    acc += fv.y * fu.y;
#endif
}

static __device__ __forceinline__ void ggml_cuda_mad(half2 & acc, const half2 v, const half2 u) {
    acc = __hadd2(acc, __hmul2(v, u));
}

// Copies nbytes between registers and memory in pieces of `alignment` bytes (0: one piece).
template <int nbytes, int alignment = 0>
static __device__ __forceinline__ void ggml_cuda_memcpy_1(void * __restrict__ dst, const void * __restrict__ src) {
    constexpr int piece = alignment == 0 ? nbytes : alignment;
    static_assert(nbytes % piece == 0, "the size must be a multiple of the alignment");
    static_assert(piece == 1 || piece == 2 || piece == 4 || piece == 8 || piece == 16, "no load of this size exists");
#pragma unroll
    for (int i = 0; i < nbytes / piece; ++i) {
        if constexpr (piece == 1) {
            ((char *) dst)[i] = ((const char *) src)[i];
        } else if constexpr (piece == 2) {
            ((short *) dst)[i] = ((const short *) src)[i];
        } else if constexpr (piece == 4) {
            ((int *) dst)[i] = ((const int *) src)[i];
        } else if constexpr (piece == 8) {
            ((int2 *) dst)[i] = ((const int2 *) src)[i];
        } else {
            ((int4 *) dst)[i] = ((const int4 *) src)[i];
        }
    }
}

// fastdiv: division by a launch constant. (mp, shift, divisor) as upstream packs them.
static inline uint3 init_fastdiv_values(uint64_t d64) {
    GGML_ASSERT(d64 != 0 && d64 <= UINT32_MAX);
    const uint32_t d = (uint32_t) d64;
    uint32_t shift = 0;
    while (shift < 32 && (uint64_t(1) << shift) < d) {
        shift++;
    }
    const uint32_t mp = (uint32_t) (((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d)) / d + 1);
    return make_uint3(mp, shift, d);
}

static __device__ __forceinline__ uint32_t fastdiv(uint32_t n, const uint3 f) {
    return (__umulhi(n, f.x) + n) >> f.y;
}

static __device__ __forceinline__ uint32_t fastmodulo(uint32_t n, const uint3 f) {
    return n - fastdiv(n, f) * f.z;
}

// Launches.
struct ggml_cuda_kernel_launch_params {
    dim3         block_nums;
    dim3         block_dims;
    size_t       shmem;
    cudaStream_t stream;

    ggml_cuda_kernel_launch_params(const dim3 & nums, const dim3 & dims, const size_t shmem_, const cudaStream_t stream_)
        : block_nums(nums), block_dims(dims), shmem(shmem_), stream(stream_) {}
    ggml_cuda_kernel_launch_params(const dim3 & nums, const dim3 & dims, const int shmem_, const cudaStream_t stream_)
        : block_nums(nums), block_dims(dims), shmem((size_t) shmem_), stream(stream_) {}
};

#if !defined(GGML_USE_HIP)
template <typename Kernel, typename... Args>
static void ggml_cuda_kernel_launch(Kernel kernel, const ggml_cuda_kernel_launch_params & p, Args &&... args) {
    hostrun::launch(kernel, p.block_nums, p.block_dims, p.shmem, static_cast<Args &&>(args)...);
}
#else
// A device-only compile never launches: naming the kernel instantiates it, which is what `isa` wants.
template <typename Kernel, typename... Args>
static void ggml_cuda_kernel_launch(Kernel kernel, const ggml_cuda_kernel_launch_params &, Args &&...) {
    (void) kernel;
}
#endif
