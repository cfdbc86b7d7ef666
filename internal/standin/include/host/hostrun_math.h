// Scalar device functions on the CPU. Those with _rn in their name are correctly
// rounded and never contracted; this program is compiled without contraction anyway.

#pragma once

#define HOSTRUN_MINMAX(T)                                 \
    static inline T min(T a, T b) { return a < b ? a : b; } \
    static inline T max(T a, T b) { return a > b ? a : b; }
HOSTRUN_MINMAX(int)
HOSTRUN_MINMAX(unsigned)
HOSTRUN_MINMAX(long)
HOSTRUN_MINMAX(unsigned long)
HOSTRUN_MINMAX(long long)
HOSTRUN_MINMAX(unsigned long long)
#undef HOSTRUN_MINMAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }

// Macros, because glibc's own headers declare functions of these names.
#define __expf(a)   expf(a)
#define __log2f(a)  log2f(a)
static inline float __fdividef(float a, float b) { return a / b; }

static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __int2float_rn(int a) { return (float) a; }

// A GPU's conversion saturates and takes NaN to 0.
static inline int hostrun_to_int(float a) {
    return a != a ? 0 : a >= 2147483648.0f ? INT32_MAX : a < -2147483648.0f ? INT32_MIN : (int) a;
}
static inline int __float2int_rn(float a) { return hostrun_to_int(rintf(a)); }
static inline int __float2int_rz(float a) { return hostrun_to_int(a); }

template <typename To, typename From> static inline To hostrun_bits(From f) {
    To to;
    static_assert(sizeof(To) == sizeof(From), "same size");
    memcpy(&to, &f, sizeof(to));
    return to;
}
static inline int      __float_as_int(float a) { return hostrun_bits<int>(a); }
static inline float    __int_as_float(int a) { return hostrun_bits<float>(a); }
static inline unsigned __float_as_uint(float a) { return hostrun_bits<unsigned>(a); }
static inline float    __uint_as_float(unsigned a) { return hostrun_bits<float>(a); }

static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned) (((uint64_t) a * b) >> 32); }
static inline int __popc(unsigned a) { return __builtin_popcount(a); }
static inline int __ffs(unsigned a) { return __builtin_ffs((int) a); }
static inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned) a); }

template <typename T> static inline T __ldg(const T * p) { return *p; }

static inline int __dp4a(int a, int b, int c) {
    hostrun::counts.dp4a++;
    for (int i = 0; i < 4; ++i) {
        c += (int) (int8_t) ((unsigned) a >> (8 * i)) * (int) (int8_t) ((unsigned) b >> (8 * i));
    }
    return c;
}

// Atomics: one OS thread, so plain. To the race watch they may follow each other, but not plain accesses.
template <typename T> HOSTRUN_RAW static void hostrun_atomic(T * p, const void * pc) {
    if (hostrun::traced && (uintptr_t) p >= hostrun::shadow_lo && (uintptr_t) p < hostrun::shadow_hi) {
        hostrun::shared_access((uintptr_t) p, sizeof(T), hostrun::access::atomic, pc);
    }
}
#define HOSTRUN_ATOMIC(name, update)                                                        \
    template <typename T> HOSTRUN_RAW static T name(T * p, T v) {                \
        hostrun_atomic(p, __builtin_return_address(0));                                                                \
        const T old = *p;                                                                   \
        *p = update;                                                                        \
        return old;                                                                         \
    }
HOSTRUN_ATOMIC(atomicAdd, old + v)
HOSTRUN_ATOMIC(atomicMax, old > v ? old : v)
HOSTRUN_ATOMIC(atomicMin, old < v ? old : v)
HOSTRUN_ATOMIC(atomicOr, old | v)
HOSTRUN_ATOMIC(atomicAnd, old & v)
#undef HOSTRUN_ATOMIC
