#pragma once

// Between the routes and the kernels: how a call is cut into blocks, what scratch it needs, and the launches.

#include "packed16-decode.cuh"
#include "packed16-layout.cuh"
#include "packed16-prefill.cuh"
#include "packed16-prefill-mma.cuh"

// Decode blocks per multiprocessor from which blocks take whole super-chunks, and several chunks: measured, see
// docs/performance.md.
#define PACKED16_DECODE_FILL_SUPER  2
#define PACKED16_DECODE_FILL_CHUNKS 8

// Everything a launch needs; device pointers.
struct packed16_call {
    packed16_args args;
    int           n_seq;
    bool          prefill;
    bool          mma;           // prefill on matrix instructions
    int           nsm;           // multiprocessors, and the shared memory one block may have: for the cut of mma
    size_t        smem_limit;
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
    uint8_t *     classes;
};

// Columns of a decode block that this many columns go to: the fewest blocks' worth of work, where a block costs
// about three columns of K and V loads before its first column.
static inline int packed16_decode_columns(const int n_cols) {
    int best = 1;
    for (const int ncols : {1, 2, 4, 6, 8}) {
        const auto cost = [n_cols](const int n) { return (n_cols + n - 1)/n*(n + 3); };
        if (cost(ncols) <= cost(best)) {
            best = ncols;
        }
    }
    return best;
}

// One definition per V type, in packed16-v-*.cu, for every head size of the recipe.
template <typename V_t>
void packed16_launch(const packed16_call & call, int head_size, cudaStream_t stream);

extern template void packed16_launch<packed16_v_f16>(const packed16_call &, int, cudaStream_t);
extern template void packed16_launch<packed16_v_q8_0>(const packed16_call &, int, cudaStream_t);
extern template void packed16_launch<packed16_v_q4_0>(const packed16_call &, int, cudaStream_t);
