#pragma once

// What the matrix-tile prefill keeps in shared memory, and how it gets there. packed16-prefill-mma.cuh has the picture.

#include "packed16-mma.cuh"
#include "packed16-v.cuh"

// NVIDIA copies past the registers while it computes: two tiles of everything, and Q. AMD has neither the copies nor the
// room: one tile, several blocks beside each other, and Q from memory through the caches.
#define PACKED16_MMA_ASYNC (PACKED16_MMA_LAYOUT == 1)

// The tile of a block.
template <int D, int n_warps>
struct packed16_prefill_tile {
    static constexpr int threads   = n_warps*WARP_SIZE;
    static constexpr int warp_cols = D == 256 ? 16 : 32;       // 128 accumulators a lane; more columns share an A tile below that
    static constexpr int nt        = warp_cols/PACKED16_MMA_N; // N tiles of a warp
    static constexpr int cols      = n_warps*warp_cols;        // (query, head) pairs of a block
    static constexpr int bn        = PACKED16_MMA_ASYNC && n_warps == 8 ? 64 : 32; // cells
    static constexpr int mt        = bn/PACKED16_MMA_M;        // M tiles of cells
    static constexpr int bufs      = PACKED16_MMA_ASYNC ? 2 : 1;
};

// Bytes a copy of V moves at a time: what divides every row.
template <int D, typename V_t>
static constexpr __host__ __device__ int packed16_v_piece() {
    return V_t::row_bytes(D) % 16 == 0 ? 16 : V_t::row_bytes(D) % 8 == 0 ? 8 : 4;
}

// Whether V goes through its own bytes in shared memory on the way to f16.
template <typename V_t> struct packed16_v_staging                 { static constexpr bool raw = PACKED16_MMA_ASYNC; };
template <>             struct packed16_v_staging<packed16_v_f16> { static constexpr bool raw = false; };

template <int D, typename V_t, int n_warps>
struct packed16_prefill_mma_smem {
    using tile = packed16_prefill_tile<D, n_warps>;

    alignas(16) char  k[tile::bufs][tile::bn][D + 16];   // 16 bytes of padding: no bank conflicts by rows
    alignas(16) float ks[tile::bufs][D/32][tile::bn];    // K scales; the cells of a lane side by side, see packed16_mma_c::place
    packed16_mma_vt<D, tile::bn> v[tile::bufs];
    alignas(16) char  ks_raw[tile::bufs][PACKED16_MMA_ASYNC ? tile::bn*D/16 : 16];
    alignas(16) char  v_raw[tile::bufs][packed16_v_staging<V_t>::raw ? tile::bn*V_t::row_bytes(D) : 16];
    alignas(16) char  q[PACKED16_MMA_ASYNC ? tile::cols : 1][D + 16];
    alignas(16) float qs[D/32][PACKED16_MMA_ASYNC ? tile::cols : 4];
    unsigned int      bad[3][tile::bn/32]; // cells of a V tile with values that are not finite in f16; tile i has slot i%3
};

// --- V to f16 -----------------------------------------------------------------------------------------------------

// The 8 values of a raw V load as halves: w[0] dims V_t::dim(l, 0..3), w[1] dims V_t::dim(l, 4..7), each product rounded once.
// Returns whether one of them may not be finite.
static __device__ __forceinline__ uint32_t packed16_half2_word(const half2 h) {
    return packed16_word(__low2half(h), __high2half(h));
}

// Two bytes of x, put into the mantissas of two halves of 1024: 1024 + byte.
static __device__ __forceinline__ uint32_t packed16_bytes_low(const uint32_t x) {
    return (x & 0xFF) | (x & 0xFF00) << 8 | 0x64006400u;
}
static __device__ __forceinline__ uint32_t packed16_bytes_high(const uint32_t x) {
    return (x >> 16 & 0xFF) | (x & 0xFF000000u) >> 8 | 0x64006400u;
}

static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_f16 & raw, uint2 (&w)[2]) {
    w[0] = make_uint2(raw.q.x, raw.q.y);
    w[1] = make_uint2(raw.q.z, raw.q.w);
    // an exponent of all ones carries into bit 15 or 31
    return ((((raw.q.x & 0x7FFF7FFFu) + 0x04000400u) | ((raw.q.y & 0x7FFF7FFFu) + 0x04000400u) |
             ((raw.q.z & 0x7FFF7FFFu) + 0x04000400u) | ((raw.q.w & 0x7FFF7FFFu) + 0x04000400u)) & 0x80008000u) != 0;
}

static __device__ __forceinline__ uint2 packed16_v_scaled(const uint32_t x, const uint32_t offset, const half2 d) {
    const half2 o = packed16_halves(offset);
    return make_uint2(
        packed16_half2_word(__hmul2(__hsub2(packed16_halves(packed16_bytes_low(x)),  o), d)),
        packed16_half2_word(__hmul2(__hsub2(packed16_halves(packed16_bytes_high(x)), o), d)));
}

static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_q8_0 & raw, uint2 (&w)[2]) {
    const half2 d = packed16_halves((uint32_t) raw.d*0x10001u);
    w[0] = packed16_v_scaled(raw.q[0] ^ 0x80808080u, 0x64806480u, d); // 1024 + 128
    w[1] = packed16_v_scaled(raw.q[1] ^ 0x80808080u, 0x64806480u, d);
    return (raw.d & 0x7FFF) > 0x5FFF; // 128*d is not below 65520
}

static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_q4_0 & raw, uint2 (&w)[2]) {
    const half2 d = packed16_halves((uint32_t) raw.d*0x10001u);
    w[0] = packed16_v_scaled(raw.q[0]      & 0x0F0F0F0Fu, 0x64086408u, d); // 1024 + 8
    w[1] = packed16_v_scaled(raw.q[0] >> 4 & 0x0F0F0F0Fu, 0x64086408u, d);
    return (raw.d & 0x7FFF) > 0x6FFF; // 8*d is not below 65520
}

// Zeroes halves that are not finite; returns whether there were any.
static __device__ __forceinline__ bool packed16_zero_bad(uint32_t & w) {
    const uint32_t keep = ((w & 0x7C00) == 0x7C00 ? 0 : 0xFFFF) | ((w & 0x7C000000u) == 0x7C000000u ? 0 : 0xFFFF0000u);
    w &= keep;
    return keep != 0xFFFFFFFFu;
}
static __device__ __forceinline__ bool packed16_zero_bad(uint2 (&w)[2]) {
    const bool a = packed16_zero_bad(w[0].x);
    const bool b = packed16_zero_bad(w[0].y);
    const bool c = packed16_zero_bad(w[1].x);
    const bool d = packed16_zero_bad(w[1].y);
    return a || b || c || d;
}

// --- staging ------------------------------------------------------------------------------------------------------

// Where the tiles of a block come from.
struct packed16_prefill_source {
    const char * k;
    const char * ks;
    const char * v;
    int          nbk1, nbs1, nbv1;
    int          nk;
    bool         v_aligned; // V rows begin on whole pieces
};

// Puts copies of the payload of cells k0 .. under way (AMD: makes them). Rows past the last cell repeat it: they are hidden.
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_copy_k(
        packed16_prefill_mma_smem<D, V_t, n_warps> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
    using tile = packed16_prefill_tile<D, n_warps>;
#pragma unroll
    for (int i0 = 0; i0 < tile::bn*(D/16); i0 += tile::threads) {
        const int i = i0 + tid;
        const int r = i / (D/16);
        packed16_copy_async<16>(&smem.k[buf][r][i % (D/16)*16], from.k + (int64_t) min(k0 + r, from.nk - 1)*from.nbk1 + i % (D/16)*16);
    }
}

// The same for what is converted on the way: K scales, and V of a quantised type.
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_copy_raw(
        packed16_prefill_mma_smem<D, V_t, n_warps> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
    using tile = packed16_prefill_tile<D, n_warps>;
    if (tid < tile::bn) {
        packed16_copy_async<D/16>(&smem.ks_raw[buf][tid*(D/16)], from.ks + (int64_t) min(k0 + tid, from.nk - 1)*from.nbs1);
    }
    if constexpr (packed16_v_staging<V_t>::raw) {
        constexpr int row   = V_t::row_bytes(D);
        constexpr int piece = packed16_v_piece<D, V_t>();
        if (from.v_aligned) {
#pragma unroll
            for (int i0 = 0; i0 < tile::bn*(row/piece); i0 += tile::threads) {
                const int i = i0 + tid;
                const int r = i / (row/piece);
                if (i0 + tile::threads <= tile::bn*(row/piece) || i < tile::bn*(row/piece)) {
                    packed16_copy_async<piece>(&smem.v_raw[buf][i*piece],
                        from.v + (int64_t) min(k0 + r, from.nk - 1)*from.nbv1 + i % (row/piece)*piece);
                }
            }
        } else {
            for (int i = tid; i < tile::bn*(row/2); i += tile::threads) {
                const int r = i / (row/2);
                *(uint16_t *) &smem.v_raw[buf][2*i] =
                    *(const uint16_t *) (from.v + (int64_t) min(k0 + r, from.nk - 1)*from.nbv1 + i % (row/2)*2);
            }
        }
    }
}

// V of type f16 needs no conversion: straight to its place.
template <int D, int n_warps>
static __device__ __forceinline__ void packed16_copy_v(
        packed16_prefill_mma_smem<D, packed16_v_f16, n_warps> & smem, const packed16_prefill_source & from, const int buf, const int k0, const int tid) {
#if PACKED16_MMA_ASYNC
    using tile = packed16_prefill_tile<D, n_warps>;
#pragma unroll
    for (int i0 = 0; i0 < tile::bn*(D/8); i0 += tile::threads) {
        const int i = i0 + tid;
        const int r = i / (D/8);
        packed16_copy_async<16>(&smem.v[buf].v[r][i % (D/8)*8], from.v + (int64_t) min(k0 + r, from.nk - 1)*from.nbv1 + i % (D/8)*16);
    }
#else
    GGML_UNUSED_VARS(smem, from, buf, k0, tid);
#endif // PACKED16_MMA_ASYNC
}
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_copy_v(
        packed16_prefill_mma_smem<D, V_t, n_warps> &, const packed16_prefill_source &, const int, const int, const int) {}

// Zeroes what is not finite in the pieces of an f16 V that this thread copied, once they have landed.
template <int D, int n_warps>
static __device__ __forceinline__ void packed16_check_v(
        packed16_prefill_mma_smem<D, packed16_v_f16, n_warps> & smem, const int buf, const int slot, const int tid) {
#if PACKED16_MMA_ASYNC
    using tile = packed16_prefill_tile<D, n_warps>;
#pragma unroll
    for (int i0 = 0; i0 < tile::bn*(D/8); i0 += tile::threads) {
        const int i = i0 + tid;
        const int r = i / (D/8);
        packed16_v_f16 raw;
        raw.q = *(const uint4 *) &smem.v[buf].v[r][i % (D/8)*8];
        uint2 w[2];
        if (packed16_v_halves(raw, w)) {
            packed16_zero_bad(w);
            *(uint4 *) &smem.v[buf].v[r][i % (D/8)*8] = make_uint4(w[0].x, w[0].y, w[1].x, w[1].y);
            atomicOr(&smem.bad[slot][r/32], 1u << r%32);
        }
    }
#else
    GGML_UNUSED_VARS(smem, buf, slot, tid);
#endif // PACKED16_MMA_ASYNC
}
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_check_v(
        packed16_prefill_mma_smem<D, V_t, n_warps> &, const int, const int, const int) {}

// Turns the raw bytes of cells k0 .. into f32 scales and f16 values; from memory where nothing was copied before.
template <int D, typename V_t, int n_warps>
static __device__ __forceinline__ void packed16_convert(
        packed16_prefill_mma_smem<D, V_t, n_warps> & smem, const packed16_prefill_source & from,
        const int buf, const int slot, const int k0, const int tid) {
    using tile = packed16_prefill_tile<D, n_warps>;
#pragma unroll
    for (int i0 = 0; i0 < tile::bn*(D/64); i0 += tile::threads) { // two scales
        const int i = i0 + tid;
        const int r = i % tile::bn; // a warp reads a row per lane, and writes neighbouring words
        const int b = i / tile::bn;
        if (i0 + tile::threads <= tile::bn*(D/64) || i < tile::bn*(D/64)) {
            const char *   row = PACKED16_MMA_ASYNC ? &smem.ks_raw[buf][r*(D/16)] : from.ks + (int64_t) min(k0 + r, from.nk - 1)*from.nbs1;
            const uint32_t s   = ((const uint32_t *) row)[b];
            const int      at  = r/PACKED16_MMA_M*PACKED16_MMA_M + packed16_mma_c<float>::place(r % PACKED16_MMA_M);
            smem.ks[buf][2*b + 0][at] = packed16_half_bits(s & 0xFFFF);
            smem.ks[buf][2*b + 1][at] = packed16_half_bits(s >> 16);
        }
    }
    if constexpr (packed16_v_staging<V_t>::raw || !PACKED16_MMA_ASYNC) {
#pragma unroll 2
        for (int i = tid; i < tile::bn/2*(D/8); i += tile::threads) { // two cells, eight dimensions
            const int pair = i / (D/8);
            const int l    = i % (D/8);
            uint2 w[2][2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                V_t raw;
                if constexpr (packed16_v_staging<V_t>::raw) {
                    raw.load(&smem.v_raw[buf][(2*pair + r)*V_t::row_bytes(D)], l);
                } else {
                    raw.load(from.v + (int64_t) min(k0 + 2*pair + r, from.nk - 1)*from.nbv1, l);
                }
                if (packed16_v_halves(raw, w[r])) {
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
