// A small HIP header: enough of the language for device-only compilation of
// packed16 kernels by a plain clang (>= 19) for RDNA3 and RDNA4 in wave32, without
// ROCm and without its device libraries. Each function has the meaning ROCm's
// has; transcendentals go to the compiler's intrinsics, as ROCm's own do.
// Not for running: there is no host side behind it.

#pragma once

#include <stddef.h>
#include <stdint.h>

#define __host__       __attribute__((host))
#define __device__     __attribute__((device))
#define __global__     __attribute__((global))
#define __shared__     __attribute__((shared))
#define __constant__   __attribute__((constant))
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#define DOT4FA_BOUNDS1(threads)        __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define DOT4FA_BOUNDS2(threads, waves) __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define DOT4FA_PICK(a, b, name, ...)   name
#define __launch_bounds__(...)         DOT4FA_PICK(__VA_ARGS__, DOT4FA_BOUNDS2, DOT4FA_BOUNDS1, )(__VA_ARGS__)

#define DOT4FA_DEV static __device__ inline __attribute__((always_inline))
#define DOT4FA_HD  static __host__ __device__ inline __attribute__((always_inline))

struct dim3 {
    uint32_t x, y, z;
    constexpr __host__ __device__ dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};

#include "vector_types.h"

// --- launch geometry ---------------------------------------------------------
// Code object v5: workgroup counts are the first three words of the implicit arguments,
// workgroup sizes the three halfwords after them.
#define DOT4FA_COORD(name, X, Y, Z)                                                        \
    struct name {                                                                          \
        __declspec(property(get = get_x)) uint32_t x;                                      \
        __declspec(property(get = get_y)) uint32_t y;                                      \
        __declspec(property(get = get_z)) uint32_t z;                                      \
        __device__ __attribute__((always_inline)) uint32_t get_x() const { return X; }     \
        __device__ __attribute__((always_inline)) uint32_t get_y() const { return Y; }     \
        __device__ __attribute__((always_inline)) uint32_t get_z() const { return Z; }     \
        __device__ __attribute__((always_inline)) operator dim3() const { return {X, Y, Z}; } \
    }
#define DOT4FA_ARG(type, at) \
    (*(const __attribute__((address_space(4))) type *) ((const __attribute__((address_space(4))) char *) __builtin_amdgcn_implicitarg_ptr() + (at)))
DOT4FA_COORD(dot4fa_thread_idx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z());
DOT4FA_COORD(dot4fa_block_idx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z());
DOT4FA_COORD(dot4fa_grid_dim, DOT4FA_ARG(uint32_t, 0), DOT4FA_ARG(uint32_t, 4), DOT4FA_ARG(uint32_t, 8));
DOT4FA_COORD(dot4fa_block_dim, DOT4FA_ARG(uint16_t, 12), DOT4FA_ARG(uint16_t, 14), DOT4FA_ARG(uint16_t, 16));
extern const __device__ __attribute__((weak)) dot4fa_thread_idx threadIdx;
extern const __device__ __attribute__((weak)) dot4fa_block_idx  blockIdx;
extern const __device__ __attribute__((weak)) dot4fa_grid_dim   gridDim;
extern const __device__ __attribute__((weak)) dot4fa_block_dim  blockDim;

// --- synchronisation and lanes (wave32) ----------------------------------------
DOT4FA_DEV void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DOT4FA_DEV void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
DOT4FA_DEV void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
DOT4FA_DEV int  __lane_id() { return (int) __builtin_amdgcn_mbcnt_lo(~0u, 0u); }
DOT4FA_DEV uint32_t dot4fa_ballot(int p) { return __builtin_amdgcn_ballot_w32(p != 0); }

template <typename T> DOT4FA_DEV T dot4fa_lane(T v, int lane) {
    static_assert(sizeof(T) % 4 == 0, "shuffles move whole words");
    union { T v; int w[sizeof(T) / 4]; } u;
    u.v = v;
    for (unsigned i = 0; i < sizeof(T) / 4; ++i) {
        u.w[i] = __builtin_amdgcn_ds_bpermute(lane << 2, u.w[i]);
    }
    return u.v;
}
template <typename T> DOT4FA_DEV T __shfl(T v, int src, int width = 32) {
    const int self = __lane_id();
    return dot4fa_lane(v, (self & ~(width - 1)) + (src & (width - 1)));
}
template <typename T> DOT4FA_DEV T __shfl_xor(T v, int mask, int width = 32) {
    const int self = __lane_id();
    const int src  = self ^ mask;
    return dot4fa_lane(v, src >= ((self + width) & ~(width - 1)) ? self : src);
}
template <typename T> DOT4FA_DEV T __shfl_up(T v, unsigned delta, int width = 32) {
    const int self = __lane_id();
    const int src  = self - (int) delta;
    return dot4fa_lane(v, src < (self & ~(width - 1)) ? self : src);
}
template <typename T> DOT4FA_DEV T __shfl_down(T v, unsigned delta, int width = 32) {
    const int self = __lane_id();
    return dot4fa_lane(v, (int) ((self & (width - 1)) + delta) >= width ? self : self + (int) delta);
}
DOT4FA_DEV int __all(int p) { return dot4fa_ballot(!p) == 0; }
DOT4FA_DEV int __any(int p) { return dot4fa_ballot(p) != 0; }
DOT4FA_DEV unsigned long long __ballot(int p) { return dot4fa_ballot(p); }

// Spelt with their width, as ggml's HIP mapping needs them.
#define __shfl_sync(mask, var, lane, width)      __shfl(var, lane, width)
#define __shfl_up_sync(mask, var, delta, width)   __shfl_up(var, delta, width)
#define __shfl_down_sync(mask, var, delta, width) __shfl_down(var, delta, width)
#define __shfl_xor_sync(mask, var, lanes, width) __shfl_xor(var, lanes, width)
#define __all_sync(mask, var)                    __all(var)
#define __any_sync(mask, var)                    __any(var)
#define __ballot_sync(mask, var)                 ((uint32_t) __ballot(var))

#include "hip_math.h"

#include "hip_host.h"
