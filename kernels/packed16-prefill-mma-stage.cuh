#pragma once

// What the matrix-tile prefill keeps in shared memory, and how it gets there. packed16-prefill-mma.cuh has the picture.

#include "packed16-prefill-share.cuh"
#include "packed16-v-halves.cuh"

// Bytes a copy of V moves at a time: what divides every row.
template <int D, typename V_t>
static constexpr __host__ __device__ int packed16_v_piece() {
    return V_t::row_bytes(D) % 16 == 0 ? 16 : V_t::row_bytes(D) % 8 == 0 ? 8 : 4;
}

// Whether V goes through its own bytes in shared memory on the way to f16.
template <typename V_t> struct packed16_v_staging                 { static constexpr bool raw = PACKED16_MMA_ASYNC; };
template <>             struct packed16_v_staging<packed16_v_f16> { static constexpr bool raw = false; };

// The shared memory of a block.
template <int D, typename V_t, int shape>
struct packed16_prefill_mma_smem {
    using tile = packed16_prefill_tile<D, shape>;

    alignas(16) char  k[tile::bufs][tile::bn][D + 16];   // 16 bytes of padding: no bank conflicts by rows
    alignas(16) float ks[tile::bufs][D/32][tile::bn];    // K scales; the cells of a lane side by side, see packed16_mma_c::place
    packed16_mma_vt<D, tile::bn> v[tile::bufs];
    alignas(16) char  ks_raw[tile::bufs][PACKED16_MMA_ASYNC ? tile::bn*D/16 : 16];
    alignas(16) char  v_raw[tile::bufs][packed16_v_staging<V_t>::raw ? tile::bn*V_t::row_bytes(D) : 16];
    alignas(16) char  q[PACKED16_MMA_ASYNC ? tile::cols : 1][D + 16];
    alignas(16) float qs[D/32][PACKED16_MMA_ASYNC ? tile::cols : 4];
    packed16_share_smem<tile::threads> share;
    unsigned int      bad[3][tile::bn/32]; // cells of a V tile with values that are not finite in f16; tile i has slot i%3
};

// Where the tiles of a block come from.
struct packed16_prefill_source {
    const char * k;
    const char * ks;
    const char * v;
    int          nbk1, nbs1, nbv1;
    int          nk;
    bool         v_aligned; // V rows begin on whole pieces

    // Bytes to cell `cell`, or to the last one if it is past that. Neither factor is negative: a product of 32-bit factors is one operation.
    __device__ __forceinline__ uint64_t row(const int cell, const int nb1) const { return (uint64_t) (uint32_t) min(cell, nk - 1)*(uint32_t) nb1; }
};

// The threads that share a cell of a tile, and the cell of a thread.
template <int D, int shape>
struct packed16_cell_threads {
    static constexpr int of_cell = packed16_prefill_tile<D, shape>::threads/packed16_prefill_tile<D, shape>::bn;
    int cell, part;

    __device__ __forceinline__ packed16_cell_threads(const int tid) : cell((unsigned int) tid/of_cell), part((unsigned int) tid%of_cell) {}
};

// Copies `bytes` bytes of a row, its share of them per thread.
template <int bytes, int piece, int of_cell>
static __device__ __forceinline__ void packed16_copy_row(char * to, const char * from, const int part) {
#pragma unroll
    for (int i = 0; i < bytes/piece; i += of_cell) {
        if (i + of_cell <= bytes/piece || i + part < bytes/piece) {
            packed16_copy_async<piece>(to + (i + part)*piece, from + (i + part)*piece);
        }
    }
}

// Puts copies of the payload of cells k0 .. under way (AMD: makes them). Rows past the last cell repeat it: they are hidden.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_copy_k(
        packed16_prefill_mma_smem<D, V_t, shape> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
    const packed16_cell_threads<D, shape> my(tid);
    packed16_copy_row<D, 16, my.of_cell>(smem.k[buf][my.cell], from.k + from.row(k0 + my.cell, from.nbk1), my.part);
}

// The same for what is converted on the way: K scales, and V of a quantised type.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_copy_raw(
        packed16_prefill_mma_smem<D, V_t, shape> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
    const packed16_cell_threads<D, shape> my(tid);
    if (my.part == 0) {
        packed16_copy_async<D/16>(&smem.ks_raw[buf][my.cell*(D/16)], from.ks + from.row(k0 + my.cell, from.nbs1));
    }
    if constexpr (packed16_v_staging<V_t>::raw) {
        constexpr int row = V_t::row_bytes(D);
        char *        to  = &smem.v_raw[buf][my.cell*row];
        const char *  src = from.v + from.row(k0 + my.cell, from.nbv1);
        if (from.v_aligned) {
            packed16_copy_row<row, packed16_v_piece<D, V_t>(), my.of_cell>(to, src, my.part);
        } else {
#pragma unroll 1
            for (int i = my.part; i < row/2; i += my.of_cell) {
                ((uint16_t *) to)[i] = ((const uint16_t *) src)[i];
            }
        }
    }
}

// V of type f16 needs no conversion: straight to its place.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_copy_v(
        packed16_prefill_mma_smem<D, V_t, shape> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
#if PACKED16_MMA_ASYNC
    if constexpr (!packed16_v_staging<V_t>::raw) {
        const packed16_cell_threads<D, shape> my(tid);
        packed16_copy_row<2*D, 16, my.of_cell>((char *) smem.v[buf].v[my.cell], from.v + from.row(k0 + my.cell, from.nbv1), my.part);
    }
#endif // PACKED16_MMA_ASYNC
    GGML_UNUSED_VARS(smem, from, buf, k0, tid);
}

// Zeroes what is not finite in the pieces of an f16 V that this thread copied, once they have landed.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_check_v(
        packed16_prefill_mma_smem<D, V_t, shape> & smem, const int buf, const int slot, const int tid) {
#if PACKED16_MMA_ASYNC
    if constexpr (!packed16_v_staging<V_t>::raw) {
        const packed16_cell_threads<D, shape> my(tid);
        uint4 *  row  = (uint4 *) smem.v[buf].v[my.cell];
        uint32_t most = 0;
#pragma unroll
        for (int i = my.part; i < D/8; i += my.of_cell) {
            const uint4 q = row[i];
            most = packed16_larger_halves(most, packed16_larger_halves(packed16_larger_halves(q.x, q.y), packed16_larger_halves(q.z, q.w)));
        }
        if (packed16_bad_bits(most)) {
#pragma unroll 1
            for (int i = my.part; i < D/8; i += my.of_cell) {
                uint4 q = row[i];
                uint2 w[2] = {make_uint2(q.x, q.y), make_uint2(q.z, q.w)};
                packed16_zero_bad(w);
                row[i] = make_uint4(w[0].x, w[0].y, w[1].x, w[1].y);
            }
            atomicOr(&smem.bad[slot][my.cell/32], 1u << my.cell%32);
        }
    }
#endif // PACKED16_MMA_ASYNC
    GGML_UNUSED_VARS(smem, buf, slot, tid);
}

// Turns the raw bytes of cells k0 .. into f32 scales and f16 values; from memory where nothing was copied before.
template <int D, typename V_t, int shape>
static __device__ __forceinline__ void packed16_convert(
        packed16_prefill_mma_smem<D, V_t, shape> & smem, const packed16_prefill_source & from,
        const int buf, const int slot, const int k0, const int tid) {
    using tile = packed16_prefill_tile<D, shape>;
    {
        const int r  = (unsigned int) tid % tile::bn; // a warp reads a row per lane, and writes neighbouring words
        const int at = r/PACKED16_MMA_M*PACKED16_MMA_M + packed16_mma_c<float>::place(r % PACKED16_MMA_M);
        const char * row = PACKED16_MMA_ASYNC ? &smem.ks_raw[buf][r*(D/16)] : from.ks + from.row(k0 + r, from.nbs1);
#pragma unroll
        for (int b = (unsigned int) tid / tile::bn; b < D/64; b += tile::threads/tile::bn) { // two scales
            const uint32_t s = ((const uint32_t *) row)[b];
            smem.ks[buf][2*b + 0][at] = packed16_half_bits(s & 0xFFFF);
            smem.ks[buf][2*b + 1][at] = packed16_half_bits(s >> 16);
        }
    }
    if constexpr (packed16_v_staging<V_t>::raw || !PACKED16_MMA_ASYNC) {
        const int l = (unsigned int) tid % (D/8);
#pragma unroll
        for (int pair = (unsigned int) tid / (D/8); pair < tile::bn/2; pair += tile::threads/(D/8)) { // two cells, eight dimensions
            uint2 w[2][2];
            bool  bad = false;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                V_t raw;
                if constexpr (packed16_v_staging<V_t>::raw) {
                    raw.load(&smem.v_raw[buf][(2*pair + r)*V_t::row_bytes(D)], l);
                } else {
                    raw.load(from.v + from.row(k0 + 2*pair + r, from.nbv1), l);
                }
                bad = packed16_v_halves(raw, w[r]) || bad;
            }
            if (bad) {
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    if (packed16_zero_bad(w[r])) {
                        atomicOr(&smem.bad[slot][(2*pair + r)/32], 1u << (2*pair + r)%32);
                    }
                }
            }
            smem.v[buf].store(pair, V_t::dim(l, 0), w[0][0], w[1][0]);
            smem.v[buf].store(pair, V_t::dim(l, 4), w[0][1], w[1][1]);
        }
    }
}
