#pragma once

// Readers of V rows: F16, Q8_0, Q4_0.
//
// A lane owns 8 dimensions of a row, D/8 lanes own a row:
//
//     f16    dims 8l .. 8l+7            one 16-byte load
//     q8_0   dims 8l .. 8l+7            8 bytes of a 34-byte block, 2-byte aligned, and its scale
//     q4_0   dims 32(l/4) + 4(l%4) + {0..3, 16..19}   4 bytes of an 18-byte block, 2-byte aligned, and its scale
//
// load() only loads, so that several rows can be in flight; its `at` is a byte offset, the lane's at() included: with a V that is the
// same in all lanes AMD adds the two in the load. unpack() gives exact f32 values; value() is one of them, slowly. Both quantised
// types are unpacked without integer conversions: the quant is put into the mantissa of a power of two and one
// fused multiply-add takes the offset off and applies the scale. offset*scale has at most 24 significant bits,
// so the result is the exact product. q4_0: 21 operations for 8 values, q8_0: 18. On AMD, where a multiply-add takes
// halves as they are, that is a power of two in f16, two quants a word: 16 operations for either type.

#include "packed16-layout.cuh"

// n words from a 2-byte aligned address.
template <int n>
static __device__ __forceinline__ void packed16_load_b2(uint32_t (&w)[n], const char * __restrict__ p) {
#if defined(GGML_USE_HIP)
    __builtin_memcpy(w, p, sizeof(w)); // unaligned loads are single instructions
#else
#pragma unroll
    for (int i = 0; i < n; ++i) {
        const uint16_t * h = (const uint16_t *) p + 2*i;
        w[i] = (uint32_t) h[0] | (uint32_t) h[1] << 16;
    }
#endif // defined(GGML_USE_HIP)
}

// lo, hi = the halves of w times s, plus o: two instructions on AMD, conversions included.
static __device__ __forceinline__ void packed16_fma_halves(float & lo, float & hi, const uint32_t w, const float s, const float o) {
    lo = fmaf(packed16_half_bits(w & 0xFFFFu), s, o);
    hi = fmaf(packed16_half_bits(w >> 16), s, o);
}

struct packed16_v_f16 {
    uint4 q;

    static constexpr __host__ __device__ int row_bytes(const int D) { return 2*D; }
    static __device__ __forceinline__ int dim(const int l, const int i) { return 8*l + i; }

    static __device__ __forceinline__ int at(const int l) { return 16*l; }
    __device__ __forceinline__ void load(const char * __restrict__ V, const uint32_t at, const int) {
        q = *(const uint4 *) (V + at);
    }
    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) { load(row, at(l), l); }
    __device__ __forceinline__ void unpack(float (&v)[8]) const {
        const uint32_t w[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[2*i + 0] = packed16_half_bits(w[i]);
            v[2*i + 1] = packed16_half_bits(w[i] >> 16);
        }
    }
    static __device__ __forceinline__ float value(const char * __restrict__ row, const int d) {
        return packed16_half_bits(((const uint16_t *) row)[d]);
    }
};

struct packed16_v_q8_0 {
    uint32_t q[2];
    uint16_t d;

    static constexpr __host__ __device__ int row_bytes(const int D) { return D/32*34; }
    static __device__ __forceinline__ int dim(const int l, const int i) { return 8*l + i; }

    static __device__ __forceinline__ int at(const int l) { return (l/4)*34; }
    __device__ __forceinline__ void load(const char * __restrict__ V, const uint32_t at, const int l) {
        d = *(const uint16_t *) (V + at);
        packed16_load_b2(q, V + (at + (l%4)*8) + 2);
    }
    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) { load(row, at(l), l); }
    __device__ __forceinline__ void unpack(float (&v)[8]) const {
        const float s = packed16_half_bits(d);
#if defined(GGML_USE_HIP)
        // As a half: 1024 + 128 + value.
        const float o = -1152.0f*s;
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const uint32_t n = q[i/4] ^ 0x80808080u;
            packed16_fma_halves(v[i + 0], v[i + 2], __builtin_amdgcn_perm(n, 0x64646464u, 0x00060004u), s, o);
            packed16_fma_halves(v[i + 1], v[i + 3], __builtin_amdgcn_perm(n, 0x64646464u, 0x00070005u), s, o);
        }
#else
        const float o = -128.0f*s;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[i] = fmaf((float) (((q[i/4] ^ 0x80808080u) >> 8*(i%4)) & 0xFF), s, o);
        }
#endif // defined(GGML_USE_HIP)
    }
    static __device__ __forceinline__ float value(const char * __restrict__ row, const int d) {
        const char * block = row + d/32*34;
        return packed16_half_bits(*(const uint16_t *) block)*(float) ((const int8_t *) block)[2 + d%32];
    }
};

struct packed16_v_q4_0 {
    uint32_t q[1];
    uint16_t d;

    static constexpr __host__ __device__ int row_bytes(const int D) { return D/32*18; }
    static __device__ __forceinline__ int dim(const int l, const int i) { return 32*(l/4) + 4*(l%4) + (i%4) + 16*(i/4); }

    static __device__ __forceinline__ int at(const int l) { return (l/4)*18; }
    __device__ __forceinline__ void load(const char * __restrict__ V, const uint32_t at, const int l) {
        d = *(const uint16_t *) (V + at);
        packed16_load_b2(q, V + (at + (l%4)*4) + 2);
    }
    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) { load(row, at(l), l); }
    __device__ __forceinline__ void unpack(float (&v)[8]) const {
        const float s = packed16_half_bits(d);
#if defined(GGML_USE_HIP)
        // As a half: 1024 + n from a nibble at bit 0, 64 + n from one at bit 4; 8 is the nibble's offset.
        const float o0 = -1032.0f*s;
        const float o4 =   -72.0f*s;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t n = q[0] >> 8*i;
            packed16_fma_halves(v[i + 0], v[i + 2], (n & 0x000F000Fu) | 0x64006400u, s, o0);
            packed16_fma_halves(v[i + 4], v[i + 6], (n & 0x00F000F0u) | 0x54005400u, s, o4);
        }
#else
        // A nibble at bits 8, 12 or 16 of a mantissa counts whole units of 2^15, 2^11 or 2^7; 8 is its offset.
        const float o8  = -(32768.0f + 8.0f)*s;
        const float o12 =  -(2048.0f + 8.0f)*s;
        const float o16 =   -(128.0f + 8.0f)*s;
        const uint32_t l = q[0] << 8;
        const uint32_t m = q[0];
        const uint32_t h = q[0] >> 12;
        v[0] = fmaf(__uint_as_float((l & 0x00000F00u) | 0x47000000u), s, o8);
        v[4] = fmaf(__uint_as_float((l & 0x0000F000u) | 0x45000000u), s, o12);
        v[1] = fmaf(__uint_as_float((m & 0x00000F00u) | 0x47000000u), s, o8);
        v[5] = fmaf(__uint_as_float((m & 0x0000F000u) | 0x45000000u), s, o12);
        v[2] = fmaf(__uint_as_float((m & 0x000F0000u) | 0x43000000u), s, o16);
        v[6] = fmaf(__uint_as_float((h & 0x00000F00u) | 0x47000000u), s, o8);
        v[3] = fmaf(__uint_as_float((h & 0x0000F000u) | 0x45000000u), s, o12);
        v[7] = fmaf(__uint_as_float((h & 0x000F0000u) | 0x43000000u), s, o16);
#endif // defined(GGML_USE_HIP)
    }
    static __device__ __forceinline__ float value(const char * __restrict__ row, const int d) {
        const char * block = row + d/32*18;
        const int    byte  = ((const uint8_t *) block)[2 + d%16];
        return packed16_half_bits(*(const uint16_t *) block)*(float) ((d%32 < 16 ? byte & 15 : byte >> 4) - 8);
    }
};
