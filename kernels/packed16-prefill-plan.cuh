#pragma once

// How the matrix-tile prefill is cut along the cells. Host code.

#include "packed16-layout.cuh"

// The matrix-tile prefill takes shares of the cells when its columns alone do not fill the device. Every share leaves a
// result of its own: at most this many rows of D floats in all, and at least PACKED16_MMA_UNIT cells to each.
#define PACKED16_MMA_UNIT      128
#define PACKED16_MMA_MAX_UNITS 64

// The most columns of a block.
#define PACKED16_MMA_MAX_COLS  256

// The most bytes of mask tile classes: of the smallest tiles, 64 columns x 32 cells.
static inline int64_t packed16_prefill_most_classes(const packed16_args & a) {
    return (int64_t) ((a.nk + 31)/32)*((a.nq*a.gqa + 63)/64)*a.n_mask3;
}

static inline int64_t packed16_prefill_most_parts(const packed16_args & a, const int n_seq, const int D, const int nsm) {
    const int64_t n_rows = (int64_t) n_seq*a.n_head*a.nq;
    const int64_t units  = std::min(a.nk/PACKED16_MMA_UNIT, PACKED16_MMA_MAX_UNITS);
    return std::min(n_rows*units, (int64_t) 3*nsm*8*(D == 256 ? 16 : 32));
}

// The number of shares that takes the least time, in tiles of one block: rounds of blocks over the device, what a block
// does before its first tile, and for the merge a launch and the partial results, which a device moves at about
// 128 KiB per multiprocessor and tile.
static inline int packed16_prefill_units(
        const packed16_args & a, const int n_seq, const int D, const int nsm, const int cols, const int bn, const int blocks_per_sm) {
    const int64_t n_rows = (int64_t) n_seq*a.n_head*a.nq;
    const int64_t blocks = (int64_t) (a.nq*a.gqa + cols - 1)/cols*a.n_head_kv*n_seq;
    const int64_t slots  = (int64_t) nsm*blocks_per_sm;
    const int64_t most   = packed16_prefill_most_parts(a, n_seq, D, nsm)/n_rows;

    int    best      = 1;
    double best_cost = 0.0;
    for (int units = 1; units <= std::max(most, (int64_t) 1); ++units) {
        const double rounds = (double) ((blocks*units + slots - 1)/slots);
        const double merge  = units == 1 ? 0.0 : 1.0 + (double) (2*n_rows*units*D)*sizeof(float)/(nsm*131072.0);
        const double cost   = rounds*((double) a.nk/bn/units + 1.0) + merge;
        if (units == 1 || cost < best_cost) {
            best      = units;
            best_cost = cost;
        }
    }
    return best;
}
