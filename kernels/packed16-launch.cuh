#pragma once

// Between the routes and the kernels: what a launch takes, and how the decode side is cut into blocks.

#include "packed16-layout.cuh"
#include "packed16-prefill.cuh"
#include "packed16-prefill-mma.cuh"

// Decode blocks per multiprocessor from which blocks take whole super-chunks, and several chunks: measured, see
// docs/performance.md.
#define PACKED16_DECODE_FILL_SUPER  2
#define PACKED16_DECODE_FILL_CHUNKS 8

// 1 where decode has a kernel for matrix tiles beside the one for vector units; the device says which runs.
#ifndef PACKED16_DECODE_MATRIX
#ifdef GGML_USE_HIP
#define PACKED16_DECODE_MATRIX 0
#else
#define PACKED16_DECODE_MATRIX 1
#endif // GGML_USE_HIP
#endif // PACKED16_DECODE_MATRIX

// Everything a launch needs; device pointers.
struct packed16_call {
    packed16_args args;
    int           n_seq;
    bool          prefill;
    bool          mma;           // prefill on matrix instructions
    int           nsm;           // multiprocessors, and the shared memory one block may have: for the cut of mma
    size_t        smem_limit;
    bool          matrix_decode; // decode and verify on matrix tiles
    int           columns;       // of a matrix-tile decode block; 0: packed16_decode_columns
    bool          f16_k;         // K is f16 and packed for this call
    bool          assume_causal;
    int           scale_mode;    // of that packing
    float         scale_log2;

    const char *  q;
    int64_t       nbq1, nbq2, nbq3;
    const char *  k;
    const char *  k_scales;
    const char *  v;
    const char *  mask;
    const float * sinks;
    float *       dst;

    int64_t       nbf1, nbf2, nbf3; // the f16 K

    // scratch
    int *         q_payload;
    float *       q_scales;
    char *        packed_payload;
    char *        packed_scales;
    float *       parts;
    float2 *      meta;
    int2 *        ends;
    uint8_t *     classes;
    half *        unpacked_k; // not null: K and V are unpacked, and nothing else is done here
    half *        unpacked_v;
    float *       unpacked_sinks;
};

// Launches a kernel that may be put in place while the one before it still runs, where that exists.
template <typename... Params, typename... Args>
static void packed16_start(
        void (*kernel)(Params...), const dim3 grid, const dim3 block, const size_t shared, cudaStream_t stream, const Args &... args) {
#if defined(GGML_CUDA_USE_PDL)
    ggml_cuda_kernel_launch(kernel, ggml_cuda_kernel_launch_params(grid, block, shared, stream), args...);
#else
    kernel<<<grid, block, shared, stream>>>(args...);
#endif // defined(GGML_CUDA_USE_PDL)
    CUDA_CHECK(cudaGetLastError());
}

// Columns of a decode block that this many columns go to: the fewest blocks' worth of work, where a block of the vector kernel
// costs about three columns of K and V loads before its first column, and columns on matrix tiles cost little beside them.
static inline int packed16_decode_columns(const int n_cols, const int D, const bool matrix) {
    const int counts[2][5] = {{1, 2, 4, 6, 8}, {8, 16, 24, D < 256 ? 32 : 24, 24}}; // results of 32 columns fit in the registers below 256
    int best = counts[matrix][0];
    for (const int ncols : counts[matrix]) {
        const auto cost = [=](const int n) { return (n_cols + n - 1)/n*(n + (matrix ? 32 : 3)); };
        if (matrix ? cost(ncols) < cost(best) : cost(ncols) <= cost(best)) {
            best = ncols;
        }
    }
    return best;
}

// Blocks of the matrix-tile kernel that a multiprocessor runs at once where shared memory has room: 512 threads' worth of registers.
static constexpr int packed16_decode_resident(const int D) { return D == 64 || PACKED16_CHUNK < 128 ? 4 : 2; }

// Blocks along the cells.
static inline int packed16_decode_blocks(const packed16_args & a) {
    const int n_chunks = (a.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    return (n_chunks + a.chunks_per_cta - 1)/a.chunks_per_cta;
}

// Shared memory that no block of the matrix-tile decode exceeds, for V rows of v_row bytes.
static constexpr size_t packed16_decode_mma_shared(const int D, const int v_row, const int columns) {
    return PACKED16_CHUNK*(D + 16 + v_row + 16) + columns*(D + 16 + D/8 + 2*(PACKED16_CHUNK + 8)) + 2*PACKED16_MAX_DECODE_NQ*PACKED16_CHUNK*2 + 2048;
}

// One definition per V type, in packed16-v-*.cu, for every head size of the recipe.
template <typename V_t>
void packed16_launch(const packed16_call & call, int head_size, cudaStream_t stream);

extern template void packed16_launch<packed16_v_f16>(const packed16_call &, int, cudaStream_t);
extern template void packed16_launch<packed16_v_q8_0>(const packed16_call &, int, cudaStream_t);
extern template void packed16_launch<packed16_v_q4_0>(const packed16_call &, int, cudaStream_t);
