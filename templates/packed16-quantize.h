#pragma once

// packed16: the 8-bit K format, one block of 32 values at a time. C and C++, no dependencies.
//
//   amax = max |x|         s = f16(amax/127)        r = s == 0 ? 0 : 1/f32(s)        q = clamp(rint(x*r), -127, 127)
//
// - s is what gets stored, and the values are rounded against the stored s, not against the exact one
// - mode 1 (mse) then refits s = f16(sum(x*q) / sum(q*q)) once and rounds again with it
// - an infinite or NaN value, or an s beyond f16, gives s = NaN (0x7E00) and q = 0: the fault shows in whatever reads it
// - every step is one correctly rounded f32 operation, so that all implementations give the same bytes. The sum of mode 1
//   runs in ascending order; see PACKED16_ROUNDED for what compilers would make of it
//
// q is stored as bytes in the order of the values; four of them are one little-endian word of the payload.

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PACKED16_BLOCK     32
#define PACKED16_SCALE_NAN 0x7E00

enum packed16_mode {
    PACKED16_ABSMAX = 0,
    PACKED16_MSE    = 1,
};

// The value of x as it is now, rounded to f32: not fused with the operation before or after, not reordered with others, and
// no constant that a division could be turned into a multiplication by. GCC fuses across statements by default; with
// -ffast-math, which Intel's compilers switch on by themselves, all of it happens.
#if defined(__GNUC__) || defined(__clang__)
#    define PACKED16_ROUNDED(x) __asm__("" : "+m"(x))
#else
#    define PACKED16_ROUNDED(x) ((void) 0)
#endif

#if defined(_MSC_VER)
#    pragma fp_contract(off)
#endif

static inline uint32_t packed16_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float packed16_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

// |f| as an integer orders like the number, infinity and NaN last
static inline uint32_t packed16_magnitude(float f) {
    return packed16_bits(f) & 0x7FFFFFFFu;
}

static inline float packed16_f16_to_f32(uint16_t h) {
    const uint32_t sign     = (uint32_t) (h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1Fu;
    const uint32_t mantissa = h & 0x3FFu;

    if (exponent == 0) {
        const float f = (float) mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    if (exponent == 31) {
        return packed16_float(sign | 0x7F800000u | mantissa << 13);
    }
    return packed16_float(sign | (exponent + 112) << 23 | mantissa << 13);
}

// round to nearest even, f >= 0 and not NaN; beyond 65504 the result is infinity (0x7C00)
static inline uint16_t packed16_f32_to_f16(float f) {
    const uint32_t u = packed16_bits(f);

    if (u >= 0x477FF000u) { // 65520, halfway between the largest f16 and the next power of two
        return 0x7C00;
    }
    if (u >= 0x38800000u) { // normal: the rounding carry may run into the exponent, as it should
        const uint32_t rebiased = u - (112u << 23);
        return (uint16_t) ((rebiased + 0xFFFu + ((rebiased >> 13) & 1)) >> 13);
    }
    return (uint16_t) rintf(f * 0x1p24f); // subnormal: the product is exact
}

static inline float packed16_inverse(float scale) {
    return scale == 0.0f ? 0.0f : 1.0f/scale;
}

static inline void packed16_round_block(const float * x, float r, int8_t * q) {
    for (int i = 0; i < PACKED16_BLOCK; i++) {
        float v = rintf(x[i]*r);
        v = v >  127.0f ?  127.0f : v;
        v = v < -127.0f ? -127.0f : v;
        q[i] = (int8_t) v;
    }
}

static inline float packed16_refit(const float * x, const int8_t * q) {
    float   xq = 0.0f;
    int32_t qq = 0; // at most 32*127*127: exact in f32 as well

    for (int i = 0; i < PACKED16_BLOCK; i++) {
        float product = x[i]*(float) q[i];
        PACKED16_ROUNDED(product);
        xq = xq + product;
        PACKED16_ROUNDED(xq);
        qq += (int32_t) q[i]*q[i];
    }

    return qq == 0 ? 0.0f : xq/(float) qq;
}

// the scale of a block before it is rounded to its type
static inline float packed16_absmax_scale(uint32_t max_magnitude) {
    float divisor = 127.0f;
    PACKED16_ROUNDED(divisor);
    return packed16_float(max_magnitude)/divisor;
}

static inline uint32_t packed16_max_magnitude(const float * x) {
    uint32_t m = 0;
    for (int i = 0; i < PACKED16_BLOCK; i++) {
        const uint32_t v = packed16_magnitude(x[i]);
        m = v > m ? v : m;
    }
    return m;
}

// quantises the 32 values of x into q, returns the scale as f16 bits
static inline uint16_t packed16_quantize_block(const float * x, enum packed16_mode mode, int8_t * q) {
    const uint32_t amax = packed16_max_magnitude(x);

    if (amax < 0x7F800000u) {
        uint16_t s = packed16_f32_to_f16(packed16_absmax_scale(amax));
        if (s < 0x7C00) {
            packed16_round_block(x, packed16_inverse(packed16_f16_to_f32(s)), q);
            if (mode == PACKED16_MSE) {
                s = packed16_f32_to_f16(packed16_refit(x, q));
                if (s < 0x7C00) {
                    packed16_round_block(x, packed16_inverse(packed16_f16_to_f32(s)), q);
                }
            }
        }
        if (s < 0x7C00) {
            return s;
        }
    }

    memset(q, 0, PACKED16_BLOCK);
    return PACKED16_SCALE_NAN;
}

// the query side of the int8 product: the same rule, but the scale stays f32. A block below the normal range counts as
// zero, because not every device has subnormal f32
static inline float packed16_quantize_query_block(const float * x, int8_t * q) {
    const uint32_t amax = packed16_max_magnitude(x);

    if (amax >= 0x7F800000u) {
        memset(q, 0, PACKED16_BLOCK);
        return packed16_float(0x7FC00000u);
    }

    float s = packed16_absmax_scale(amax);
    if (s < 0x1p-126f) {
        s = 0.0f;
    }
    packed16_round_block(x, packed16_inverse(s), q);
    return s;
}
