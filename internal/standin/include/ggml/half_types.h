// half and half2 over _Float16, laid out and named as CUDA's and HIP's: every
// operation rounds once, to nearest even. Needs DOT4FA_HD and vector_types.h.

#pragma once

#define DOT4FA_HD_MEMBER __host__ __device__ constexpr

struct __half {
    _Float16 data;
    __half() = default;
    DOT4FA_HD_MEMBER __half(float f) : data((_Float16) f) {}
    DOT4FA_HD_MEMBER __half(_Float16 h) : data(h) {}
    DOT4FA_HD_MEMBER __half(double f) : data((_Float16) (float) f) {}
    DOT4FA_HD_MEMBER __half(int i) : data((_Float16) i) {}
    DOT4FA_HD_MEMBER operator float() const { return (float) data; }
};
struct __attribute__((aligned(4))) __half2 {
    __half x, y;
    __half2() = default;
    DOT4FA_HD_MEMBER __half2(__half x_, __half y_) : x(x_), y(y_) {}
};
typedef __half  half;
typedef __half2 half2;
typedef _Float16 dot4fa_h2 __attribute__((ext_vector_type(2)));

DOT4FA_HD half   __float2half(float f) { return half((_Float16) f); }
DOT4FA_HD half   __float2half_rn(float f) { return half((_Float16) f); }
DOT4FA_HD float  __half2float(half h) { return (float) h.data; }
DOT4FA_HD half2  make_half2(half x, half y) { return {x, y}; }
DOT4FA_HD half2  __halves2half2(half x, half y) { return {x, y}; }
DOT4FA_HD half2  __half2half2(half x) { return {x, x}; }
DOT4FA_HD half2  __float2half2_rn(float f) { return {half(f), half(f)}; }
DOT4FA_HD half2  __floats2half2_rn(float a, float b) { return {half(a), half(b)}; }
DOT4FA_HD half2  __float22half2_rn(float2 f) { return {half(f.x), half(f.y)}; }
DOT4FA_HD float2 __half22float2(half2 h) { return {(float) h.x.data, (float) h.y.data}; }
DOT4FA_HD float  __low2float(half2 h) { return (float) h.x.data; }
DOT4FA_HD float  __high2float(half2 h) { return (float) h.y.data; }
DOT4FA_HD half   __low2half(half2 h) { return h.x; }
DOT4FA_HD half   __high2half(half2 h) { return h.y; }
DOT4FA_HD half   __ushort_as_half(unsigned short u) { return half(__builtin_bit_cast(_Float16, u)); }
DOT4FA_HD unsigned short __half_as_ushort(half h) { return __builtin_bit_cast(unsigned short, h.data); }

// Packed arithmetic: one v_pk_* instruction each.
#define DOT4FA_PACKED(name, op)                                                                                   \
    DOT4FA_HD half2 name(half2 a, half2 b) {                                                                      \
        return __builtin_bit_cast(half2, __builtin_bit_cast(dot4fa_h2, a) op __builtin_bit_cast(dot4fa_h2, b));  \
    }
DOT4FA_PACKED(__hadd2, +)
DOT4FA_PACKED(__hsub2, -)
DOT4FA_PACKED(__hmul2, *)
#undef DOT4FA_PACKED
DOT4FA_HD half2 __hfma2(half2 a, half2 b, half2 c) {
    return __builtin_bit_cast(half2, __builtin_elementwise_fma(__builtin_bit_cast(dot4fa_h2, a),
                                                               __builtin_bit_cast(dot4fa_h2, b),
                                                               __builtin_bit_cast(dot4fa_h2, c)));
}
DOT4FA_HD half2 operator+(half2 a, half2 b) { return __hadd2(a, b); }
DOT4FA_HD half2 operator-(half2 a, half2 b) { return __hsub2(a, b); }
DOT4FA_HD half2 operator*(half2 a, half2 b) { return __hmul2(a, b); }
DOT4FA_HD half2 & operator+=(half2 & a, half2 b) { return a = __hadd2(a, b); }
DOT4FA_HD half2 & operator*=(half2 & a, half2 b) { return a = __hmul2(a, b); }
DOT4FA_HD half  __hadd(half a, half b) { return half((_Float16) (a.data + b.data)); }
DOT4FA_HD half  __hsub(half a, half b) { return half((_Float16) (a.data - b.data)); }
DOT4FA_HD half  __hmul(half a, half b) { return half((_Float16) (a.data * b.data)); }
DOT4FA_HD half  __hmax(half a, half b) { return a.data > b.data ? a : b; }
DOT4FA_HD half  __hneg(half a) { return half((_Float16) -a.data); }
DOT4FA_HD bool  __hisnan(half a) { return a.data != a.data; }

#undef DOT4FA_HD_MEMBER
