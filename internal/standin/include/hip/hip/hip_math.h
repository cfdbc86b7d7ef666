// Scalar functions. Included by hip_runtime.h only.

#pragma once

#ifndef INFINITY
#define INFINITY (__builtin_inff())
#endif
#ifndef NAN
#define NAN (__builtin_nanf(""))
#endif

// One instruction where the hardware has one; exp2f and logf expand for denormals as ROCm's do.
DOT4FA_DEV float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
DOT4FA_DEV float fminf(float a, float b) { return __builtin_fminf(a, b); }
DOT4FA_DEV float fabsf(float a) { return __builtin_fabsf(a); }
DOT4FA_DEV float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DOT4FA_DEV float rintf(float a) { return __builtin_rintf(a); }
DOT4FA_DEV float roundf(float a) { return __builtin_roundf(a); }
DOT4FA_DEV float floorf(float a) { return __builtin_floorf(a); }
DOT4FA_DEV float ceilf(float a) { return __builtin_ceilf(a); }
DOT4FA_DEV float copysignf(float a, float b) { return __builtin_copysignf(a, b); }
DOT4FA_DEV float sqrtf(float a) { return __builtin_sqrtf(a); }
DOT4FA_DEV float exp2f(float a) { return __builtin_exp2f(a); }
DOT4FA_DEV float expf(float a) { return __builtin_expf(a); }
DOT4FA_DEV float log2f(float a) { return __builtin_log2f(a); }
DOT4FA_DEV float logf(float a) { return __builtin_logf(a); }
DOT4FA_DEV float ldexpf(float a, int e) { return __builtin_ldexpf(a, e); }
DOT4FA_DEV float powf(float a, float b) { return __builtin_exp2f(b * __builtin_log2f(a)); } // positive a only
DOT4FA_DEV void * memcpy(void * to, const void * from, size_t n) { return __builtin_memcpy(to, from, n); }
DOT4FA_DEV int  printf(const char *, ...) { return 0; }
DOT4FA_DEV void abort() { __builtin_trap(); }
DOT4FA_DEV float __expf(float a) { return __builtin_amdgcn_exp2f(a * 1.44269504088896340736f); }
DOT4FA_DEV float __log2f(float a) { return __builtin_amdgcn_logf(a); }
DOT4FA_DEV float __fdividef(float a, float b) { return a / b; }

// Correctly rounded, never contracted or re-associated.
DOT4FA_DEV float __fadd_rn(float a, float b) {
#pragma clang fp contract(off) reassociate(off)
    return a + b;
}
DOT4FA_DEV float __fsub_rn(float a, float b) {
#pragma clang fp contract(off) reassociate(off)
    return a - b;
}
DOT4FA_DEV float __fmul_rn(float a, float b) {
#pragma clang fp contract(off) reassociate(off)
    return a * b;
}
DOT4FA_DEV float __fdiv_rn(float a, float b) { return a / b; }
DOT4FA_DEV float __frcp_rn(float a) { return 1.0f / a; }
DOT4FA_DEV float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
DOT4FA_DEV float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DOT4FA_DEV int   __float2int_rn(float a) { return (int) __builtin_rintf(a); }
DOT4FA_DEV int   __float2int_rz(float a) { return (int) a; }
DOT4FA_DEV float __int2float_rn(int a) { return (float) a; }

DOT4FA_DEV int   __float_as_int(float a) { return __builtin_bit_cast(int, a); }
DOT4FA_DEV float __int_as_float(int a) { return __builtin_bit_cast(float, a); }
DOT4FA_DEV unsigned __float_as_uint(float a) { return __builtin_bit_cast(unsigned, a); }
DOT4FA_DEV float __uint_as_float(unsigned a) { return __builtin_bit_cast(float, a); }

#define isnan(x)    __builtin_isnan(x)
#define isinf(x)    __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)

#define DOT4FA_MINMAX(T)                                         \
    DOT4FA_HD T min(T a, T b) { return a < b ? a : b; }          \
    DOT4FA_HD T max(T a, T b) { return a > b ? a : b; }
DOT4FA_MINMAX(int)
DOT4FA_MINMAX(unsigned)
DOT4FA_MINMAX(long)
DOT4FA_MINMAX(unsigned long)
DOT4FA_MINMAX(long long)
DOT4FA_MINMAX(unsigned long long)
#undef DOT4FA_MINMAX
DOT4FA_HD float min(float a, float b) { return __builtin_fminf(a, b); }
DOT4FA_HD float max(float a, float b) { return __builtin_fmaxf(a, b); }
DOT4FA_DEV int abs(int a) { return a < 0 ? -a : a; }

DOT4FA_DEV unsigned __umulhi(unsigned a, unsigned b) { return (unsigned) (((uint64_t) a * b) >> 32); }
DOT4FA_DEV int __popc(unsigned a) { return __builtin_popcount(a); }
DOT4FA_DEV int __ffs(unsigned a) { return __builtin_ffs((int) a); }
DOT4FA_DEV int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned) a); }

template <typename T> DOT4FA_DEV T __ldg(const T * p) { return *p; }

DOT4FA_DEV int      atomicAdd(int * p, int v) { return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
DOT4FA_DEV unsigned atomicAdd(unsigned * p, unsigned v) { return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
DOT4FA_DEV int      atomicMax(int * p, int v) { return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
DOT4FA_DEV unsigned atomicOr(unsigned * p, unsigned v) { return __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }

// The portable spelling; ggml_cuda_dp4a goes to the dot4 instruction directly.
DOT4FA_DEV int __dp4a(int a, int b, int c) { return __builtin_amdgcn_sudot4(true, a, true, b, c, false); }
