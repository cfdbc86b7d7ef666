#pragma once

// How the matrix-tile prefill is cut along the cells. Host code.

#include "packed16-layout.cuh"

// The matrix-tile prefill takes shares of the cells when its columns alone do not fill the device. Every share leaves a
// result of its own: at most this many rows of D floats in all, and at least PACKED16_MMA_UNIT cells to each.
#define PACKED16_MMA_UNIT      512
#define PACKED16_MMA_MAX_UNITS 64

static inline int64_t packed16_prefill_most_parts(const packed16_args & a, const int n_seq, const int D, const int nsm) {
    const int64_t n_rows = (int64_t) n_seq*a.n_head*a.nq;
    const int64_t units  = std::min(a.nk/PACKED16_MMA_UNIT, PACKED16_MMA_MAX_UNITS);
    return std::min(n_rows*units, (int64_t) 3*nsm*8*(D == 256 ? 16 : 32));
}

// The number of shares that wastes the least: of the last round of blocks, and a little for the merge of each.
static inline int packed16_prefill_units(
        const packed16_args & a, const int n_seq, const int D, const int nsm, const int cols, const int blocks_per_sm) {
    const int64_t n_rows = (int64_t) n_seq*a.n_head*a.nq;
    const int64_t blocks = (int64_t) (a.nq*a.gqa + cols - 1)/cols*a.n_head_kv*n_seq;
    const int64_t slots  = (int64_t) nsm*blocks_per_sm;
    const int64_t most   = packed16_prefill_most_parts(a, n_seq, D, nsm)/n_rows;

    int    best      = 1;
    double best_cost = (double) ((blocks + slots - 1)/slots);
    for (int units = 2; units <= most; ++units) {
        const double cost = (double) ((blocks*units + slots - 1)/slots)/units + 0.01*units;
        if (cost < best_cost) {
            best      = units;
            best_cost = cost;
        }
    }
    return best;
}
