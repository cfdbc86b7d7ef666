// Kernels whose machine code the test knows: a clean one, one that spills, one
// that loads K four bytes at a time, one that computes every product twice.

#include "common.cuh"

struct sample_shared { float x[4]; };

enum sample_kind { sample_clean, sample_narrow, sample_twice, sample_spills };

template <int D, sample_kind kind>
static __global__ void __launch_bounds__(128) sample_rows(const int4 * __restrict__ q, const int4 * __restrict__ k, float * __restrict__ out, const int n) {
    __shared__ sample_shared smem;
    float acc = 0.0f;
    for (int r = threadIdx.x; r < n; r += 128) {
        int sum = 0;
#pragma unroll
        for (int i = 0; i < D/16; ++i) {
            const int4 x = q[i];
            int4 y;
            if (kind == sample_narrow) {
                const volatile int * p = (const volatile int *) (k + (int64_t) r*(D/16) + i);
                y = make_int4(p[0], p[1], p[2], p[3]);
            } else {
                y = k[(int64_t) r*(D/16) + i];
            }
            sum = ggml_cuda_dp4a(x.x, y.x, sum);
            sum = ggml_cuda_dp4a(x.y, y.y, sum);
            sum = ggml_cuda_dp4a(x.z, y.z, sum);
            sum = ggml_cuda_dp4a(x.w, y.w, sum);
            if (kind == sample_twice) {
                sum = ggml_cuda_dp4a(x.x, y.x, sum);
                sum = ggml_cuda_dp4a(x.y, y.y, sum);
                sum = ggml_cuda_dp4a(x.z, y.z, sum);
                sum = ggml_cuda_dp4a(x.w, y.w, sum);
            }
        }
        if (kind == sample_spills) { // an array in memory: indexed by a value unknown until run time
            volatile float kept[32];
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                kept[i] = (float) (sum + i);
            }
            acc += kept[n % 32];
        }
        acc += exp2f((float) sum * 0.001f);
    }
    acc = warp_reduce_sum(acc);
    if (threadIdx.x % WARP_SIZE == 0) {
        smem.x[threadIdx.x / WARP_SIZE] = acc;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = smem.x[0] + smem.x[1] + smem.x[2] + smem.x[3];
    }
}

#define SAMPLE(D, kind) template __global__ void sample_rows<D, kind>(const int4 *, const int4 *, float *, int);
SAMPLE(256, sample_clean)
SAMPLE(64, sample_clean)
SAMPLE(64, sample_narrow)
SAMPLE(64, sample_twice)
SAMPLE(64, sample_spills)
