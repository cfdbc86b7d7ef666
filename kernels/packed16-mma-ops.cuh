#pragma once

// The products themselves, for the layouts described in packed16-mma.cuh: include that.

#if defined(HOSTRUN) // functions of their own: inlined everywhere they take minutes to compile under sanitizers

// The 8 words of row i of A, for lanes that may each ask for another row of the same i/8.
static __device__ void packed16_mma_row(uint32_t (&w)[8], const packed16_mma_a & a, const int i) {
    if constexpr (PACKED16_MMA_LAYOUT == 1) {
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const uint4 v = __shfl_sync(0xFFFFFFFF, make_uint4(a.x[0], a.x[1], a.x[2], a.x[3]), i%8*4 + t, WARP_SIZE);
            w[t + 0] = i < 8 ? v.x : v.y;
            w[t + 4] = i < 8 ? v.z : v.w;
        }
    } else { // from one half of the warp the first words, from the other half the last ones
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            constexpr int n = packed16_mma_a::n;
            const int     f = PACKED16_MMA_LAYOUT == 2 ? 4*half : 0;
            const uint4   v = __shfl_sync(0xFFFFFFFF, make_uint4(a.x[f], a.x[(f + 1)%n], a.x[(f + 2)%n], a.x[(f + 3)%n]), i + 16*half, WARP_SIZE);
            w[4*half + 0] = v.x;
            w[4*half + 1] = v.y;
            w[4*half + 2] = v.z;
            w[4*half + 3] = v.w;
        }
    }
}

// The 8 words of column j of B.
static __device__ void packed16_mma_column(uint32_t (&w)[8], const packed16_mma_b & b, const int j) {
    if constexpr (PACKED16_MMA_LAYOUT == 1) {
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const uint2 v = __shfl_sync(0xFFFFFFFF, make_uint2(b.x[0], b.x[1]), j*4 + t, WARP_SIZE);
            w[t + 0] = v.x;
            w[t + 4] = v.y;
        }
    } else {
        packed16_mma_a a;
#pragma unroll
        for (int r = 0; r < packed16_mma_a::n; ++r) {
            a.x[r] = b.x[r % packed16_mma_b::n];
        }
        packed16_mma_row(w, a, j);
    }
}

// c += dot(words of row, words of column) for every element of the lane.
template <typename T, typename Dot>
static __device__ void packed16_mma_emulate(
        packed16_mma_c<T> & c, const packed16_mma_a & a, const packed16_mma_b & b, const int lane, const Dot dot) {
    uint32_t col[packed16_mma_c<T>::n_cols][8];
#pragma unroll
    for (int j = 0; j < packed16_mma_c<T>::n_cols; ++j) {
        packed16_mma_column(col[j], b, packed16_mma_c<T>::col(j, lane));
    }
#pragma unroll
    for (int r0 = 0; r0 < packed16_mma_c<T>::n; r0 += packed16_mma_c<T>::n_cols) { // the registers of one row
        uint32_t row[8];
        packed16_mma_row(row, a, packed16_mma_c<T>::row(r0, lane));
#pragma unroll
        for (int j = 0; j < packed16_mma_c<T>::n_cols; ++j) {
#pragma unroll
            for (int w = 0; w < 8; ++w) {
                c.x[r0 + j] = dot(row[w], col[j][w], c.x[r0 + j]);
            }
        }
    }
}

#endif // defined(HOSTRUN)

#if defined(GGML_USE_HIP) && PACKED16_MMA_NATIVE
typedef int      packed16_i32x2 __attribute__((ext_vector_type(2)));
typedef int      packed16_i32x4 __attribute__((ext_vector_type(4)));
typedef int      packed16_i32x8 __attribute__((ext_vector_type(8)));
typedef float    packed16_f32x8 __attribute__((ext_vector_type(8)));
typedef _Float16 packed16_f16x8 __attribute__((ext_vector_type(8)));
typedef _Float16 packed16_f16x16 __attribute__((ext_vector_type(16)));
#endif // defined(GGML_USE_HIP) && PACKED16_MMA_NATIVE

// d = c + a*b: signed bytes, exact while the sums fit in 32 bits. c may be a constant: the sum's start.
static __device__ __forceinline__ void packed16_mma_s8(
        packed16_mma_c<int> & d, const packed16_mma_a & a, const packed16_mma_b & b, const packed16_mma_c<int> & c, const int lane) {
#if PACKED16_MMA_NATIVE && PACKED16_MMA_LAYOUT == 1
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(d.x[0]), "=r"(d.x[1]), "=r"(d.x[2]), "=r"(d.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]),
          "r"(c.x[0]), "r"(c.x[1]), "r"(c.x[2]), "r"(c.x[3]));
#elif PACKED16_MMA_NATIVE
    packed16_i32x8 sum;
    __builtin_memcpy(&sum, c.x, sizeof(sum));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#if PACKED16_MMA_LAYOUT == 2
        packed16_i32x4 va, vb;
        __builtin_memcpy(&va, a.x + 4*i, sizeof(va));
        __builtin_memcpy(&vb, b.x + 4*i, sizeof(vb));
        sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, va, true, vb, sum, false);
#else
        packed16_i32x2 va, vb;
        __builtin_memcpy(&va, a.x + 2*i, sizeof(va));
        __builtin_memcpy(&vb, b.x + 2*i, sizeof(vb));
        sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, va, true, vb, sum, false);
#endif // PACKED16_MMA_LAYOUT == 2
    }
    __builtin_memcpy(d.x, &sum, sizeof(sum));
#elif defined(HOSTRUN)
    packed16_mma_c<int> sum = c;
    packed16_mma_emulate(sum, a, b, lane, [](const uint32_t x, const uint32_t y, const int s) { return ggml_cuda_dp4a((int) x, (int) y, s); });
    d = sum;
#else
    GGML_UNUSED_VARS(d, a, b, c);
    NO_DEVICE_CODE;
#endif // PACKED16_MMA_NATIVE && PACKED16_MMA_LAYOUT == 1
    GGML_UNUSED(lane);
}

// c += a*b: halves.
static __device__ __forceinline__ void packed16_mma_f16(
        packed16_mma_c<float> & c, const packed16_mma_a & a, const packed16_mma_b & b, const int lane) {
#if PACKED16_MMA_NATIVE && PACKED16_MMA_LAYOUT == 1
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
#elif PACKED16_MMA_NATIVE
    packed16_f32x8 sum;
    __builtin_memcpy(&sum, c.x, sizeof(sum));
#if PACKED16_MMA_LAYOUT == 2
    packed16_f16x16 va, vb;
    __builtin_memcpy(&va, a.x, sizeof(va));
    __builtin_memcpy(&vb, b.x, sizeof(vb));
    sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(va, vb, sum);
#else
    packed16_f16x8 va, vb;
    __builtin_memcpy(&va, a.x, sizeof(va));
    __builtin_memcpy(&vb, b.x, sizeof(vb));
    sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(va, vb, sum);
#endif // PACKED16_MMA_LAYOUT == 2
    __builtin_memcpy(c.x, &sum, sizeof(sum));
#elif defined(HOSTRUN)
    packed16_mma_emulate(c, a, b, lane, [](const uint32_t x, const uint32_t y, float s) {
        ggml_cuda_mad(s, packed16_halves(x), packed16_halves(y));
        return s;
    });
#else
    GGML_UNUSED_VARS(c, a, b);
    NO_DEVICE_CODE;
#endif // PACKED16_MMA_NATIVE && PACKED16_MMA_LAYOUT == 1
    GGML_UNUSED(lane);
}

// The C of 16 cells x N queries as the B of the product with V^T, rounded to f16: k is the cell.
static __device__ __forceinline__ void packed16_mma_weights(packed16_mma_b & b, const packed16_mma_c<float> & c, const int lane) {
#if PACKED16_MMA_LAYOUT == 1
#pragma unroll
    for (int r = 0; r < 2; ++r) { // 8 cells
        const uint32_t w = packed16_word(__float2half_rn(c.x[2*r]), __float2half_rn(c.x[2*r + 1])); // cell g, queries 2t and 2t+1
#if PACKED16_MMA_NATIVE
        asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b.x[r]) : "r"(w));
#else
        const int      from = lane%4*8 + lane/4/2; // of cell 2t the lane with query g, and 4 lanes on, that of cell 2t+1
        const uint32_t even = __shfl_sync(0xFFFFFFFF, w, from + 0, WARP_SIZE);
        const uint32_t odd  = __shfl_sync(0xFFFFFFFF, w, from + 4, WARP_SIZE);
        const int      bits = lane/4%2*16;
        b.x[r] = (even >> bits & 0xFFFF) | odd >> bits << 16;
#endif // PACKED16_MMA_NATIVE
    }
#elif PACKED16_MMA_LAYOUT == 2
#pragma unroll
    for (int r = 0; r < 4; ++r) { // cells 4r + h and 4r + 2 + h
        const uint32_t own = packed16_word(__float2half_rn(c.x[2*r]), __float2half_rn(c.x[2*r + 1]));
#if PACKED16_MMA_NATIVE
        const uint32_t other = __builtin_amdgcn_permlanex16(own, own, 0x76543210, 0xFEDCBA98, false, false);
#else
        const uint32_t other = __shfl_xor_sync(0xFFFFFFFF, own, 16, WARP_SIZE);
#endif // PACKED16_MMA_NATIVE
        const uint32_t even = lane < 16 ? own : other;
        const uint32_t odd  = lane < 16 ? other : own;
        b.x[2*r + 0] = (even & 0xFFFF) | odd << 16;
        b.x[2*r + 1] = even >> 16 | (odd & 0xFFFF0000u);
    }
#else
#pragma unroll
    for (int r = 0; r < 4; ++r) { // cells 8h + 2r and 8h + 2r + 1
        b.x[r] = packed16_word(__float2half_rn(c.x[2*r]), __float2half_rn(c.x[2*r + 1]));
    }
#endif // PACKED16_MMA_LAYOUT == 1
    GGML_UNUSED(lane);
}

// --- copies from global to shared memory that need no registers (sm_80); elsewhere plain copies, which land at once ---

// n is 4, 8 or 16 bytes, both addresses are multiples of it.
template <int n>
static __device__ __forceinline__ void packed16_copy_async(void * to, const void * from) {
#if PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
    const uint32_t at = (uint32_t) __cvta_generic_to_shared(to);
    if constexpr (n == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(__cvta_generic_to_global(from)) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(at), "l"(__cvta_generic_to_global(from)), "n"(n) : "memory");
    }
#elif defined(HOSTRUN) && PACKED16_MMA_LAYOUT == 1
    hostrun::copy_async(to, from, n);
#else
    ggml_cuda_memcpy_1<n>(to, from);
#endif // PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
}

// Closes a group of copies; wait<n> waits until all but the last n groups of this thread have landed. Other threads see
// them after the next barrier.
static __device__ __forceinline__ void packed16_copy_commit() {
#if PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
    asm volatile("cp.async.commit_group;" : : : "memory");
#elif defined(HOSTRUN) && PACKED16_MMA_LAYOUT == 1
    hostrun::copy_commit();
#endif // PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
}
template <int n>
static __device__ __forceinline__ void packed16_copy_wait() {
#if PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
    asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
#elif defined(HOSTRUN) && PACKED16_MMA_LAYOUT == 1
    hostrun::copy_wait(n);
#endif // PACKED16_MMA_NATIVE && !defined(GGML_USE_HIP)
}
