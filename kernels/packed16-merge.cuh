#pragma once

// Stage 2 of the decode side: merges the partial results of one column.
//
// The tree is fixed by absolute cell numbers, whoever computed the partials:
//
//     chunk  chunk  ...  chunk | chunk ...          PACKED16_CHUNK cells each
//        \     |          /    |   \                folded left to right, from nothing
//           super-chunk        | super-chunk        PACKED16_SUPER_CHUNK cells each, scaled to the largest maximum of all
//              |                     |
//           group s % 16 = 0      group 1 ...       the sums of every 16th super-chunk, left to right
//                    \         |   /                added in the order of groups
//                         result
//
// A unit is what stage 1 wrote: a chunk (unit_chunks 1) or a whole super-chunk, folded by stage 1 with the same
// operations; folding one newcomer into nothing keeps its bits. Dead units are zeros with the least maximum.
//
// Short calls where there are clusters of blocks merge within the decode kernel, with the same functions: packed16-cluster.cuh.
//
// Tile: 64 dimensions of a column, or 128 where there are many columns, 4 or 8 per thread; 16 threads to a group, so 256 threads are
// the 16 groups. A thread has the loads of 8 units, 16 or 32 bytes each, under way (2 where a decode block merges for itself and needs
// its registers), and those of the first units before the maximum is known. Every thread works out the factors of its units for itself.
// LDS: 4 or 8 KiB of sums. Per unit: D*4 + 8 bytes read.

#include "packed16-layout.cuh"

#define PACKED16_MERGE_GROUPS 16
#define PACKED16_MERGE_LANES  16 // threads of a group
#define PACKED16_MERGE_AHEAD  8  // units of a thread under way

// Where the partial results of column 0 of a (sequence, KV head) begin: acc [unit][column][D], meta [unit][column].
static __device__ __forceinline__ int64_t packed16_parts_row(const packed16_args & args, const int seq, const int kv) {
    return ((int64_t) seq*args.n_head_kv + kv)*args.n_units*(args.nq*args.gqa);
}

// Dimensions of a block, for `quads` times four per thread.
static constexpr __host__ __device__ int packed16_merge_dims(const int quads) { return quads*4*PACKED16_MERGE_LANES; }

// log2 of the units of a super-chunk.
static __device__ __forceinline__ int packed16_units_log2(const packed16_args & args) {
    return __ffs(PACKED16_SUPER_CHUNK/PACKED16_CHUNK) - __ffs(args.unit_chunks);
}

template <int quads>
struct packed16_merge_smem {
    alignas(16) float acc[PACKED16_MERGE_GROUPS][packed16_merge_dims(quads)];
    float l[PACKED16_MERGE_GROUPS];
    float m[1024/WARP_SIZE]; // of a warp's units
};

static_assert((PACKED16_SUPER_CHUNK/PACKED16_CHUNK & (PACKED16_SUPER_CHUNK/PACKED16_CHUNK - 1)) == 0,
    "packed16: super_chunk is not a power of two of chunks");

// Units of one group, in order: the i-th is unit i % n of super-chunk i / n*16 + group, for super-chunks of n = 1 << units_log2 units.
// `ahead` at a time.
template <int ahead, int quads>
struct packed16_merge_units {
    float4   part[ahead][quads];
    float2   ml[ahead];
    uint32_t at[ahead]; // their rows, from the first one of the column on

    static __device__ __forceinline__ int unit(const int i, const int group, const int units_log2) {
        const int j = i & ((1 << units_log2) - 1);
        return (i - j)*PACKED16_MERGE_GROUPS + (group << units_log2) + j;
    }
    __device__ __forceinline__ void place(const int i0, const int group, const int units_log2, const int n_units, const int n_cols) {
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            at[i] = (uint32_t) min(unit(i0 + i, group, units_log2), n_units - 1)*n_cols;
        }
    }
    // Without branches, so that no load waits for another: a row is read for what is past the last unit too.
    template <int D>
    __device__ __forceinline__ void load(const float * parts, const float2 * meta) {
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
#pragma unroll
            for (int x = 0; x < quads; ++x) {
                part[i][x] = *(const float4 *) (parts + (uint64_t) at[i]*D + x*4*PACKED16_MERGE_LANES);
            }
            ml[i] = meta[at[i]];
        }
    }
    __device__ __forceinline__ void clear(const int i) {
        ml[i] = make_float2(PACKED16_MAX_FLOOR, 0.0f);
#pragma unroll
        for (int x = 0; x < quads; ++x) {
            part[i][x] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
};

// Folds one more unit, of four dimensions `quads` times, into the sums of its super-chunk.
template <int quads>
static __device__ __forceinline__ void packed16_merge_unit(float & m, float & l, float (&acc)[4*quads], const float4 (&part)[quads], const float2 ml) {
    float a, b;
    packed16_merge_factors(m, ml.x, a, b);
    l = packed16_merge_add(l, a, ml.y, b);
#pragma unroll
    for (int i = 0; i < quads; ++i) {
        acc[4*i + 0] = packed16_merge_add(acc[4*i + 0], a, part[i].x, b);
        acc[4*i + 1] = packed16_merge_add(acc[4*i + 1], a, part[i].y, b);
        acc[4*i + 2] = packed16_merge_add(acc[4*i + 2], a, part[i].z, b);
        acc[4*i + 3] = packed16_merge_add(acc[4*i + 3], a, part[i].w, b);
    }
}

// What the sums of a column are multiplied by in the end, for its maximum `top` and its sum of weights l.
static __device__ __forceinline__ float packed16_merge_scale(float l, float top, const bool has_sink, const float sink) {
    float a = 1.0f;
    if (has_sink) { // one more logit without a value
        float b;
        packed16_merge_factors(top, packed16_sink_logit(sink), a, b);
        l = packed16_merge_add(l, a, 1.0f, b);
    }
    // l is 0 only when every cell of the row is masked
    return l == 0.0f ? 0.0f : __fdiv_rn(a, l);
}
static __device__ __forceinline__ float packed16_merge_result(const float acc, const float scale) {
    return __fadd_rn(__fmul_rn(acc, scale), 0.0f); // no negative zeros
}

// Merges packed16_merge_dims(quads) dimensions of one column, from d0 on, with all `threads` threads of the block. ready() is called
// before the first load.
template <int D, int threads, int ahead, int quads, typename Ready>
static __device__ __forceinline__ void packed16_merge_column(
        packed16_merge_smem<quads> & smem, const float * parts, const float2 * meta, const float * sink, float * dst,
        const int d0, const int n_units, const int n_cols, const int units_log2, const Ready ready) {
    constexpr int dims = packed16_merge_dims(quads);
    constexpr int step = threads/PACKED16_MERGE_LANES; // groups at a time
    constexpr bool skip_past = ahead > 2; // by a branch, which in a decode block takes more registers than there are
    static_assert(threads % PACKED16_MERGE_LANES == 0 && threads >= dims, "packed16: too few threads to merge");
    const int tid    = threadIdx.x;
    const int lane   = (unsigned int) tid % PACKED16_MERGE_LANES;
    const int first  = (unsigned int) tid / PACKED16_MERGE_LANES; // group
    const int supers = (n_units + (1 << units_log2) - 1) >> units_log2;
    const int most   = (supers + PACKED16_MERGE_GROUPS - 1)/PACKED16_MERGE_GROUPS << units_log2; // units of a group

    parts += d0 + 4*lane;
    packed16_merge_units<ahead, quads> units;
    units.place(0, first, units_log2, n_units, n_cols);
    ready();
    units.template load<D>(parts, meta);

    float top = PACKED16_MAX_FLOOR;
#pragma unroll 1
    for (int u = tid; u < n_units; u += threads) {
        top = fmaxf(top, meta[(uint32_t) u*n_cols].x);
    }
    top = warp_reduce_max(top);
    if (tid % WARP_SIZE == 0) {
        smem.m[tid/WARP_SIZE] = top;
    }
    __syncthreads();
    top = smem.m[0];
#pragma unroll
    for (int w = 1; w < threads/WARP_SIZE; ++w) {
        top = fmaxf(top, smem.m[w]);
    }

#pragma unroll 1
    for (int group = first; group < PACKED16_MERGE_GROUPS; group += step) {
        float m   = PACKED16_MAX_FLOOR; // of the super-chunk so far
        float l   = 0.0f;
        float sum = 0.0f;               // of the super-chunks that are complete: their l
        float acc[4*quads] = {};
        float tot[4*quads] = {};
#pragma unroll 1
        for (int i0 = 0; i0 < most; i0 += ahead) {
            if (i0 > 0 || group >= step) {
                units.place(i0, group, units_log2, n_units, n_cols);
                units.template load<D>(parts, meta);
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const bool past = units.unit(i0 + i, group, units_log2) >= n_units; // folding it would change nothing
                if (past && !skip_past) {
                    units.clear(i);
                }
                if (!past || !skip_past) {
                    packed16_merge_unit(m, l, acc, units.part[i], units.ml[i]);
                }
                if (((i0 + i + 1) & ((1 << units_log2) - 1)) == 0 && i0 + i < most) {
                    const float w = packed16_exp2(m - top);
                    sum = fmaf(l, w, sum);
                    m   = PACKED16_MAX_FLOOR;
                    l   = 0.0f;
#pragma unroll
                    for (int d = 0; d < 4*quads; ++d) {
                        tot[d] = fmaf(acc[d], w, tot[d]);
                        acc[d] = 0.0f;
                    }
                }
            }
        }
#pragma unroll
        for (int x = 0; x < quads; ++x) {
            *(float4 *) &smem.acc[group][4*(x*PACKED16_MERGE_LANES + lane)] = make_float4(tot[4*x + 0], tot[4*x + 1], tot[4*x + 2], tot[4*x + 3]);
        }
        if (lane == 0) {
            smem.l[group] = sum;
        }
    }
    __syncthreads();

    if (tid < dims) {
        float acc = smem.acc[0][tid];
        float l   = smem.l[0];
#pragma unroll
        for (int g = 1; g < PACKED16_MERGE_GROUPS; ++g) {
            acc += smem.acc[g][tid];
            l   += smem.l[g];
        }
        dst[d0 + tid] = packed16_merge_result(acc, packed16_merge_scale(l, top, sink, sink ? *sink : 0.0f));
    }
}

// What a decode block does that has all cells of its columns col0 .. col0 + n-1: merges its own partial results.
template <int D, int threads>
static __device__ __forceinline__ void packed16_merge_own(
        packed16_merge_smem<1> & smem, const float * parts, const float2 * meta, const float * sinks, float * dst,
        const packed16_args & args, const int seq, const int kv, const int col0, const int n) {
#pragma unroll 1
    for (int col = col0; col < col0 + n; ++col) {
        const int     q    = col / args.gqa;
        const int     head = kv*args.gqa + col % args.gqa;
        const int64_t row  = packed16_parts_row(args, seq, kv) + col;
#pragma unroll 1
        for (int d0 = 0; d0 < D; d0 += packed16_merge_dims(1)) {
            __syncthreads(); // what this block wrote is visible to all of it, and the shared memory is free
            packed16_merge_column<D, threads, 2>(smem, parts + row*D, meta + row, sinks ? sinks + head : nullptr,
                dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D, d0,
                args.n_units, args.nq*args.gqa, packed16_units_log2(args), []() {});
        }
    }
}

#define PACKED16_MERGE_THREADS (PACKED16_MERGE_GROUPS*PACKED16_MERGE_LANES)

// Launch: grid (nq*gqa * D/packed16_merge_dims(quads), n_head_kv, n_seq), block PACKED16_MERGE_THREADS.
// dst: f32 [seq][q][head][D]; sinks: n_head floats or null.
template <int D, int quads>
static __global__ void __launch_bounds__(PACKED16_MERGE_THREADS) packed16_merge(
        const float * parts, const float2 * meta, const float * sinks, float * dst, const packed16_args args) {
    __shared__ packed16_merge_smem<quads> smem;

    packed16_dependencies_trigger();

    constexpr int dims = packed16_merge_dims(quads);
    const int     col  = blockIdx.x / (D/dims);
    const int     d0   = blockIdx.x % (D/dims)*dims;
    const int     kv   = blockIdx.y;
    const int     seq  = blockIdx.z;
    const int     q    = col / args.gqa;
    const int     head = kv*args.gqa + col % args.gqa;
    const int64_t row  = packed16_parts_row(args, seq, kv) + col;

    packed16_merge_column<D, PACKED16_MERGE_THREADS, PACKED16_MERGE_AHEAD>(smem, parts + row*D, meta + row, sinks ? sinks + head : nullptr,
        dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D, d0, args.n_units, args.nq*args.gqa, packed16_units_log2(args),
        []() { packed16_dependencies_wait(); });
}
