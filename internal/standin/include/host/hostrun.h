// Runs a CUDA-style kernel on the CPU, so that its real text can be tested without
// a GPU. Each thread of a block is a fiber; which fiber runs next is drawn from a seed.
//
//   hostrun::options.seed = 7;
//   hostrun::launch(kernel<256>, dim3(4), dim3(128), 0, q, k, out);
//
// What it finds, each a message "hostrun: …" and exit status 86:
//   - a barrier or a warp operation that not every thread of its block or warp reaches;
//   - with -DHOSTRUN_TRACED and -fsanitize-coverage=func,trace-loads,trace-stores: two threads touching the same
//     shared byte with no barrier between them, and shared bytes read before written;
// and through the sanitizers this is meant to be compiled with (ASan, UBSan): accesses
// outside global buffers, outside the kernel's own shared struct or its arrays,
// misaligned vector loads, signed overflow. Shared memory holds NaN patterns when a block starts.
//
// Rules for kernels: `__shared__ T smem;` inside the kernel itself, no dynamic shared
// memory, warp masks 0xffffffff (an AMD GPU ignores them), warps of 32.
// One translation unit of the program defines HOSTRUN_MAIN before including this.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#define HOSTRUN 1

#define __host__
#define __device__
#define __global__
#define __constant__ static
#define __shared__ static __attribute__((section(".hostrun.shared"), aligned(16)))
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define DOT4FA_HD static inline
#define DOT4FA_DEV static inline

struct dim3 {
    uint32_t x, y, z;
    constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};

#include "vector_types.h"
#include "half_types.h"
#include "hostrun_shared.h"
#include "hostrun_fiber.h"
#include "hostrun_warp.h"
#include "hostrun_copy.h"
#include "hostrun_math.h"

typedef struct hostrun_stream * cudaStream_t;
typedef int cudaError_t;
static const cudaError_t cudaSuccess = 0;
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
// Blocks that a multiprocessor runs at once: as many as the caller has room for, so that work is cut into many shares.
template <typename Kernel>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int * blocks, Kernel, int, size_t) {
    *blocks = 32;
    return cudaSuccess;
}

namespace hostrun {

// Runs every block of the grid to its end, in an order drawn from options.seed.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_shared, Args &&... args) {
    if (dynamic_shared != 0) {
        fail("dynamic shared memory is not supported: declare one static __shared__ struct");
    }
    std::tuple<std::decay_t<Params>...> bound(static_cast<std::decay_t<Params>>(std::forward<Args>(args))...);
    struct call {
        void (*kernel)(Params...);
        std::tuple<std::decay_t<Params>...> * args;
    } c{kernel, &bound};
    run_grid([](void * p) { auto * c = (call *) p; std::apply(c->kernel, *c->args); }, &c, (const void *) kernel, grid, block);
}

// What kernel<<<grid, block, shared, stream>>>(arguments) is translated to, as nvcc translates it:
// launcher(kernel, grid, block, shared, stream)(arguments).
template <typename... Params> struct bound_launch {
    void (*kernel)(Params...);
    dim3   grid, block;
    size_t dynamic_shared;
    template <typename... Args> void operator()(Args &&... args) const {
        launch(kernel, grid, block, dynamic_shared, std::forward<Args>(args)...);
    }
};
template <typename... Params>
bound_launch<Params...> launcher(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_shared = 0, cudaStream_t = nullptr) {
    return {kernel, grid, block, dynamic_shared};
}

} // namespace hostrun

#if defined(HOSTRUN_MAIN)
#include "hostrun_shared.inl"
#include "hostrun_fiber.inl"
#endif
