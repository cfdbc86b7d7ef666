// The seed document's experiments on whatever GPU is there: how fast logits are with K in several layouts, what the seed tried
// around its loop of 64 dot4 per logit, and the tile shapes and mask classes of this project's dot4 prefill.
// Built by `dot4fa bench --suite seed` with the compiler of the recipe, once for each set of kernel parameters.
//
// Prints one line per measurement, tab-separated: what, name, nq, nk, µs (median of SEED_SAMPLES), NMSE of the checked
// rows against float64. Ends with "done". -DSEED_LAYOUTS=1 measures the logits too.

#include "packed16-prefill.cuh"
#include "packed16-prefill-prepare.cuh"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(GGML_USE_HIP) // names that vendors/hip.h does not map
#define cudaEventCreate      hipEventCreate
#define cudaEventElapsedTime hipEventElapsedTime
#endif // defined(GGML_USE_HIP)

#ifndef SEED_LAYOUTS
#define SEED_LAYOUTS 0
#endif

#ifndef SEED_QUICK
#define SEED_QUICK 0 // 1: small shapes, each run once: for a check of the numbers on a CPU
#endif

#define SEED_SAMPLES (SEED_QUICK ? 1 : 15)
#define SEED_FILL    (SEED_QUICK ? 2 : 1024) // blocks of the kernels that make data
#define SEED_D       256

// what common.cuh leaves to the library
extern "C" void ggml_abort(const char * file, int line, const char * fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

[[noreturn]] void ggml_cuda_error(const char * stmt, const char * func, const char * file, int line, const char * msg) {
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, func, stmt, msg);
    exit(1);
}

template <typename T> static T * device_alloc(const size_t n) {
    void * p = nullptr;
    CUDA_CHECK(cudaMalloc(&p, n*sizeof(T) + 1024));
    return (T *) p;
}

template <typename T> static std::vector<T> to_host(const T * p, const size_t n) {
    std::vector<T> out(n);
    CUDA_CHECK(cudaMemcpy(out.data(), p, n*sizeof(T), cudaMemcpyDeviceToHost));
    return out;
}

// ---- data ----

static __device__ __forceinline__ uint32_t seed_hash(uint64_t i, const uint32_t salt) {
    i = (i + 1)*0x9E3779B97F4A7C15ull + salt*0xD1B54A32D192ED03ull;
    i = (i ^ (i >> 30))*0xBF58476D1CE4E5B9ull;
    i = (i ^ (i >> 27))*0x94D049BB133111EBull;
    return (uint32_t) (i ^ (i >> 31));
}

// four uniform bytes added up: close to normal, deviation 1
static __device__ __forceinline__ float seed_normal(const uint64_t i, const uint32_t salt) {
    const uint32_t z = seed_hash(i, salt);
    return ((float) (z & 255) + (float) (z >> 8 & 255) + (float) (z >> 16 & 255) + (float) (z >> 24) - 510.0f)/147.8f;
}

static __global__ void seed_fill_normal(float * x, const size_t n, const uint32_t salt) {
    for (size_t i = blockIdx.x*(size_t) blockDim.x + threadIdx.x; i < n; i += (size_t) gridDim.x*blockDim.x) {
        x[i] = seed_normal(i, salt);
    }
}

// K rows in the three layouts: payload and a scale for 32 values; the same as q8_0 blocks; payload of one scale per row.
static __global__ void seed_fill_k(int8_t * payload, half * scales, block_q8_0 * blocks, half * row_scale, const int nk) {
    const int row = blockIdx.x;
    const int b   = threadIdx.x; // block of the row
    if (row >= nk) {
        return;
    }
    const float s = 0.01f + 0.01f*(float) (seed_hash(row*8 + b, 7) & 255)/255.0f;
    scales[row*(SEED_D/32) + b] = __float2half(s);
    blocks[row*(SEED_D/32) + b].d = __float2half(s);
    for (int i = 0; i < 32; ++i) {
        const int8_t v = (int8_t) (seed_hash((size_t) row*SEED_D + b*32 + i, 8) % 255) - 127;
        payload[(size_t) row*SEED_D + b*32 + i] = v;
        blocks[row*(SEED_D/32) + b].qs[i] = v;
    }
    if (b == 0) {
        row_scale[row] = __float2half(s);
    }
}

// q4_0 rows: scale and nibbles
static __global__ void seed_fill_v(block_q4_0 * v, const size_t n_blocks) {
    for (size_t i = blockIdx.x*(size_t) blockDim.x + threadIdx.x; i < n_blocks; i += (size_t) gridDim.x*blockDim.x) {
        v[i].d = __float2half(0.1f + 0.1f*(float) (seed_hash(i, 9) & 255)/255.0f);
        for (int j = 0; j < 16; ++j) {
            v[i].qs[j] = (uint8_t) seed_hash(i*16 + j, 10);
        }
    }
}

// ---- timing ----

template <typename F> static double seed_time(const F & f) {
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    f(); // untimed
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    int    calls = 1;
    double us    = 0.0;
    std::vector<double> samples;
    while (samples.size() < SEED_SAMPLES) {
        CUDA_CHECK(cudaEventRecord(begin, 0));
        for (int i = 0; i < calls; ++i) {
            f();
        }
        CUDA_CHECK(cudaEventRecord(end, 0));
        CUDA_CHECK(cudaEventSynchronize(end));
        float ms = 0.0f;
        CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
        us = 1000.0*ms/calls;
        if (!SEED_QUICK && ms < 2.0f && calls < 1000) {
            calls *= 2; // short calls: enough of them for the clock
            samples.clear();
        } else {
            samples.push_back(us);
        }
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size()/2];
}

static void seed_print(const char * what, const char * name, const int nq, const int nk, const double us, const double nmse) {
    printf("%s\t%s\t%d\t%d\t%.3f\t%.3e\n", what, name, nq, nk, us, nmse);
    fflush(stdout);
}

// ---- logits: out[q][k] of one head ----

#if SEED_LAYOUTS

struct seed_kq {
    const int *        Q;         // [nq][D/4]
    const float *      Qs;        // [nq][D/32]
    const int *        K;         // payload [nk][D/4]
    const half *       Ks;        // [nk][D/32]
    const block_q8_0 * blocks;    // [nk][D/32], the same values
    const half *       row_scale; // [nk]
    float *            out;
    int                nq, nk;
};

static __device__ __forceinline__ int seed_dot8(const int4 k0, const int4 k1, const int4 q0, const int4 q1) {
    int acc = ggml_cuda_dp4a(k0.x, q0.x, 0);
    acc = ggml_cuda_dp4a(k0.y, q0.y, acc);
    acc = ggml_cuda_dp4a(k0.z, q0.z, acc);
    acc = ggml_cuda_dp4a(k0.w, q0.w, acc);
    acc = ggml_cuda_dp4a(k1.x, q1.x, acc);
    acc = ggml_cuda_dp4a(k1.y, q1.y, acc);
    acc = ggml_cuda_dp4a(k1.z, q1.z, acc);
    return ggml_cuda_dp4a(k1.w, q1.w, acc);
}

static __device__ __forceinline__ int seed_block(const int * K, const int * Q, const int b) {
    return seed_dot8(((const int4 *) K)[2*b], ((const int4 *) K)[2*b + 1], ((const int4 *) Q)[2*b], ((const int4 *) Q)[2*b + 1]);
}

// The seed's body: a thread per logit, blocks of 32 cells and 8 rows.
#define SEED_ROWS 8

// q8_0 blocks are 34 bytes, so their words are read as two halves.
static __global__ void seed_kq_q8_0(const seed_kq a) {
    const int k = blockIdx.x*WARP_SIZE + threadIdx.x;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        const block_q8_0 & B = a.blocks[(size_t) k*(SEED_D/32) + b];
        const uint16_t * qs = (const uint16_t *) B.qs;
        int acc = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            acc = ggml_cuda_dp4a((int) (qs[2*i] | (uint32_t) qs[2*i + 1] << 16), a.Q[q*(SEED_D/4) + b*8 + i], acc);
        }
        sum += (float) acc*__half2float(B.d)*a.Qs[q*(SEED_D/32) + b];
    }
    a.out[(size_t) q*a.nk + k] = sum;
}

static __global__ void seed_kq_packed16(const seed_kq a) {
    const int k = blockIdx.x*WARP_SIZE + threadIdx.x;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        const int acc = seed_block(a.K + (size_t) k*(SEED_D/4), a.Q + q*(SEED_D/4), b);
        sum += (float) acc*__half2float(a.Ks[k*(SEED_D/32) + b])*a.Qs[q*(SEED_D/32) + b];
    }
    a.out[(size_t) q*a.nk + k] = sum;
}

// one scale for the row, applied once
static __global__ void seed_kq_row_scale(const seed_kq a) {
    const int k = blockIdx.x*WARP_SIZE + threadIdx.x;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    int acc = 0;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        acc += seed_block(a.K + (size_t) k*(SEED_D/4), a.Q + q*(SEED_D/4), b);
    }
    a.out[(size_t) q*a.nk + k] = (float) acc*__half2float(a.row_scale[k])*a.Qs[q*(SEED_D/32)];
}

// the scales applied after every dot4 instead of every block
static __global__ void seed_kq_per_dot4(const seed_kq a) {
    const int k = blockIdx.x*WARP_SIZE + threadIdx.x;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        const float s = __half2float(a.Ks[k*(SEED_D/32) + b])*a.Qs[q*(SEED_D/32) + b];
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const int4 kw = ((const int4 *) (a.K + (size_t) k*(SEED_D/4)))[2*b + i/4];
            const int4 qw = ((const int4 *) (a.Q + q*(SEED_D/4)))[2*b + i/4];
            sum += (float) ggml_cuda_dp4a(kw.x, qw.x, 0)*s;
            sum += (float) ggml_cuda_dp4a(kw.y, qw.y, 0)*s;
            sum += (float) ggml_cuda_dp4a(kw.z, qw.z, 0)*s;
            sum += (float) ggml_cuda_dp4a(kw.w, qw.w, 0)*s;
        }
    }
    a.out[(size_t) q*a.nk + k] = sum;
}

// the 32 K rows of the block in shared memory first
static __global__ void seed_kq_k_lds(const seed_kq a) {
    __shared__ int4 rows[WARP_SIZE][SEED_D/16 + 1]; // a row apart by 272 bytes: no bank conflicts
    __shared__ half scales[WARP_SIZE][SEED_D/32];
    const int k0 = blockIdx.x*WARP_SIZE;
    for (int i = threadIdx.y*WARP_SIZE + threadIdx.x; i < WARP_SIZE*(SEED_D/16); i += WARP_SIZE*SEED_ROWS) {
        const int r = min(k0 + i/(SEED_D/16), a.nk - 1);
        rows[i/(SEED_D/16)][i%(SEED_D/16)] = ((const int4 *) (a.K + (size_t) r*(SEED_D/4)))[i%(SEED_D/16)];
    }
    for (int i = threadIdx.y*WARP_SIZE + threadIdx.x; i < WARP_SIZE*(SEED_D/32); i += WARP_SIZE*SEED_ROWS) {
        scales[i/(SEED_D/32)][i%(SEED_D/32)] = a.Ks[min(k0 + i/(SEED_D/32), a.nk - 1)*(SEED_D/32) + i%(SEED_D/32)];
    }
    __syncthreads();
    const int k = k0 + threadIdx.x;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        const int acc = seed_block((const int *) rows[threadIdx.x], a.Q + q*(SEED_D/4), b);
        sum += (float) acc*__half2float(scales[threadIdx.x][b])*a.Qs[q*(SEED_D/32) + b];
    }
    a.out[(size_t) q*a.nk + k] = sum;
}

// two lanes per logit, half of D each, one exchange
static __global__ void seed_kq_warp2(const seed_kq a) {
    const int j = threadIdx.x%2;
    const int k = blockIdx.x*(WARP_SIZE/2) + threadIdx.x/2;
    const int q = blockIdx.y*SEED_ROWS + threadIdx.y;
    const int kk = min(k, a.nk - 1), qq = min(q, a.nq - 1);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SEED_D/64; ++i) {
        const int b   = 2*i + j;
        const int acc = seed_block(a.K + (size_t) kk*(SEED_D/4), a.Q + qq*(SEED_D/4), b);
        sum += (float) acc*__half2float(a.Ks[kk*(SEED_D/32) + b])*a.Qs[qq*(SEED_D/32) + b];
    }
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1, WARP_SIZE);
    if (j == 0 && k < a.nk && q < a.nq) {
        a.out[(size_t) q*a.nk + k] = sum;
    }
}

// 2 rows against 2 cells per thread, in registers
static __global__ void seed_kq_2x2(const seed_kq a) {
    const int k0 = (blockIdx.x*WARP_SIZE + threadIdx.x)*2;
    const int q0 = (blockIdx.y*SEED_ROWS + threadIdx.y)*2;
    float sum[2][2] = {};
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        int4 k[2][2], q[2][2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                k[i][h] = ((const int4 *) (a.K + (size_t) min(k0 + i, a.nk - 1)*(SEED_D/4)))[2*b + h];
                q[i][h] = ((const int4 *) (a.Q + min(q0 + i, a.nq - 1)*(SEED_D/4)))[2*b + h];
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float s = __half2float(a.Ks[min(k0 + j, a.nk - 1)*(SEED_D/32) + b])*a.Qs[min(q0 + i, a.nq - 1)*(SEED_D/32) + b];
                sum[i][j] += (float) seed_dot8(k[j][0], k[j][1], q[i][0], q[i][1])*s;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            if (q0 + i < a.nq && k0 + j < a.nk) {
                a.out[(size_t) (q0 + i)*a.nk + k0 + j] = sum[i][j];
            }
        }
    }
}

// a 16×16 tile of logits, both sides in shared memory
static __global__ void seed_kq_lds16(const seed_kq a) {
    __shared__ int4 K[16][SEED_D/16 + 1];
    __shared__ int4 Q[16][SEED_D/16 + 1];
    const int k0  = blockIdx.x*16, q0 = blockIdx.y*16;
    const int tid = threadIdx.y*16 + threadIdx.x;
    for (int i = tid; i < 16*(SEED_D/16); i += 256) {
        K[i/(SEED_D/16)][i%(SEED_D/16)] = ((const int4 *) (a.K + (size_t) min(k0 + i/(SEED_D/16), a.nk - 1)*(SEED_D/4)))[i%(SEED_D/16)];
        Q[i/(SEED_D/16)][i%(SEED_D/16)] = ((const int4 *) (a.Q + min(q0 + i/(SEED_D/16), a.nq - 1)*(SEED_D/4)))[i%(SEED_D/16)];
    }
    __syncthreads();
    const int k = k0 + threadIdx.x, q = q0 + threadIdx.y;
    if (k >= a.nk || q >= a.nq) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (int b = 0; b < SEED_D/32; ++b) {
        const int acc = seed_dot8(K[threadIdx.x][2*b], K[threadIdx.x][2*b + 1], Q[threadIdx.y][2*b], Q[threadIdx.y][2*b + 1]);
        sum += (float) acc*__half2float(a.Ks[k*(SEED_D/32) + b])*a.Qs[q*(SEED_D/32) + b];
    }
    a.out[(size_t) q*a.nk + k] = sum;
}

// NMSE of every 37th logit against float64
static double seed_check_kq(const seed_kq & a, const bool row_scale) {
    const auto Q   = to_host((const int8_t *) a.Q, (size_t) a.nq*SEED_D);
    const auto Qs  = to_host(a.Qs, (size_t) a.nq*(SEED_D/32));
    const auto K   = to_host((const int8_t *) a.K, (size_t) a.nk*SEED_D);
    const auto Ks  = to_host(a.Ks, (size_t) a.nk*(SEED_D/32));
    const auto one = to_host(a.row_scale, a.nk);
    const auto out = to_host(a.out, (size_t) a.nq*a.nk);
    double err = 0.0, sum = 0.0;
    for (size_t i = 0; i < out.size(); i += 37) {
        const size_t q = i/a.nk, k = i%a.nk;
        double want = 0.0;
        for (int b = 0; b < SEED_D/32; ++b) {
            int acc = 0;
            for (int d = 32*b; d < 32*b + 32; ++d) {
                acc += (int) K[k*SEED_D + d]*(int) Q[q*SEED_D + d];
            }
            want += (double) acc*(double) __half2float(row_scale ? one[k] : Ks[k*(SEED_D/32) + b])*(double) Qs[q*(SEED_D/32) + (row_scale ? 0 : b)];
        }
        err += (want - out[i])*(want - out[i]);
        sum += want*want;
    }
    return sum > 0.0 ? err/sum : 1.0;
}

static bool seed_layouts() {
    constexpr int max_nq = SEED_QUICK ? 40 : 1024, max_nk = SEED_QUICK ? 100 : 4096;
    float * x = device_alloc<float>((size_t) max_nq*SEED_D);
    seed_fill_normal<<<SEED_FILL, 256>>>(x, (size_t) max_nq*SEED_D, 1);

    seed_kq a = {};
    int8_t *     K      = device_alloc<int8_t>((size_t) max_nk*SEED_D);
    half *       Ks     = device_alloc<half>((size_t) max_nk*(SEED_D/32));
    block_q8_0 * blocks = device_alloc<block_q8_0>((size_t) max_nk*(SEED_D/32));
    half *       one    = device_alloc<half>(max_nk);
    int *        Q      = device_alloc<int>((size_t) max_nq*(SEED_D/4));
    float *      Qs     = device_alloc<float>((size_t) max_nq*(SEED_D/32));
    seed_fill_k<<<max_nk, SEED_D/32>>>(K, Ks, blocks, one, max_nk);
    const packed16_q_view view = {(const char *) x, SEED_D*4, (int64_t) SEED_D*4*max_nq, 0, 1.0f};
    packed16_quantize_q<SEED_D><<<max_nq/4, dim3(WARP_SIZE, 4)>>>(view, Q, Qs, max_nq, max_nq, 1, 1);
    CUDA_CHECK(cudaGetLastError());
    a.Q = Q; a.Qs = Qs; a.K = (const int *) K; a.Ks = Ks; a.blocks = blocks; a.row_scale = one;
    a.out = device_alloc<float>((size_t) max_nq*max_nk);

    const struct {
        const char * name;
        void (*kernel)(seed_kq);
        int  cells, rows; // of a block
        int  threads;     // along x
        bool row_scale;
    } cases[] = {
        {"q8_0 block",               seed_kq_q8_0,      WARP_SIZE,   SEED_ROWS,   WARP_SIZE, false},
        {"packed16",                 seed_kq_packed16,  WARP_SIZE,   SEED_ROWS,   WARP_SIZE, false},
        {"packed16, one row scale",  seed_kq_row_scale, WARP_SIZE,   SEED_ROWS,   WARP_SIZE, true},
        {"scales per dot4",          seed_kq_per_dot4,  WARP_SIZE,   SEED_ROWS,   WARP_SIZE, false},
        {"K in LDS",                 seed_kq_k_lds,     WARP_SIZE,   SEED_ROWS,   WARP_SIZE, false},
        {"cooperative warp2",        seed_kq_warp2,     WARP_SIZE/2, SEED_ROWS,   WARP_SIZE, false},
        {"register 2x2",             seed_kq_2x2,       WARP_SIZE*2, SEED_ROWS*2, WARP_SIZE, false},
        {"LDS tile 16x16",           seed_kq_lds16,     16,          16,          16,        false},
    };
    bool good = true;
#if SEED_QUICK
    const std::pair<int, int> shapes[] = {{max_nq, max_nk}, {7, 33}}; // whole tiles and not
#else
    const std::pair<int, int> shapes[] = {{256, 1024}, {512, 2048}, {1024, 4096}};
#endif // SEED_QUICK
    for (const auto & shape : shapes) {
        a.nq = shape.first;
        a.nk = shape.second;
        for (const auto & c : cases) {
            const dim3 grid((a.nk + c.cells - 1)/c.cells, (a.nq + c.rows - 1)/c.rows);
            const dim3 block(c.threads, c.threads == 16 ? 16 : SEED_ROWS);
            CUDA_CHECK(cudaMemset(a.out, 0xFF, (size_t) a.nq*a.nk*4));
            c.kernel<<<grid, block>>>(a);
            CUDA_CHECK(cudaGetLastError());
            CUDA_CHECK(cudaDeviceSynchronize());
            const double nmse = seed_check_kq(a, c.row_scale);
            good = good && nmse < 1e-10;
            seed_print("kq", c.name, a.nq, a.nk, seed_time([&] { c.kernel<<<grid, block>>>(a); }), nmse);
        }
    }
    return good;
}

#endif // SEED_LAYOUTS

// ---- the dot4 prefill: tiles, staging, mask classes ----

// 4 KV heads, GQA 6, causal: the last row sees every cell
static bool seed_prefill(const int nq, const int nk, const bool classes_too) {
    constexpr int D = SEED_D, n_kv = 4, gqa = 6, n_head = n_kv*gqa, group = PACKED16_GQA_GROUP;
    using V_t = packed16_v_q4_0;
    constexpr int v_row = D/32*(int) sizeof(block_q4_0);

    packed16_args args = {};
    args.nk = nk; args.nq = nq; args.n_head = n_head; args.n_head_kv = n_kv; args.gqa = gqa; args.n_mask3 = 1;
    args.nbk1 = n_kv*D;      args.nbk2 = D;
    args.nbs1 = n_kv*(D/16); args.nbs2 = D/16;
    args.nbv1 = n_kv*v_row;  args.nbv2 = v_row;
    args.nbm1 = nk*2;

    float * x = device_alloc<float>((size_t) nq*n_head*D);
    seed_fill_normal<<<SEED_FILL, 256>>>(x, (size_t) nq*n_head*D, 2);
    int8_t *     K      = device_alloc<int8_t>((size_t) nk*n_kv*D);
    half *       Ks     = device_alloc<half>((size_t) nk*n_kv*(D/32));
    block_q8_0 * blocks = device_alloc<block_q8_0>((size_t) nk*n_kv*(D/32));
    half *       one    = device_alloc<half>((size_t) nk*n_kv);
    block_q4_0 * V      = device_alloc<block_q4_0>((size_t) nk*n_kv*(D/32));
    seed_fill_k<<<nk*n_kv, D/32>>>(K, Ks, blocks, one, nk*n_kv);
    seed_fill_v<<<SEED_FILL, 256>>>(V, (size_t) nk*n_kv*(D/32));

    std::vector<uint16_t> mask((size_t) nq*nk);
    for (int q = 0; q < nq; ++q) {
        for (int k = 0; k < nk; ++k) {
            mask[(size_t) q*nk + k] = k <= nk - nq + q ? 0 : PACKED16_MASK_DEAD;
        }
    }
    uint16_t * M = device_alloc<uint16_t>(mask.size());
    CUDA_CHECK(cudaMemcpy(M, mask.data(), mask.size()*2, cudaMemcpyHostToDevice));

    const dim3 grid((nq + PACKED16_BM - 1)/PACKED16_BM, n_head/group, 1);
    int *     Q       = device_alloc<int>((size_t) (nq*n_head + PACKED16_BM)*(D/4));
    float *   Qs      = device_alloc<float>((size_t) (nq*n_head + PACKED16_BM)*(D/32));
    uint8_t * classes = device_alloc<uint8_t>((size_t) packed16_class_stride(nk, PACKED16_BN)*grid.x);
    float *   dst     = device_alloc<float>((size_t) nq*n_head*D);

    const float scale_log2 = PACKED16_LOG2E/sqrtf((float) D);
    const packed16_q_view view = {(const char *) x, D*4, (int64_t) D*4*nq, 0, scale_log2};
    const auto prepare = [&](const int n_rows, const packed16_mask_tiles & tiles) {
        packed16_prepare<D><<<packed16_prepare_blocks(n_rows, tiles, args), PACKED16_PREPARE_WARPS*WARP_SIZE>>>(
            view, Q, Qs, n_rows, nq, 1, tiles, args);
    };
    const auto quantize = [&] {
        prepare(nq*n_head, {});
    };
    const auto classify = [&](const int assume_causal) {
        prepare(0, {(const char *) M, classes, packed16_class_stride(nk, PACKED16_BN), (int) grid.x, PACKED16_BM, 1, PACKED16_BN, assume_causal});
    };
    const auto attend = [&](const uint8_t * by) {
        packed16_prefill<D, V_t, group><<<grid, dim3(WARP_SIZE, PACKED16_PREFILL_WARPS)>>>(
            Q, Qs, (const char *) K, (const char *) Ks, (const char *) V, (const char *) M, by, nullptr, dst, args);
    };
    quantize();

    // NMSE of some rows of every head against float64 from the packed values
    const auto check = [&] {
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaDeviceSynchronize());
        const auto hQ  = to_host((const int8_t *) Q, (size_t) nq*n_head*D);
        const auto hQs = to_host(Qs, (size_t) nq*n_head*(D/32));
        const auto hK  = to_host(K, (size_t) nk*n_kv*D);
        const auto hKs = to_host(Ks, (size_t) nk*n_kv*(D/32));
        const auto hV  = to_host(V, (size_t) nk*n_kv*(D/32));
        const auto out = to_host(dst, (size_t) nq*n_head*D);
        double err = 0.0, sum = 0.0;
        for (int head = 0; head < n_head; ++head) {
            const int q = (head*67 + 5)%nq, kv = head/gqa;
            const size_t col = (size_t) head*nq + q;
            std::vector<double> p(nk, 0.0), want(D, 0.0);
            double top = -1e300, total = 0.0;
            const int seen = nk - nq + q + 1;
            for (int k = 0; k < seen; ++k) {
                double s = 0.0;
                for (int b = 0; b < D/32; ++b) {
                    int acc = 0;
                    for (int d = 32*b; d < 32*b + 32; ++d) {
                        acc += (int) hK[((size_t) k*n_kv + kv)*D + d]*(int) hQ[col*D + d];
                    }
                    s += (double) acc*(double) __half2float(hKs[((size_t) k*n_kv + kv)*(D/32) + b])*(double) hQs[col*(D/32) + b];
                }
                p[k] = s;
                top  = std::max(top, s);
            }
            for (int k = 0; k < seen; ++k) {
                p[k] = std::exp2(p[k] - top);
                total += p[k];
                for (int d = 0; d < D; ++d) {
                    const block_q4_0 & v = hV[((size_t) k*n_kv + kv)*(D/32) + d/32];
                    const int nibble = d%32 < 16 ? v.qs[d%16] & 15 : v.qs[d%16] >> 4;
                    want[d] += p[k]*(double) __half2float(v.d)*(double) (nibble - 8);
                }
            }
            for (int d = 0; d < D; ++d) {
                const double y = want[d]/total, z = out[((size_t) q*n_head + head)*D + d];
                err += (y - z)*(y - z);
                sum += y*y;
            }
        }
        return sum > 0.0 ? err/sum : 1.0;
    };

    bool good = true;
    const auto measure = [&](const char * what, const char * name, const int assume_causal, const bool by_class) {
        CUDA_CHECK(cudaMemset(dst, 0xFF, (size_t) nq*n_head*D*4));
        const auto call = [&] {
            if (by_class) {
                classify(assume_causal);
            }
            attend(by_class ? classes : nullptr);
        };
        call();
        const double nmse = check();
        good = good && nmse < 1e-6;
        seed_print(what, name, nq, nk, seed_time(call), nmse);
    };
    char tile[64];
    snprintf(tile, sizeof(tile), "bm %d, bn %d, %s, %d head%s", PACKED16_BM, PACKED16_BN, PACKED16_K_STAGING_LDS ? "K in LDS" : "K from memory", group, group > 1 ? "s" : "");
    measure("tile", tile, 0, true);
    if (classes_too) {
        measure("mask", "tiles by class", 0, true);
        measure("mask", "every tile reads the mask", 0, false);
        measure("mask", "assumed causal", 1, true);
        seed_print("stage", "Q quantization", nq, nk, seed_time(quantize), 0.0);
        seed_print("stage", "mask classes", nq, nk, seed_time([&] { classify(0); }), 0.0);
        seed_print("stage", "blockFA body", nq, nk, seed_time([&] { attend(classes); }), 0.0);
    }
    for (void * p : {(void *) x, (void *) K, (void *) Ks, (void *) blocks, (void *) one, (void *) V, (void *) M, (void *) Q, (void *) Qs, (void *) classes, (void *) dst}) {
        CUDA_CHECK(cudaFree(p));
    }
    return good;
}

int main() {
    cudaDeviceProp prop;
    CUDA_CHECK(cudaGetDeviceProperties(&prop, 0));
    printf("device\t%s\n", prop.name);
    bool good = true;
#if SEED_LAYOUTS
    good = seed_layouts() && good;
#endif // SEED_LAYOUTS
#if SEED_QUICK
    good = seed_prefill(9, 100, SEED_LAYOUTS) && good;
#else
    good = seed_prefill(512, 3328, false) && good;
    good = seed_prefill(2048, 2048, SEED_LAYOUTS) && good;
#endif // SEED_QUICK
    printf("done\n");
    return good ? 0 : 1;
}
