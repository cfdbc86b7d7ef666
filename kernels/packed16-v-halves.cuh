#pragma once

// V values as halves, and what to do with those that f16 does not hold. For the kernels that multiply V on matrix tiles and for the
// one that unpacks it; a load is as in packed16-v.cuh.

#include "packed16-v.cuh"

static __device__ __forceinline__ half2 packed16_as_half2(const uint32_t w) {
    half2 h;
    memcpy(&h, &w, sizeof(h));
    return h;
}
static __device__ __forceinline__ uint32_t packed16_as_word(const half2 h) {
    uint32_t w;
    memcpy(&w, &h, sizeof(w));
    return w;
}

// Bytes i and j of x, put into the mantissas of two halves of 1024: 1024 + byte.
template <int i, int j>
static __device__ __forceinline__ uint32_t packed16_two_bytes(const uint32_t x) {
#if defined(GGML_USE_HIP)
    return __builtin_amdgcn_perm(0x64646464u, x, 0x04000400u | j << 16 | i);
#elif defined(__CUDACC__)
    return __byte_perm(x, 0x64646464u, 0x4040 | j << 8 | i);
#else
    return (x >> 8*i & 0xFF) | (x >> 8*j & 0xFF) << 16 | 0x64006400u;
#endif // defined(GGML_USE_HIP)
}

// (byte - offset)*d for the four bytes of x, each product rounded once.
static __device__ __forceinline__ uint2 packed16_scaled_bytes(const uint32_t x, const int offset, const half2 d) {
    const half2 o = packed16_as_half2(0x64006400u + 0x10001u*offset);
    return make_uint2(packed16_as_word(__hmul2(__hsub2(packed16_as_half2(packed16_two_bytes<0, 1>(x)), o), d)),
                      packed16_as_word(__hmul2(__hsub2(packed16_as_half2(packed16_two_bytes<2, 3>(x)), o), d)));
}

// Bit 15 or 31 is set where one of two halves is not finite: an exponent of all ones carries into it.
static __device__ __forceinline__ uint32_t packed16_bad_bits(const uint32_t w) { return ((w & 0x7FFF7FFFu) + 0x04000400u) & 0x80008000u; }

// The 8 values of a raw V load as halves: w[0] dims V_t::dim(l, 0..3), w[1] dims V_t::dim(l, 4..7). Returns whether one of
// them may not be finite.
static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_f16 & raw, uint2 (&w)[2]) {
    w[0] = make_uint2(raw.q.x, raw.q.y);
    w[1] = make_uint2(raw.q.z, raw.q.w);
    return (packed16_bad_bits(raw.q.x) | packed16_bad_bits(raw.q.y) | packed16_bad_bits(raw.q.z) | packed16_bad_bits(raw.q.w)) != 0;
}
static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_q8_0 & raw, uint2 (&w)[2]) {
    const half2 d = packed16_as_half2((uint32_t) raw.d*0x10001u);
    w[0] = packed16_scaled_bytes(raw.q[0] ^ 0x80808080u, 128, d);
    w[1] = packed16_scaled_bytes(raw.q[1] ^ 0x80808080u, 128, d);
    return (raw.d & 0x7FFF) > 0x5FFF; // 128*d is not below 65520
}
static __device__ __forceinline__ bool packed16_v_halves(const packed16_v_q4_0 & raw, uint2 (&w)[2]) {
    const half2 d = packed16_as_half2((uint32_t) raw.d*0x10001u);
    w[0] = packed16_scaled_bytes(raw.q[0]      & 0x0F0F0F0Fu, 8, d);
    w[1] = packed16_scaled_bytes(raw.q[0] >> 4 & 0x0F0F0F0Fu, 8, d);
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

// The larger magnitudes of two pairs of halves; what is not finite is the largest.
static __device__ __forceinline__ uint32_t packed16_larger_halves(const uint32_t a, const uint32_t b) {
#if !defined(GGML_USE_HIP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return packed16_as_word(__hmax2_nan(__habs2(packed16_as_half2(a)), __habs2(packed16_as_half2(b))));
#else
    const uint32_t low  = (a & 0x7FFF) > (b & 0x7FFF) ? a & 0x7FFF : b & 0x7FFF;
    const uint32_t high = (a & 0x7FFF0000u) > (b & 0x7FFF0000u) ? a & 0x7FFF0000u : b & 0x7FFF0000u;
    return low | high;
#endif // !defined(GGML_USE_HIP) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
}
