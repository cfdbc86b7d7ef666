// Small kernels, right ones and broken ones: what the runtime must run and what it must find.
//   samples NAME SEED [PREEMPT]

#define HOSTRUN_MAIN
#include "common.cuh"

#include <vector>

enum kind { right, missing_barrier, diverged_shuffle, diverged_barrier, early_return, uninitialised, past_the_array, past_the_struct,
            past_the_buffer, misaligned, partial_mask, warp_race, narrow_shuffle, reuse_race, atomic_race };

struct reduction_shared { float sum[4]; };
struct row_shared { float row[128]; };

// Sum of n values by one block of 128: each thread strides, warps reduce, warp 0 adds the four sums.
template <kind K> static __global__ void __launch_bounds__(128, 2) reduction(const float * x, float * out, int n) {
    __shared__ reduction_shared smem;
    const int tid = threadIdx.x;
    if (K == early_return && tid == 77) {
        return;
    }
    float sum = 0.0f;
    for (int i = tid; i < n + (K == past_the_buffer ? 1 : 0); i += blockDim.x) {
        sum += x[i];
    }
    if (K == diverged_shuffle) {
        if (tid % 32 < 16) {
            sum = warp_reduce_sum(sum);
        }
    } else if (K == partial_mask) {
        sum += __shfl_xor_sync(0x0000ffff, sum, 1, WARP_SIZE);
    } else if (K == narrow_shuffle) {
        sum = warp_reduce_sum<16>(sum);
        sum += __shfl_sync(0xffffffff, sum, (tid % WARP_SIZE) ^ 16, WARP_SIZE);
    } else {
        sum = warp_reduce_sum(sum);
    }
    if (tid % WARP_SIZE == 0 && !(K == uninitialised && tid == 96)) {
        smem.sum[tid / WARP_SIZE + (K == past_the_array ? 1 : 0)] = sum;
    }
    if (K == diverged_barrier) {
        if (tid < 64) {
            __syncthreads();
        } else {
            __syncthreads();
        }
    } else if (K != missing_barrier) {
        __syncthreads();
    }
    if (tid == 0) {
        float total = 0.0f;
        for (int i = 0; i < 4; ++i) {
            total += smem.sum[i];
        }
        out[blockIdx.x] = total;
    }
}

// Reverses a row of 128 through shared memory, within warps: needs a warp barrier, not a block barrier.
template <kind K> static __global__ void reverse(const float * x, float * out) {
    __shared__ row_shared smem;
    const int tid = threadIdx.x, at = (tid & ~31) + 31 - tid % 32;
    float * row = smem.row;
    row[tid + (K == past_the_struct ? 32 : 0)] = x[tid];
    if (K != warp_race) {
        __syncwarp();
    }
    if (K == misaligned) {
        out[0] = ((const float4 *) (x + 1))->x;
    }
    out[tid] = row[at];
}

struct tile_shared { float tile[128]; };

// Adds to each value that of the next thread and 64 times that of the thread 64 further on, by one tile used twice.
template <kind K> static __global__ void twice(const float * x, float * out) {
    __shared__ tile_shared smem;
    const int tid = threadIdx.x;
    float sum = x[tid];
    for (int step : {1, 64}) {
        smem.tile[tid] = x[tid] * (float) step;
        __syncthreads();
        sum += smem.tile[(tid + step) % 128];
        if (K != reuse_race) {
            __syncthreads();
        }
    }
    out[tid] = sum;
}

template <kind K> static int run_twice() {
    std::vector<float> x(128), out(128);
    for (int i = 0; i < 128; ++i) {
        x[i] = (float) i;
    }
    hostrun::launch(twice<K>, dim3(1), dim3(128), 0, x.data(), out.data());
    for (int i = 0; i < 128; ++i) {
        if (out[i] != (float) (i + (i + 1) % 128 + 64 * ((i + 64) % 128))) {
            return 1;
        }
    }
    return 0;
}

template <kind K> static int run_reduction() {
    const int n = 1000;
    std::vector<float> x(n), out(3, NAN);
    float want = 0.0f;
    for (int i = 0; i < n; ++i) {
        x[i] = (float) (i % 7);
        want += x[i];
    }
    x.shrink_to_fit();
    hostrun::launch(reduction<K>, dim3(3), dim3(128), 0, x.data(), out.data(), n);
    return out[0] == want && out[1] == want && out[2] == want ? 0 : 1;
}

template <kind K> static int run_reverse() {
    std::vector<float4> x4(32), out4(32);
    float * x = (float *) x4.data(), * out = (float *) out4.data();
    for (int i = 0; i < 128; ++i) {
        x[i] = (float) i;
    }
    hostrun::launch(reverse<K>, dim3(1), dim3(128), 0, x, out);
    for (int i = 0; i < 128; ++i) {
        if (out[i] != (float) ((i & ~31) + 31 - i % 32)) {
            return 1;
        }
    }
    return 0;
}

struct flags_shared { unsigned bits; };

// Collects one bit per warp in shared memory.
template <kind K> static __global__ void collect(unsigned * out) {
    __shared__ flags_shared smem;
    if (threadIdx.x == 0) {
        smem.bits = 0;
    }
    if (K != atomic_race) {
        __syncthreads();
    }
    atomicOr(&smem.bits, 1u << threadIdx.x/WARP_SIZE);
    __syncthreads();
    if (threadIdx.x == 1) {
        *out = smem.bits;
    }
}

template <kind K> static int run_collect() {
    std::vector<unsigned> out(1);
    hostrun::launch(collect<K>, dim3(1), dim3(128), 0, out.data());
    return out[0] == 15 ? 0 : 1;
}

// half, dp4a, and the conversions a pack kernel leans on.
static int run_arithmetic() {
    bool ok = true;
    auto check = [&](bool b, const char * what) { if (!b) { printf("wrong: %s\n", what); ok = false; } };
    check(__half_as_ushort(__float2half(65519.0f)) == 0x7bff, "65519 rounds to 65504");
    check(__half_as_ushort(__float2half(65520.0f)) == 0x7c00, "65520 rounds to infinity");
    check(__half_as_ushort(__float2half(1.0f + 1.0f / 2048)) == 0x3c00, "ties go to even, down");
    check(__half_as_ushort(__float2half(1.0f + 3.0f / 2048)) == 0x3c02, "ties go to even, up");
    check(__half_as_ushort(__float2half(ldexpf(1, -25))) == 0x0000, "half the least subnormal goes to zero");
    check(__half_as_ushort(__float2half(ldexpf(1.0001f, -25))) == 0x0001, "a little more goes to the least subnormal");
    check(__half2float(__ushort_as_half(0x0001)) == ldexpf(1, -24), "the least subnormal");
    check(ggml_cuda_dp4a((int) 0x80ff017f, 0x7f02037f, 5) == 5 + 127 * 127 + 3 - 2 - 128 * 127, "dp4a is signed in every byte");
    check(__float2int_rn(2.5f) == 2 && __float2int_rn(3.5f) == 4 && __float2int_rn(-2.5f) == -2, "round half to even");
    check(__float2int_rn(NAN) == 0 && __float2int_rn(1e20f) == INT32_MAX, "conversion saturates");
    const uint3 seven = init_fastdiv_values(7);
    for (uint32_t n : {0u, 6u, 7u, 48u, 49u, 1000000u, 0x7fffffffu}) {
        check(fastdiv(n, seven) == n / 7 && fastmodulo(n, seven) == n % 7, "fastdiv");
    }
    return ok ? 0 : 1;
}

int main(int argc, char ** argv) {
    if (argc < 3) {
        return 2;
    }
    const std::string name = argv[1];
    hostrun::options.seed    = strtoull(argv[2], nullptr, 10);
    hostrun::options.preempt = argc > 3 ? (uint32_t) atoi(argv[3]) : 0;
#define REDUCTION(k) if (name == #k) return run_reduction<k>();
#define REVERSE(k)   if (name == "reverse_" #k) return run_reverse<k>();
    REDUCTION(right) REDUCTION(missing_barrier) REDUCTION(diverged_shuffle) REDUCTION(diverged_barrier) REDUCTION(early_return)
    REDUCTION(uninitialised) REDUCTION(past_the_array) REDUCTION(past_the_buffer) REDUCTION(partial_mask) REDUCTION(narrow_shuffle)
    REVERSE(right) REVERSE(warp_race) REVERSE(past_the_struct) REVERSE(misaligned)
    if (name == "twice_right") return run_twice<right>();
    if (name == "twice_reuse_race") return run_twice<reuse_race>();
    if (name == "collect_right") return run_collect<right>();
    if (name == "collect_atomic_race") return run_collect<atomic_race>();
    if (name == "arithmetic") return run_arithmetic();
    return 2;
}
