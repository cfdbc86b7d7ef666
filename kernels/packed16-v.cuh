#pragma once

// Readers of V rows: F16, Q8_0, Q4_0.
//
// A lane owns 8 dimensions of a row, D/8 lanes own a row:
//
//     f16    dims 8l .. 8l+7            one 16-byte load
//     q8_0   dims 8l .. 8l+7            8 bytes of a 34-byte block, 2-byte aligned, and its scale
//     q4_0   dims 32(l/4) + 4(l%4) + {0..3, 16..19}   4 bytes of an 18-byte block, 2-byte aligned, and its scale
//
// load() only loads, so that several rows can be in flight; unpack() gives exact f32 values; value() is one of them, slowly. Both quantised
// types are unpacked without integer conversions: the quant is put into the mantissa of a power of two and one
// fused multiply-add takes the offset off and applies the scale. offset*scale has at most 24 significant bits,
// so the result is the exact product. q4_0: 21 operations for 8 values, q8_0: 18.

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

struct packed16_v_f16 {
    uint4 q;

    static constexpr __host__ __device__ int row_bytes(const int D) { return 2*D; }
    static __device__ __forceinline__ int dim(const int l, const int i) { return 8*l + i; }

    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) {
        q = ((const uint4 *) row)[l];
    }
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

    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) {
        const char * block = row + (l/4)*34;
        d = *(const uint16_t *) block;
        packed16_load_b2(q, block + 2 + (l%4)*8);
    }
    __device__ __forceinline__ void unpack(float (&v)[8]) const {
        const float s = packed16_half_bits(d);
        const float o = -128.0f*s;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[i] = fmaf((float) (((q[i/4] ^ 0x80808080u) >> 8*(i%4)) & 0xFF), s, o);
        }
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

    __device__ __forceinline__ void load(const char * __restrict__ row, const int l) {
        const char * block = row + (l/4)*18;
        d = *(const uint16_t *) block;
        packed16_load_b2(q, block + 2 + (l%4)*4);
    }
    __device__ __forceinline__ void unpack(float (&v)[8]) const {
        const float s = packed16_half_bits(d);
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
    }
    static __device__ __forceinline__ float value(const char * __restrict__ row, const int d) {
        const char * block = row + d/32*18;
        const int    byte  = ((const uint8_t *) block)[2 + d%16];
        return packed16_half_bits(*(const uint16_t *) block)*(float) ((d%32 < 16 ? byte & 15 : byte >> 4) - 8);
    }
};
