#pragma once

// Attention on packed16 K, on the CPU. Its tiles are ROWS query rows (the query heads of one KV head, times the rows of the
// batch) by CELLS cells:
//
//     KT[d][cell]   = payload * K scale        words transposed first, then unpacked
//     S [row][cell] = Q * KT                   Q quantised as on every other backend, in units of its own scale
//     P             = softmax numerators, O = O*rescale + P*V
//
// Cells are taken in chunks of CHUNK. Each chunk gives a partial (max, sum, O) of its own, and the partials are merged in
// cell order, whether one thread does a tile's whole row of chunks (prefill) or each chunk is an item of its own (nq <= 8,
// where there are too few tiles for the threads). So a row's bits depend neither on nq nor on the number of threads.
//
// A cell that no row of the tile may see is not read at all. One that only some rows may see contributes p = 0 to the
// others, and 0*V is 0 only while V is finite: a tile with a V that is not takes the slow way around.

#include "simd-gemm.h"
#include "vec.h"

#include "../packed16-quantize.h"

#include <algorithm>
#include <cmath>

namespace {

struct packed16_attention {
    static constexpr int ROWS  = 32;
    static constexpr int CELLS = 64;
    static constexpr int CHUNK = 512;

    static constexpr int64_t DECODE_MAX_NQ = 8;

    const ggml_tensor * dst;
    const ggml_tensor * q;
    const ggml_tensor * k;
    const ggml_tensor * v;
    const ggml_tensor * mask;
    const ggml_tensor * sinks;
    const ggml_tensor * k_scales;

    int64_t D;
    int64_t nq;
    int64_t nk;
    int64_t gqa;
    int64_t n_tile_rows; // query rows of one KV head: gqa*nq
    int64_t n_tiles;     // of all KV heads and sequences
    int64_t n_chunks;
    bool    decode;      // each chunk is an item, partials are merged afterwards
    float   scale;

    explicit packed16_attention(const ggml_tensor * op)
        : dst(op), q(op->src[0]), k(op->src[1]), v(op->src[2]), mask(op->src[3]), sinks(op->src[4]), k_scales(op->src[5]),
          D(q->ne[0]), nq(q->ne[1]), nk(k->ne[1]), gqa(q->ne[2]/k->ne[2]), n_tile_rows(gqa*nq),
          n_tiles(tiles_per_head()*k->ne[2]*k->ne[3]), n_chunks((nk + CHUNK - 1)/CHUNK),
          decode(nq <= DECODE_MAX_NQ && n_chunks > 1), scale(ggml_get_op_params_f32(op, 0)) {}

    int64_t tiles_per_head() const {
        return (n_tile_rows + ROWS - 1)/ROWS;
    }

    // in floats
    size_t partial_size() const {
        return ROWS*(D + 2);
    }
    size_t scratch_size() const {
        return GGML_PAD(2*partial_size() + ROWS*D + 2*ROWS*CELLS + 2*CELLS*D + D/4*CELLS, CACHE_LINE_SIZE_F32);
    }
    size_t work_size(int n_tasks) const {
        return sizeof(float)*(scratch_size()*n_tasks + (decode ? partial_size()*n_tiles*n_chunks : 0) + CACHE_LINE_SIZE_F32);
    }
};

// softmax state of the rows of a tile over some cells: O is relative to max, and so is sum
struct packed16_partial {
    float * max;
    float * sum;
    float * O; // [ROWS][D]

    explicit packed16_partial(float * p)
        : max(p), sum(p + packed16_attention::ROWS), O(p + 2*packed16_attention::ROWS) {}

    void clear(int n_rows, int64_t D) {
        std::fill(max, max + n_rows, -INFINITY);
        std::fill(sum, sum + n_rows, 0.0f);
        std::fill(O, O + n_rows*D, 0.0f);
    }
};

// exp(from - to) for to >= from, where both may be -infinity
float packed16_rescale(float from, float to) {
    return from == to ? 1.0f : expf(from - to);
}

void packed16_merge_row(packed16_partial & into, const packed16_partial & from, int row, int64_t D) {
    const float max = std::max(into.max[row], from.max[row]);
    const float a   = packed16_rescale(into.max[row], max);
    const float b   = packed16_rescale(from.max[row], max);

    into.max[row] = max;
    into.sum[row] = into.sum[row]*a + from.sum[row]*b;

    float       * O = into.O + row*D;
    const float * P = from.O + row*D;
    for (int64_t d = 0; d < D; d++) {
        O[d] = O[d]*a + P[d]*b;
    }
}

// One tile of query rows: where they lie, and the scratch of the thread that works on it.
struct packed16_tile {
    static constexpr int ROWS  = packed16_attention::ROWS;
    static constexpr int CELLS = packed16_attention::CELLS;

    const packed16_attention & a;

    int64_t i3;
    int64_t ikv;
    int64_t row0;
    int     n_rows;

    packed16_partial part;
    packed16_partial total;

    float   * Q;    // [ROWS][D]
    float   * S;    // [ROWS][CELLS]
    float   * bias; // [ROWS][CELLS]
    float   * KT;   // [D][CELLS]
    float   * V;    // [CELLS][D]
    int32_t * KW;   // [D/4][CELLS]

    bool live[CELLS]; // cells that a row of the tile may see

    packed16_tile(const packed16_attention & a, int64_t index, float * scratch)
        : a(a), part(scratch), total(scratch + a.partial_size()) {
        const int64_t head = index/a.tiles_per_head();

        i3     = head/a.k->ne[2];
        ikv    = head%a.k->ne[2];
        row0   = index%a.tiles_per_head()*ROWS;
        n_rows = (int) std::min<int64_t>(ROWS, a.n_tile_rows - row0);

        Q    = scratch + 2*a.partial_size();
        S    = Q + ROWS*a.D;
        bias = S + ROWS*CELLS;
        KT   = bias + ROWS*CELLS;
        V    = KT + a.D*CELLS;
        KW   = (int32_t *) (V + CELLS*a.D);
    }

    // the query heads of one row lie next to each other: they share the mask
    int64_t head(int row) const { return ikv*a.gqa + (row0 + row)%a.gqa; }
    int64_t iq  (int row) const { return (row0 + row)/a.gqa; }

    void load_queries() {
        for (int row = 0; row < n_rows; row++) {
            const float * src = (const float *) ((const char *) a.q->data + iq(row)*a.q->nb[1] + head(row)*a.q->nb[2] + i3*a.q->nb[3]);
            for (int64_t d = 0; d < a.D; d += PACKED16_BLOCK) {
                int8_t      q[PACKED16_BLOCK];
                const float s = packed16_quantize_query_block(src + d, q);
                for (int i = 0; i < PACKED16_BLOCK; i++) {
                    Q[row*a.D + d + i] = s*q[i];
                }
            }
        }
    }

    // false when no row may see any of the cells
    bool load_bias(int64_t cell0, int n_cells) {
        bool any = false;
        std::fill(live, live + CELLS, false);
        for (int row = 0; row < n_rows; row++) {
            float * dst = bias + row*CELLS;
            if (a.mask) {
                const char * src = (const char *) a.mask->data + iq(row)*a.mask->nb[1] + (head(row)%a.mask->ne[2])*a.mask->nb[2] + (i3%a.mask->ne[3])*a.mask->nb[3];
                ggml_cpu_fp16_to_fp32((const ggml_fp16_t *) src + cell0, dst, n_cells);
            } else {
                std::fill(dst, dst + n_cells, 0.0f);
            }
            std::fill(dst + n_cells, dst + CELLS, -INFINITY);
            for (int c = 0; c < CELLS; c++) {
                live[c] |= dst[c] != -INFINITY;
            }
        }
        for (int c = 0; c < CELLS; c++) {
            any |= live[c];
        }
        return any;
    }

    void load_keys(int64_t cell0) {
        const int64_t n_words  = a.D/4;
        const int64_t n_blocks = a.D/PACKED16_BLOCK;

        float scales[256/PACKED16_BLOCK][CELLS];

        for (int c = 0; c < CELLS; c++) {
            if (!live[c]) {
                for (int64_t w = 0; w < n_words; w++) {
                    KW[w*CELLS + c] = 0;
                }
                for (int64_t b = 0; b < n_blocks; b++) {
                    scales[b][c] = 0.0f;
                }
                continue;
            }
            const int32_t     * payload = (const int32_t     *) ((const char *) a.k->data        + (cell0 + c)*a.k->nb[1]        + ikv*a.k->nb[2]        + i3*a.k->nb[3]);
            const ggml_fp16_t * ps      = (const ggml_fp16_t *) ((const char *) a.k_scales->data + (cell0 + c)*a.k_scales->nb[1] + ikv*a.k_scales->nb[2] + i3*a.k_scales->nb[3]);
            for (int64_t w = 0; w < n_words; w++) {
                KW[w*CELLS + c] = payload[w];
            }
            for (int64_t b = 0; b < n_blocks; b++) {
                scales[b][c] = GGML_CPU_FP16_TO_FP32(ps[b]);
            }
        }

        for (int64_t w = 0; w < n_words; w++) {
            const float   * s   = scales[4*w/PACKED16_BLOCK];
            const int32_t * src = KW + w*CELLS;
            for (int j = 0; j < 4; j++) {
                float * dst = KT + (4*w + j)*CELLS;
                for (int c = 0; c < CELLS; c++) {
                    dst[c] = (float) ((int32_t) ((uint32_t) src[c] << (24 - 8*j)) >> 24)*s[c];
                }
            }
        }
    }

    // false when a value is infinite or NaN
    bool load_values(int64_t cell0) {
        const ggml_to_float_t to_float = ggml_get_type_traits(a.v->type)->to_float;

        for (int c = 0; c < CELLS; c++) {
            float * dst = V + c*a.D;
            if (!live[c]) {
                std::fill(dst, dst + a.D, 0.0f);
                continue;
            }
            const char * src = (const char *) a.v->data + (cell0 + c)*a.v->nb[1] + ikv*a.v->nb[2] + i3*a.v->nb[3];
            if (a.v->type == GGML_TYPE_F16) {
                ggml_cpu_fp16_to_fp32((const ggml_fp16_t *) src, dst, a.D);
            } else {
                to_float(src, dst, a.D);
            }
        }

        uint32_t magnitude = 0;
        for (int64_t i = 0; i < CELLS*a.D; i++) {
            magnitude = std::max(magnitude, packed16_magnitude(V[i]));
        }
        return magnitude < 0x7F800000u;
    }

    // scores to softmax numerators relative to the new maximum
    void softmax_row(int row) {
        float       * s = S    + row*CELLS;
        const float * b = bias + row*CELLS;

        constexpr int LANES = 16;
        float lane[LANES];
        std::fill(lane, lane + LANES, part.max[row]);
        for (int c = 0; c < CELLS; c += LANES) {
            for (int l = 0; l < LANES; l++) {
                s[c + l] = b[c + l] == -INFINITY ? -INFINITY : s[c + l]*a.scale + b[c + l];
                lane[l]  = s[c + l] > lane[l] ? s[c + l] : lane[l];
            }
        }
        const float max = *std::max_element(lane, lane + LANES);

        float sum = 0.0f;
        if (max == -INFINITY) {
            for (int c = 0; c < CELLS; c++) { // masked cells, or faulty ones: those must not vanish
                s[c] = std::isnan(s[c]) ? s[c] : 0.0f;
                sum += s[c];
            }
        } else {
            sum = (float) ggml_vec_soft_max_f32(CELLS, s, s, max);
        }

        const float rescale = packed16_rescale(part.max[row], max);
        part.max[row] = max;
        part.sum[row] = part.sum[row]*rescale + sum;
        if (rescale != 1.0f) {
            ggml_vec_scale_f32((int) a.D, part.O + row*a.D, rescale);
        }
    }

    void accumulate(bool finite) {
        if (finite) {
            simd_gemm(part.O, S, V, n_rows, CELLS, (int) a.D);
            return;
        }
        for (int row = 0; row < n_rows; row++) {
            for (int c = 0; c < CELLS; c++) {
                if (bias[row*CELLS + c] != -INFINITY) {
                    ggml_vec_mad_f32((int) a.D, part.O + row*a.D, V + c*a.D, S[row*CELLS + c]);
                }
            }
        }
    }

    // the partial of one chunk
    void run(int64_t chunk) {
        part.clear(n_rows, a.D);

        const int64_t end = std::min(a.nk, (chunk + 1)*packed16_attention::CHUNK);
        for (int64_t cell0 = chunk*packed16_attention::CHUNK; cell0 < end; cell0 += CELLS) {
            if (!load_bias(cell0, (int) std::min<int64_t>(CELLS, end - cell0))) {
                continue;
            }
            load_keys(cell0);
            std::fill(S, S + n_rows*CELLS, 0.0f);
            simd_gemm(S, Q, KT, n_rows, (int) a.D, CELLS);
            for (int row = 0; row < n_rows; row++) {
                softmax_row(row);
            }
            accumulate(load_values(cell0));
        }
    }

    void store_row(const packed16_partial & from, int row) const {
        float max   = from.max[row];
        float sum   = from.sum[row];
        float ratio = 1.0f;
        if (a.sinks) {
            const float sink = ((const float *) a.sinks->data)[head(row)];
            max   = std::max(max, sink);
            ratio = packed16_rescale(from.max[row], max);
            sum   = sum*ratio + packed16_rescale(sink, max);
        }
        ratio = from.sum[row] == 0.0f ? 0.0f : ratio/sum; // a row that sees nothing is zero

        const float * O   = from.O + row*a.D;
        float       * dst = (float *) ((char *) a.dst->data + head(row)*a.dst->nb[1] + iq(row)*a.dst->nb[2] + i3*a.dst->nb[3]);
        for (int64_t d = 0; d < a.D; d++) {
            dst[d] = O[d]*ratio;
        }
    }
};

} // namespace
