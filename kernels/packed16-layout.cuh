#pragma once

// The packed16 K cache as device code sees it, and the small arithmetic every packed16 kernel shares.
//
// One cell of one KV head is D bytes of payload and D/32 f16 scales, in two tensors:
//
//     payload row  |  b0 b1 b2 b3 | b4 ...            |  I32 words, byte 0 of a word is the lowest dimension
//                  |<------------ D bytes ----------->|  16-byte aligned: every payload load is an int4
//     scale row    |  s0  s1  ...  s(D/32-1)          |  f16, s[i] belongs to payload bytes 32*i .. 32*i+31
//
// Bytes moved per cell and KV head at D=256: 256 + 16 of K, and 144 (q4_0), 272 (q8_0) or 512 (f16) of V.
// Rows are found through byte strides; nothing here knows how the heads of a cell are arranged.
//
// Logits are in base 2: log2(e)*scale is folded into the scales of Q, so that exp2 is the only exponential.

#include "common.cuh"
#include "packed16-config.h"

// Bits of an f16 scale that says "this block held a non-finite value".
#define PACKED16_SCALE_FAULT 0x7E00

// Bits of an f16 mask value that hides a cell.
#define PACKED16_MASK_DEAD   0xFC00

// A hidden logit, and the floor of a row's maximum. Both finite, so that no inf - inf can appear; their
// difference is far below the smallest exponent, so that exp2(hidden - maximum) is an exact zero.
#define PACKED16_LOGIT_DEAD  (-2e30f)
#define PACKED16_MAX_FLOOR   (-1e30f)

// log2(e): what is natural in the mask, the sinks and the scale of a call becomes base 2.
#define PACKED16_LOG2E       1.44269504f

// 1.5*2^23: a float whose low mantissa bits hold a small integer. An integer dot product that starts here is
// already the float MAGIC + sum, without a conversion; |sum| <= 32*127*127 < 2^22.
#define PACKED16_MAGIC_F     12582912.0f
#define PACKED16_MAGIC_I     0x4B400000

#ifndef PACKED16_DECODE_LPK
#ifdef GGML_USE_HIP
#define PACKED16_DECODE_LPK 1 // neighbouring lanes that share as many K rows: 1 on AMD, whose loads of Q are scalar
#else
#define PACKED16_DECODE_LPK 4 // elsewhere the fewest reads of Q and K are worth the exchange; at most D/32
#endif // GGML_USE_HIP
#endif // PACKED16_DECODE_LPK

#ifndef PACKED16_Q_IN_SMEM
#ifdef GGML_USE_HIP
#define PACKED16_Q_IN_SMEM 0 // Q is read with wave-uniform addresses: scalar loads, SGPR operands
#else
#define PACKED16_Q_IN_SMEM 1 // Q is broadcast from shared memory
#endif // GGML_USE_HIP
#endif // PACKED16_Q_IN_SMEM

// Threads of a block, and what its registers must leave room for: waves per SIMD on AMD, blocks per multiprocessor elsewhere.
#ifdef GGML_USE_HIP
#define PACKED16_LAUNCH_BOUNDS(threads, waves, blocks) __launch_bounds__(threads, waves)
#else
#define PACKED16_LAUNCH_BOUNDS(threads, waves, blocks) __launch_bounds__(threads, blocks)
#endif // GGML_USE_HIP

// A kernel's shared memory: `PACKED16_SHARED(type, name);` declares it. More than 48 KiB have to be asked for at the launch on NVIDIA.
#if defined(__CUDACC__) && !defined(GGML_USE_HIP)
#define PACKED16_SHARED(type, name)                  \
    extern __shared__ uint4 packed16_dynamic_smem[]; \
    type & name = *(type *) packed16_dynamic_smem
#define PACKED16_DYNAMIC_SMEM 1
#else
#define PACKED16_SHARED(type, name) __shared__ type name
#define PACKED16_DYNAMIC_SMEM 0
#endif // defined(__CUDACC__) && !defined(GGML_USE_HIP)

// Programmatic dependent launch (packed16_start): the next kernel may be put in place before this one is done, and what
// was launched before this one is done, written and visible after the wait. Nothing that another kernel writes may be
// read before it, so pointers are not __restrict__ in kernels that wait.
static __device__ __forceinline__ void packed16_dependencies_trigger() {
#if defined(GGML_CUDA_USE_PDL)
    ggml_cuda_pdl_lc();
#endif // defined(GGML_CUDA_USE_PDL)
}
static __device__ __forceinline__ void packed16_dependencies_wait() {
#if defined(GGML_CUDA_USE_PDL)
    ggml_cuda_pdl_sync();
#endif // defined(GGML_CUDA_USE_PDL)
}

// The decode side puts two tiles of DECODE_BN cells side by side where a chunk has them.
#define PACKED16_DECODE_THREADS (PACKED16_CHUNK % (2*PACKED16_DECODE_BN) == 0 ? 2*PACKED16_DECODE_BN : PACKED16_DECODE_BN)

// What a launch says beside its pointers. Strides are in bytes.
struct packed16_args {
    int nk;        // KV cells visited
    int nq;        // query rows
    int n_head;    // query heads
    int n_head_kv; // KV heads
    int gqa;       // n_head / n_head_kv
    int n_mask3;   // ne[3] of the mask: sequence s uses slice s % n_mask3

    int     nbk1, nbs1, nbv1; // from cell to cell: payload, K scales, V
    int     nbm1;             // from query row to query row of the mask
    int64_t nbk2, nbs2, nbv2; // from KV head to KV head
    int64_t nbk3, nbs3, nbv3; // from sequence to sequence
    int64_t nbm3;

    // decode only
    int chunks_per_cta; // chunks of PACKED16_CHUNK cells one block visits
    int unit_chunks;    // chunks in one partial result, a power of two: 1, or a whole super-chunk

    // partial results per column; matrix-tile prefill: pieces of an item, 0 where blocks take shares of a line
    int n_units;
};

// Packed Q in scratch: one row per (sequence, KV head, column), D/4 words and D/32 f32 scales each.
// Column of query head h = kv*gqa + g and row q: decode and the matrix-tile prefill q*gqa + g, the other prefill g*nq + q.

static __device__ __forceinline__ float packed16_exp2(const float x) {
#if defined(GGML_USE_HIP)
    return __builtin_amdgcn_exp2f(x);
#else
    return exp2f(x);
#endif // defined(GGML_USE_HIP)
}

// x, which is the same in all lanes of the warp: the compiler may keep it in a scalar register.
static __device__ __forceinline__ int packed16_uniform(const int x) {
#if defined(GGML_USE_HIP)
    return __builtin_amdgcn_readfirstlane(x);
#else
    return x;
#endif // defined(GGML_USE_HIP)
}

// AMD: x, the same in all lanes, as a new value: what is made from it is made anew, not kept in registers since it was made before.
static __device__ __forceinline__ int packed16_again(int x) {
#if defined(GGML_USE_HIP)
    asm volatile("" : "+s"(x));
#endif // defined(GGML_USE_HIP)
    return x;
}

// Quotients by a divisor that is known only at run time: a product and a shift. For numerators below 255*divisor and 2^24/divisor.
struct packed16_quotient {
    uint32_t factor;
    __device__ __forceinline__ packed16_quotient(const int divisor) : factor((1u << 24)/(uint32_t) divisor + 1) {}
    __device__ __forceinline__ int operator()(const int x) const { return (int) ((uint32_t) x*factor >> 24); }
};

// NVIDIA: x as a new value, likewise.
static __device__ __forceinline__ int packed16_fresh(int x) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(x));
#endif // defined(__CUDA_ARCH__)
    return x;
}

static __device__ __forceinline__ bool packed16_finite(const float x) {
    return (__float_as_uint(x) & 0x7F800000u) != 0x7F800000u;
}

// a*b, rounded by itself.
static __device__ __forceinline__ float packed16_mul(const float a, const float b) {
#if defined(GGML_USE_HIP)
    float p = a*b;
    asm("" : "+v"(p)); // HIP's __fmul_rn is a plain product that may be contracted
    return p;
#else
    return __fmul_rn(a, b);
#endif // defined(GGML_USE_HIP)
}

// A sink as a logit in base 2, with the same bits in every kernel: contracted into what is subtracted from it, it would not be rounded.
static __device__ __forceinline__ float packed16_sink_logit(const float sink) {
    return packed16_mul(sink, PACKED16_LOG2E);
}

// Whether x is finite once it is rounded to f16.
static __device__ __forceinline__ bool packed16_finite_f16(const float x) {
    return (__half_as_ushort(__float2half_rn(x)) & 0x7C00) != 0x7C00;
}

static __device__ __forceinline__ float packed16_half_bits(const uint32_t bits) {
    return __half2float(__ushort_as_half((unsigned short) bits));
}

// Two halves in a word, without a cast that breaks aliasing rules.
static __device__ __forceinline__ uint32_t packed16_word(const half lo, const half hi) {
    return (uint32_t) __half_as_ushort(lo) | (uint32_t) __half_as_ushort(hi) << 16;
}
static __device__ __forceinline__ half2 packed16_halves(const uint32_t w) {
    return __halves2half2(__ushort_as_half((unsigned short) (w & 0xFFFF)), __ushort_as_half((unsigned short) (w >> 16)));
}

// One step of the online softmax. A state (m, l, acc) is multiplied by a and the newcomer by b; a dead newcomer
// (m at the floor, l = acc = 0) gives a = 1, b*0 = 0: the state keeps its bits.
static __device__ __forceinline__ void packed16_merge_factors(float & m, const float m_new, float & a, float & b) {
    const float m_old = m;
    m = fmaxf(m_old, m_new);
    a = packed16_exp2(m_old - m);
    b = packed16_exp2(m_new - m);
}

// The only place that adds partial results, so that every route rounds alike.
static __device__ __forceinline__ float packed16_merge_add(const float old, const float a, const float add, const float b) {
    return fmaf(old, a, __fmul_rn(add, b));
}
