#pragma once

// The merge of a short call inside the decode kernel, without a second launch (NVIDIA, sm_90 on): the blocks of a cluster have one
// chunk each, all of one super-chunk, and share out their columns among themselves.
//
//     block 0          block 1     ...   block n-1         n chunks of the same columns, n <= PACKED16_CLUSTER_MOST
//     own parts        own parts         own parts         partial results in the place of K
//          |    \   /      |        /        |             each pushes piece p of its parts to block p % n (st.async), and all (m, l)
//     inbox            inbox             inbox             counts the bytes that arrive (mbarrier); then
//     0 n 2n ...       1 n+1 ...         n-1 2n-1 ...      a warp takes a piece: a thread folds the n parts of its four dimensions
//                                                          left to right and writes the result
//
// A piece is what the 32 threads of a warp have: 128 dimensions of a column. The tree is that of packed16-merge.cuh, which for one
// super-chunk is the fold of its chunks: the same bits. One barrier of the cluster, long before it is needed: nothing may be pushed
// to a block that has not begun. No barrier at the end: a block stays until all is in that others push to it. A push needs no fence;
// to read from the others instead would take one of the whole device, twice.
// Shared memory beside that of decode: 512 bytes per piece and 8 per (block, column); D=256, 8 columns: 12 KiB.

#include "packed16-merge.cuh"

#define PACKED16_CLUSTER_MOST 8 // blocks of a cluster that every GPU with clusters can place

#ifndef PACKED16_DECODE_CLUSTER
#define PACKED16_DECODE_CLUSTER PACKED16_CLUSTER_MOST // blocks of a cluster in use, at most that many; 0: always a merge of its own
#endif // PACKED16_DECODE_CLUSTER

// 1 where the toolkit has cudaLaunchKernelEx, which programmatic dependent launch needs too, and st.async (12.1).
#if defined(GGML_CUDA_USE_PDL) && CUDART_VERSION >= 12010
#define PACKED16_CLUSTERS 1
#else
#define PACKED16_CLUSTERS 0
#endif // defined(GGML_CUDA_USE_PDL) && CUDART_VERSION >= 12010

// 1 where this compilation has the instructions.
#if PACKED16_CLUSTERS && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PACKED16_CLUSTER_NATIVE 1
#else
#define PACKED16_CLUSTER_NATIVE 0
#endif // PACKED16_CLUSTERS && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// The partial results of a block. Rows 16 bytes apart beyond D: the tiles of decode are stored without bank conflicts.
template <int D, int cols>
struct packed16_cluster_parts {
    alignas(16) float acc[cols][D + 4];
    float2 meta[cols];
};

// What the blocks of the cluster push to one of them. Piece p is the block's slot p / n_units.
template <int D, int cols>
struct packed16_cluster_inbox {
    static constexpr int pieces = (cols*D/4 + WARP_SIZE - 1)/WARP_SIZE;

    alignas(16) float4 part[pieces + PACKED16_CLUSTER_MOST - 1][WARP_SIZE]; // [slot*n_units + unit]
    float2   meta[PACKED16_CLUSTER_MOST][cols];                             // [unit]
    uint64_t arrived;

    // Pieces of n columns, and the slots of block `rank`.
    static __device__ __forceinline__ int pieces_of(const int n) { return (n*(D/4) + WARP_SIZE - 1)/WARP_SIZE; }
    static __device__ __forceinline__ int slots(const int n, const int rank, const int n_units) {
        return (pieces_of(n) - rank + n_units - 1)/n_units;
    }
    // Bytes that are pushed to it.
    static __device__ __forceinline__ int bytes(const int n, const int rank, const int n_units) {
        return n_units*(slots(n, rank, n_units)*(int) sizeof(part[0]) + n*(int) sizeof(float2));
    }
};

#if PACKED16_CLUSTER_NATIVE
// The ways between the blocks of the cluster. Every thread of a block calls open() and ready(), in this order.
template <int D, int cols>
struct packed16_cluster_post {
    using inbox_t = packed16_cluster_inbox<D, cols>;
    inbox_t & inbox; // of this block

    static __device__ __forceinline__ uint32_t shared(const void * p) { return (uint32_t) __cvta_generic_to_shared(p); }
    // The same place in block `rank`.
    static __device__ __forceinline__ uint32_t there(const void * p, const int rank) {
        uint32_t at;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared(p)), "r"(rank));
        return at;
    }

    // Says that the inbox waits for so many bytes.
    __device__ __forceinline__ void open(const int bytes) const {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(shared(&inbox.arrived)) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(shared(&inbox.arrived)), "r"(bytes) : "memory");
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.relaxed;" : : : "memory");
    }
    // All inboxes are open.
    __device__ __forceinline__ void ready() const { asm volatile("barrier.cluster.wait.acquire;" : : : "memory"); }

    __device__ __forceinline__ void push(const float4 & to, const int rank, const float4 x) const {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];"
            : : "r"(there(&to, rank)), "r"(there(&inbox.arrived, rank)), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
    }
    __device__ __forceinline__ void push(const float2 & to, const int rank, const float2 x) const {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];"
            : : "r"(there(&to, rank)), "r"(there(&inbox.arrived, rank)), "f"(x.x), "f"(x.y) : "memory");
    }
    // All bytes are in.
    __device__ __forceinline__ void wait() const {
        uint32_t in;
        do {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                : "=r"(in) : "r"(shared(&inbox.arrived)) : "memory");
        } while (in == 0);
    }
};
#endif // PACKED16_CLUSTER_NATIVE

// Pushes the partial results of n columns, of unit `unit`, to the blocks that merge them, once all threads have written theirs.
template <int D, int cols, int threads, typename post_t>
static __device__ __forceinline__ void packed16_cluster_send(
        const post_t & post, const packed16_cluster_parts<D, cols> & own, const int n, const int unit, const int n_units) {
    static_assert(PACKED16_CLUSTER_MOST*cols <= threads, "packed16: more blocks and columns than threads");
    const int tid   = threadIdx.x;
    const int lane  = tid % WARP_SIZE;
    const int count = post.inbox.pieces_of(n);
    __syncthreads();
    if (tid/cols < n_units && tid%cols < n) {
        post.push(post.inbox.meta[unit][tid%cols], tid/cols, own.meta[tid%cols]);
    }
#pragma unroll 1
    for (int p = tid/WARP_SIZE; p < count; p += threads/WARP_SIZE) {
        const int item = min(p*WARP_SIZE + lane, n*(D/4) - 1); // the last piece may be less than 32 of them
        const int slot = (unsigned) p / (unsigned) n_units;
        post.push(post.inbox.part[slot*n_units + unit][lane], p - slot*n_units, *(const float4 *) &own.acc[item/(D/4)][item%(D/4)*4]);
    }
}

// Merges what is in the inbox of block `rank`, of columns col0 .. col0 + n-1.
template <int D, int cols, int threads>
static __device__ __forceinline__ void packed16_cluster_merge(
        const packed16_cluster_inbox<D, cols> & inbox, const float * sinks, float * dst, const packed16_args & args,
        const int seq, const int kv, const int col0, const int n, const int rank) {
    const int n_units = args.n_units;
    const int lane    = threadIdx.x % WARP_SIZE;
    const int slots   = inbox.slots(n, rank, n_units);
#pragma unroll 1
    for (int slot = threadIdx.x/WARP_SIZE; slot < slots; slot += threads/WARP_SIZE) {
        const int item = (slot*n_units + rank)*WARP_SIZE + lane;
        if (item >= n*(D/4)) {
            continue;
        }
        const int   c    = item/(D/4);
        const int   q    = (col0 + c)/args.gqa;
        const int   head = kv*args.gqa + (col0 + c)%args.gqa;
        const float sink = sinks ? sinks[head] : 0.0f;
        float m = PACKED16_MAX_FLOOR;
        float l = 0.0f;
        float acc[4] = {};
#pragma unroll
        for (int u = 0; u < PACKED16_CLUSTER_MOST; ++u) {
            const int at = min(u, n_units - 1);
            float4 part[1] = {inbox.part[slot*n_units + at][lane]};
            float2 ml      = inbox.meta[at][c];
            if (u >= n_units) { // a dead unit
                part[0] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                ml      = make_float2(PACKED16_MAX_FLOOR, 0.0f);
            }
            packed16_merge_unit(m, l, acc, part, ml);
        }
        const float scale = packed16_merge_scale(l, m, sinks != nullptr, sink);
        *(float4 *) &dst[(((int64_t) seq*args.nq + q)*args.n_head + head)*D + item%(D/4)*4] = make_float4(
            packed16_merge_result(acc[0], scale), packed16_merge_result(acc[1], scale),
            packed16_merge_result(acc[2], scale), packed16_merge_result(acc[3], scale));
    }
}
