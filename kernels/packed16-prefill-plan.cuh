#pragma once

// How the matrix-tile prefill is cut into tiles and shares. Host and device; packed16-prefill-share.cuh has the picture.

#include "packed16-mask.cuh"
#include "packed16-mma.cuh"

#include <algorithm>
#include <climits>

// NVIDIA copies past the registers while it computes: two tiles of everything, and Q. AMD has neither the copies nor the
// room: one tile, several blocks beside each other, and Q from memory through the caches.
#define PACKED16_MMA_ASYNC (PACKED16_MMA_LAYOUT == 1)

// Whether blocks take equal shares of a line of all work, or one piece of one item each.
#define PACKED16_MMA_LINE PACKED16_MMA_ASYNC

// What a block does for an item beside its tiles, in tiles: Q and the first tile are loaded, the result is written.
#define PACKED16_MMA_FIRST 2

// The most rows of items that are laid out, and the fewest cells of a share.
#ifndef PACKED16_MMA_MAX_ROWS
#define PACKED16_MMA_MAX_ROWS 256
#endif // PACKED16_MMA_MAX_ROWS
#define PACKED16_MMA_LEAST    128

// The most columns of a block.
#define PACKED16_MMA_MAX_COLS 256

// Shapes of a block: 4 or 8 warps, or 8 with tiles of 32 cells, for GPUs whose shared memory does not take 64 at D=128.
#define PACKED16_SHAPE_LOW 32
static constexpr __host__ __device__ int packed16_shape_warps(const int shape) { return shape == PACKED16_SHAPE_LOW ? 8 : shape; }

// The tile of a block.
template <int D, int shape>
struct packed16_prefill_tile {
    static constexpr int warps     = packed16_shape_warps(shape);
    static constexpr int threads   = warps*WARP_SIZE;
    // 128 accumulators a lane at D=256. NVIDIA takes more columns below that, to read shared memory less often.
    static constexpr int warp_cols = D < 256 && PACKED16_MMA_ASYNC ? 32 : 16;
    static constexpr int nt        = warp_cols/PACKED16_MMA_N; // N tiles of a warp
    static constexpr int cols      = warps*warp_cols;          // (query, head) pairs of a block
    static constexpr int bn        = PACKED16_MMA_ASYNC && shape == 8 ? 64 : 32; // cells
    // Cells whose logits a warp has at once. At D=128 those of 64 would spill.
    static constexpr int step      = D == 128 ? 32 : bn;
    static constexpr int mt        = step/PACKED16_MMA_M;      // M tiles of them
    static constexpr int bufs      = PACKED16_MMA_ASYNC ? 2 : 1;
    // The most blocks of a multiprocessor whose results there is scratch for; fewer may fit.
    static constexpr int resident  = (PACKED16_MMA_ASYNC ? 1 : D == 256 ? 2 : 4)*(8/warps);
};

// Rows of items in a line: tiles of columns of every sequence. 0: there is no line.
static inline int packed16_prefill_rows(const packed16_args & a, const int n_seq, const int cols) {
    const int64_t n       = (int64_t) (a.nq*a.gqa + cols - 1)/cols*n_seq;
    const int64_t n_tiles = (a.nk + 31)/32 + PACKED16_MMA_FIRST;
    return PACKED16_MMA_LINE && n <= PACKED16_MMA_MAX_ROWS && n*a.n_head_kv*n_tiles <= INT_MAX ? (int) n : 0;
}

// Shares of a line, where `slots` blocks run at once: no more of them than that, one per item if they all fit, and beyond that none
// below PACKED16_MMA_LEAST cells if no tile were dead.
static inline int packed16_prefill_shares(const packed16_args & a, const int n_rows, const int bn, const int slots) {
    const int64_t items = (int64_t) n_rows*a.n_head_kv;
    const int64_t most  = items*((a.nk + bn - 1)/bn + PACKED16_MMA_FIRST)/(PACKED16_MMA_LEAST/bn + PACKED16_MMA_FIRST);
    return (int) std::min(std::max(most, items), (int64_t) slots);
}

// The most pieces of an item without a line: of at least PACKED16_MMA_LEAST cells, and at most three times the results of the blocks
// that run at once.
static inline int packed16_prefill_most_units(const packed16_args & a, const int n_seq, const int cols, const int slots) {
    const int64_t items = (int64_t) (a.nq*a.gqa + cols - 1)/cols*a.n_head_kv*n_seq;
    return PACKED16_MMA_LINE ? 1 : (int) std::max(std::min((int64_t) a.nk/PACKED16_MMA_LEAST, 3*slots/items), (int64_t) 1);
}

// The number of pieces of an item that takes the least time, in tiles of one block: rounds of blocks over the device, what a block
// does before its first tile, and for the merge a launch and the partial results, which a device moves at about
// 128 KiB per multiprocessor and tile.
static inline int packed16_prefill_units(
        const packed16_args & a, const int n_seq, const int D, const int cols, const int bn, const int nsm, const int slots) {
    const int64_t items = (int64_t) (a.nq*a.gqa + cols - 1)/cols*a.n_head_kv*n_seq;
    const int64_t rows  = (int64_t) n_seq*a.n_head*a.nq;

    int    best      = 1;
    double best_cost = 0.0;
    for (int units = 1; units <= packed16_prefill_most_units(a, n_seq, cols, slots); ++units) {
        const double rounds = (double) ((items*units + slots - 1)/slots);
        const double merge  = units == 1 ? 0.0 : 1.0 + (double) (2*rows*units*D)*sizeof(float)/(nsm*131072.0);
        const double cost   = rounds*((double) a.nk/bn/units + PACKED16_MMA_FIRST) + merge;
        if (units == 1 || cost < best_cost) {
            best      = units;
            best_cost = cost;
        }
    }
    return best;
}

// The scratch of a call: rows of D floats with their float2, and int2 for the items.
struct packed16_prefill_scratch {
    size_t parts, items, classes;
};

// What no call with fewer rows or cells exceeds: it may have a line where this one is too long for that, and without a line fewer items, so
// more pieces of each.
template <int D, int shape>
static inline void packed16_prefill_scratch_add(packed16_prefill_scratch & s, const packed16_args & a, const int n_seq, const int nsm) {
    using tile = packed16_prefill_tile<D, shape>;
    const int64_t n_x   = (a.nq*a.gqa + tile::cols - 1)/tile::cols;
    const int     slots = nsm*tile::resident;
    int64_t parts, items = 0;
    if (PACKED16_MMA_LINE) {
        const int n_rows = (int) std::min(n_x*n_seq, (int64_t) PACKED16_MMA_MAX_ROWS);
        parts = (int64_t) 2*tile::cols*packed16_prefill_shares(a, n_rows, tile::bn, slots);
        items = (int64_t) n_rows*a.n_head_kv;
    } else {
        const int units = a.nk/PACKED16_MMA_LEAST; // of an item, and of all together no more than packed16_prefill_most_units has results for
        parts = units > 1 ? std::min((int64_t) n_seq*a.n_head*a.nq*units, (int64_t) 3*slots*tile::cols) : 0;
    }
    s.parts   = std::max(s.parts, (size_t) parts);
    s.items   = std::max(s.items, (size_t) items);
    s.classes = std::max(s.classes, (size_t) packed16_class_stride(a.nk, tile::bn)*n_x*a.n_mask3);
}

// What blocks of every shape need: which of them run depends on the device's shared memory.
static inline packed16_prefill_scratch packed16_prefill_scratch_of(const packed16_args & a, const int n_seq, const int D, const int nsm) {
    packed16_prefill_scratch s = {};
    switch (D) {
#define X(d) case d: packed16_prefill_scratch_add<d, 8>(s, a, n_seq, nsm); packed16_prefill_scratch_add<d, 4>(s, a, n_seq, nsm); \
            packed16_prefill_scratch_add<d, PACKED16_SHAPE_LOW>(s, a, n_seq, nsm); break;
        PACKED16_HEAD_SIZES(X)
#undef X
        default: GGML_ABORT("packed16: no prefill for head size %d", D);
    }
    return s;
}
