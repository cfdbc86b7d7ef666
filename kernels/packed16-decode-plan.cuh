#pragma once

// How the decode side of a call is cut into blocks and partial results. Output bits do not depend on it.
// For packed16-fattn.cu, after packed16-routes.h.

#include "packed16-launch.cuh"

// What the cut of the decode side depends on beside the arguments.
struct packed16_decode_device {
    int    D;
    int    v_row;  // bytes
    int    nsm;
    size_t shared; // memory a block may have; a multiprocessor has 1 KiB more, and a block takes 1 KiB more than it asks for
    bool   matrix; // decode and verify run on matrix tiles: one answer for every number of query rows, as their bits must agree

    // Blocks of the matrix-tile kernel that run at once.
    int64_t slots(const int columns) const {
        const int64_t fit = (shared + 1024)/(packed16_decode_mma_shared(D, v_row, columns) + 1024);
        return std::min<int64_t>(std::max<int64_t>(fit, 1), packed16_decode_resident(D))*nsm;
    }
};

static packed16_decode_device packed16_decode_device_of(const int device, const packed16_shape & s) {
    const auto & info = ggml_cuda_info().devices[device];
    packed16_decode_device dev = {};
    dev.D      = s.d;
    dev.v_row  = s.v == PACKED16_V_F16 ? packed16_v_f16::row_bytes(s.d) :
                 s.v == PACKED16_V_Q8_0 ? packed16_v_q8_0::row_bytes(s.d) : packed16_v_q4_0::row_bytes(s.d);
    dev.nsm    = info.nsm;
    dev.shared = info.smpbo;
#if PACKED16_DECODE_MATRIX
    dev.matrix = GGML_CUDA_CC_IS_NVIDIA(info.cc) && ggml_cuda_highest_compiled_arch(info.cc) >= GGML_CUDA_CC_AMPERE &&
        packed16_decode_mma_shared(dev.D, dev.v_row, dev.D < 256 ? 32 : 24) <= info.smpbo;
#endif // PACKED16_DECODE_MATRIX
    return dev;
}

// How the decode side is cut. Output bits do not depend on it. Returns the columns of a block.
static int packed16_plan_decode(
        packed16_args & a, const int split, const bool asked, const int n_seq, const packed16_decode_device & dev) {
    constexpr int per_super = PACKED16_SUPER_CHUNK/PACKED16_CHUNK;

    const int n_chunks = (a.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    const int n_supers = (a.nk + PACKED16_SUPER_CHUNK - 1)/PACKED16_SUPER_CHUNK;
    const int n_cols   = a.nq*a.gqa;
    const auto rows_of = [&](const int ncols) { return (int64_t) a.n_head_kv*((n_cols + ncols - 1)/ncols)*n_seq; }; // blocks on one run of cells

    int ncols = packed16_decode_columns(n_cols, dev.D, dev.matrix);
    if (dev.matrix && split > 0 && !asked) { // fewer columns to a block while there is room for all blocks
        for (const int few : {16, 8}) {
            if (few < ncols && n_chunks*rows_of(few) <= dev.slots(few)) {
                ncols = few;
            }
        }
    }
    const int64_t rows = rows_of(ncols);

    if (split == 0) {
        a.chunks_per_cta = n_chunks;
        a.unit_chunks    = per_super;
    } else if (asked) {
        a.chunks_per_cta = split/PACKED16_CHUNK;
        a.unit_chunks    = a.chunks_per_cta % per_super == 0 ? per_super : 1;
    } else if (dev.matrix) { // the shortest runs of chunks whose blocks all run at once
        const int64_t slots = dev.slots(ncols);
        a.chunks_per_cta = 1;
        while (a.chunks_per_cta < per_super && packed16_decode_blocks(a)*rows > slots) {
            a.chunks_per_cta *= 2;
        }
        a.unit_chunks = a.chunks_per_cta == per_super ? per_super : 1;
        // Too many for chunks: as many super-chunks a block as let all blocks run at once if these fill nine places of ten, else one.
        if (a.unit_chunks == per_super && rows <= slots) {
            const int64_t run = (n_supers + slots/rows - 1)/(slots/rows);
            if ((n_supers + run - 1)/run*rows >= slots - slots/10) {
                a.chunks_per_cta = (int) run*per_super;
            }
        }
    } else if (n_supers*rows >= PACKED16_DECODE_FILL_SUPER*dev.nsm) {
        a.chunks_per_cta = per_super;
        a.unit_chunks    = per_super;
    } else { // too few super-chunks to fill the device
        a.chunks_per_cta = PACKED16_SPLIT_SIZE/PACKED16_CHUNK;
        while (a.chunks_per_cta > 1 && packed16_decode_blocks(a)*rows < PACKED16_DECODE_FILL_CHUNKS*dev.nsm) {
            a.chunks_per_cta /= 2;
        }
        a.unit_chunks = 1;
    }
    a.n_units = (n_chunks + a.unit_chunks - 1)/a.unit_chunks;
    return ncols;
}

// The most partial results per column that packed16_plan_decode makes for at most a.nk cells.
static int packed16_most_units(const packed16_args & a, const packed16_env & env, const int n_seq, const packed16_decode_device & dev) {
    constexpr int per_super = PACKED16_SUPER_CHUNK/PACKED16_CHUNK;

    const int n_chunks = (a.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    const int n_supers = (a.nk + PACKED16_SUPER_CHUNK - 1)/PACKED16_SUPER_CHUNK;
    if (!env.on(PACKED16_FLAG_DECODE_SPLITK)) {
        return n_supers;
    }
    if (env.set[PACKED16_FLAG_DECODE_SPLITK_SIZE]) {
        return n_chunks;
    }
    // units are chunks while there are too few super-chunks to fill the device, or few enough of their halves
    const int ncols = packed16_decode_columns(a.nq*a.gqa, dev.D, dev.matrix);
    const int rows  = a.n_head_kv*((a.nq*a.gqa + ncols - 1)/ncols)*n_seq;
    const int few   = dev.matrix ? packed16_decode_resident(dev.D)*dev.nsm/rows*(per_super/2) : (PACKED16_DECODE_FILL_SUPER*dev.nsm - 1)/rows*per_super;
    return std::max(n_supers, std::min(n_chunks, few));
}
