#pragma once

// Quantisation of one 32-value block to int8, bit-exact on every backend and under -use_fast_math.
//
// Fast math may replace divisions, contract a*b + c, flush denormals and fold isnan(); so divisions are the
// correctly rounded intrinsics, sums of products are kept apart, rounding is an addition of 1.5*2^23 (round half
// to even for |x| < 2^22) and non-finite values are found by their bits. Values stay in one thread: the
// least-squares sums run in ascending index.

#include "packed16-layout.cuh"

enum packed16_scale_mode {
    PACKED16_SCALE_ABSMAX = 0, // s = f16(max|x| / 127)
    PACKED16_SCALE_MSE    = 1, // one refit after that: s = f16(sum(x*q) / sum(q*q))
};

// Correctly rounded a/b for finite a and normal b. -ffast-math turns a plain HIP division into a product with an
// approximate reciprocal, so the compiler's own exact sequence is written out: a reciprocal good to 1 ulp, refined once, and
// a quotient refined twice. Its rounding was checked on the CPU for every f16 b and for every mantissa of a over 127.
static __device__ __forceinline__ float packed16_div(const float a, const float b) {
#if defined(GGML_USE_HIP)
    float y = __builtin_amdgcn_rcpf(b);
    y = fmaf(fmaf(-b, y, 1.0f), y, y);
    float q = a*y;
    q = fmaf(fmaf(-b, q, a), y, q);
    return fmaf(fmaf(-b, q, a), y, q);
#else
    return __fdiv_rn(a, b);
#endif // defined(GGML_USE_HIP)
}

// max|x| as float bits: ordered as an unsigned integer, >= 0x7F800000 when a value is not finite.
template <int n>
static __device__ __forceinline__ uint32_t packed16_absmax_bits(const float (&x)[n]) {
    uint32_t m = 0;
#pragma unroll
    for (int i = 0; i < n; ++i) {
        m = max(m, __float_as_uint(x[i]) & 0x7FFFFFFFu);
    }
    return m;
}

// clamp(round_half_even(x*r), -127, 127)
static __device__ __forceinline__ int packed16_round(const float x, const float r) {
    const float y = fminf(fmaxf(packed16_mul(x, r), -127.0f), 127.0f);
    return __float_as_int(__fadd_rn(y, PACKED16_MAGIC_F)) - PACKED16_MAGIC_I;
}

static __device__ __forceinline__ uint32_t packed16_bytes(const int a, const int b, const int c, const int d) {
    return ((uint32_t) a & 0xFF) | ((uint32_t) b & 0xFF) << 8 | ((uint32_t) c & 0xFF) << 16 | (uint32_t) d << 24;
}

// Quantises the K block x to words q and the bits of its f16 scale.
static __device__ __forceinline__ uint16_t packed16_quantize_block(const float (&x)[32], uint32_t (&q)[8], const int mode) {
    const uint32_t amax = packed16_absmax_bits(x);
    uint16_t bits = PACKED16_SCALE_FAULT;
    if (amax < 0x7F800000u) {
        bits = __half_as_ushort(__float2half_rn(packed16_div(__uint_as_float(amax), 127.0f)));
    }
#pragma unroll 1
    for (int refit = 0; ; ++refit) {
        const bool  fault = bits >= 0x7C00; // non-finite input, or a scale that overflows f16
        const float s     = packed16_half_bits(bits);
        const float r     = bits == 0 || fault ? 0.0f : packed16_div(1.0f, s);

        float num = 0.0f;
        int   den = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            int b[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                b[j] = fault ? 0 : packed16_round(x[4*i + j], r);
                num  = __fadd_rn(num, packed16_mul(x[4*i + j], (float) b[j]));
                den += b[j]*b[j];
            }
            q[i] = packed16_bytes(b[0], b[1], b[2], b[3]);
        }
        if (fault) {
            return PACKED16_SCALE_FAULT;
        }
        if (mode != PACKED16_SCALE_MSE || refit == 1 || den == 0) { // den is 0 only where s is
            return bits;
        }
        bits = __half_as_ushort(__float2half_rn(packed16_div(num, (float) den))); // x and q have the same sign: never < 0
    }
}
