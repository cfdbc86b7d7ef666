#pragma once

// How the blocks of the matrix-tile prefill share its work, and what puts the shares together.
//
// An item is one tile of columns of one KV head: all its cells. The tiles of the mask that are not dead differ from item to item.
//
// NVIDIA, where a multiprocessor has room for one block: the work is laid out in a line and cut into equal shares, one per block.
//
//     row of items     seq 0, columns 0        seq 0, columns 1                      ...
//     item             kv 0     | kv 1         kv 0           | kv 1                 ...
//     weights          f t t t  | f t t t      f t t t t t t  | f t t t t t t        ...    f: PACKED16_MMA_FIRST, what a block
//     block            0 0 0 0    0 1 1 1      1 1 1 2 2 2 2    2 2 3 3 3 3 3        ...       does before its first tile;
//                                                                                            t: a tile that is not dead
//
// A piece is what a block has of an item. A piece that is the whole item writes the result; the others leave (maximum, sum,
// result) in one of the two places of their block, the second one if they begin the item, and packed16_merge_shares adds them up in order.
//
// AMD, where several blocks run beside each other and uniform values are dear, and wherever there are more rows of items than the
// table holds: every block has one piece, and every item n_units of them, with as many tiles each as there are.

#include "packed16-mask.cuh"
#include "packed16-prefill-plan.cuh"

// What a block has of an item: tiles from .. to - 1, where only those count that are not dead.
struct packed16_piece {
    int row, kv;
    int from, to;
    int first, last; // whether the piece begins, ends its item
};

// The shared memory of a block's plan. What is left to do is here and not in registers, which attention needs.
template <int threads>
struct packed16_share_smem {
#if PACKED16_MMA_LINE
    int start[PACKED16_MMA_MAX_ROWS + 1]; // where the items of a row begin
    int live[PACKED16_MMA_MAX_ROWS];      // tiles of an item of the row
    int at, end, row;                     // weights of the share that are left, and the row they begin in
#endif // PACKED16_MMA_LINE
    int counts[threads];                  // for packed16_find_tiles
    packed16_piece piece;                 // the piece in hand
};

// How many of four classes are not dead.
static __device__ __forceinline__ int packed16_live_of(const uint32_t classes) {
    return __popc((classes | classes >> 1) & 0x01010101u);
}

// Turns a piece of tiles that are not dead, by rank, into tiles: its first one, and the one past its last. With n_units > 0 it is
// piece `unit` of as many. With all threads of the block; smem.piece holds the answer after the next barrier.
template <int threads>
static __device__ __forceinline__ void packed16_find_tiles(
        packed16_share_smem<threads> & smem, packed16_piece piece, const uint8_t * classes, const int stride, const int unit, const int n_units,
        const int tid) {
    const uint32_t * words = (const uint32_t *) classes;
    const int n   = stride/4;
    const int per = (n + threads - 1)/threads; // words of a thread
    const int w0  = min(tid*per, n);
    const int w1  = min(w0 + per, n);

    int mine = 0;
    for (int w = w0; w < w1; ++w) {
        mine += packed16_live_of(words[w]);
    }
    smem.counts[tid] = mine;
    __syncthreads();
    int before = 0;
    int all    = 0;
    for (int i = 0; i < (n + per - 1)/per; ++i) {
        before += i < tid ? smem.counts[i] : 0;
        all    += smem.counts[i];
    }
    if (n_units > 0) {
        piece.from = (int) ((int64_t) all*unit/n_units);
        piece.to   = (int) ((int64_t) all*(unit + 1)/n_units);
    }
    if (tid == 0) {
        smem.piece.row   = piece.row;
        smem.piece.kv    = piece.kv;
        smem.piece.first = piece.first;
        smem.piece.last  = piece.last;
        if (piece.from == piece.to) {
            smem.piece.from = 0;
            smem.piece.to   = 0;
        }
    }
    for (int t = 4*w0; t < 4*w1; ++t) {
        if (classes[t] != PACKED16_TILE_DEAD) {
            if (before == piece.from && piece.from < piece.to) {
                smem.piece.from = t;
            }
            if (before == piece.to - 1 && piece.from < piece.to) {
                smem.piece.to = t + 1;
            }
            ++before;
        }
    }
}

// The work of a block. All values are the same in all threads; everything is called by all of them.
template <int threads>
struct packed16_share {
    packed16_share_smem<threads> & smem;
    const uint8_t * classes;
    int n_units;            // pieces of an item, one to a block: grid (n_x, n_kv, n_seq*n_units); 0: a line, grid (shares)
    int n_rows;             // of items, in a line
    int n_x, n_kv, n_mask3; // tiles of columns of a sequence, KV heads, mask slices
    int nk, bn, n_tiles;

    __device__ __forceinline__ const uint8_t * classes_of(const int r) const {
        return packed16_classes_of(classes, r/n_x % n_mask3, n_x, r % n_x, nk, bn);
    }

    // The next piece of the block into smem.piece, or false. Without a line there is one, and next is called once.
    __device__ __forceinline__ bool next(const int tid) const {
#if PACKED16_MMA_LINE
        int at  = smem.at;
        int row = smem.row;
        packed16_piece p = {(int) (blockIdx.z*n_x + blockIdx.x), (int) blockIdx.y, 0, n_tiles, 1, 1};
        int live = 0;
        int p0   = 0;
        do {
            if (at >= smem.end) {
                return false;
            }
            if (n_units > 0) {
                at = smem.end;
                break;
            }
            live = smem.live[row];
            const int weight = live + PACKED16_MMA_FIRST;
            const int begin  = smem.start[row];
            const int kv     = (at - begin)/weight;
            p0 = at - begin - kv*weight;
            const int p1 = min(weight, p0 + smem.end - at);
            p = {row, kv, max(p0 - PACKED16_MMA_FIRST, 0), max(p1 - PACKED16_MMA_FIRST, 0), p0 <= PACKED16_MMA_FIRST, p1 == weight || live == 0};
            at += p1 - p0;
            row += at == begin + n_kv*weight;
        } while (p.from == p.to && (live > 0 || p0 > 0)); // its first tile is the next block's; all of a dead item is the block's that begins it
        __syncthreads(); // everybody has read
        if (tid == 0) {
            smem.at  = at;
            smem.row = row;
        }
        put(p, 0, 0, tid);
#else
        const int unit = blockIdx.z % n_units;
        put({(int) (blockIdx.z / n_units*n_x + blockIdx.x), (int) blockIdx.y, 0, n_tiles, unit == 0, unit == n_units - 1}, unit, n_units, tid);
#endif // PACKED16_MMA_LINE
        return true;
    }

    // Puts a piece of ranks, or one of `units` of an item, into smem.
    __device__ __forceinline__ void put(packed16_piece p, const int unit, const int units, const int tid) const {
        if (classes && !(p.first && p.last)) {
            packed16_find_tiles(smem, p, classes_of(p.row), packed16_class_stride(nk, bn), unit, units, tid);
        } else if (tid == 0) {
            if (units > 0) {
                p.from = (int) ((int64_t) n_tiles*unit/units);
                p.to   = (int) ((int64_t) n_tiles*(unit + 1)/units);
            } else if (p.first && p.last) {
                p.to = n_tiles;
            }
            smem.piece = p;
        }
        __syncthreads();
    }

    __device__ __forceinline__ packed16_piece piece() const {
        const packed16_piece & p = smem.piece;
        return {packed16_uniform(p.row), packed16_uniform(p.kv), packed16_uniform(p.from), packed16_uniform(p.to),
                packed16_uniform(p.first), packed16_uniform(p.last)};
    }

#if PACKED16_MMA_LINE
    // Lays out the items and takes the share of this block.
    __device__ __forceinline__ void lay_out(const int tid) const {
        int at  = 0;
        int end = 1; // not a line: one item
        if (n_units == 0) {
            const int stride = packed16_class_stride(nk, bn);
            for (int r = tid/WARP_SIZE; r < n_rows; r += threads/WARP_SIZE) {
                int live = n_tiles;
                if (classes) {
                    const uint32_t * words = (const uint32_t *) classes_of(r);
                    live = 0;
#pragma unroll 4
                    for (int w = tid % WARP_SIZE; w < stride/4; w += WARP_SIZE) {
                        live += packed16_live_of(words[w]);
                    }
                    live = warp_reduce_sum(live);
                }
                if (tid % WARP_SIZE == 0) {
                    smem.live[r] = live;
                }
            }
            __syncthreads();
            for (int r = tid; r <= n_rows; r += threads) {
                int sum = 0;
                for (int i = 0; i < r; ++i) {
                    sum += smem.live[i] + PACKED16_MMA_FIRST;
                }
                smem.start[r] = sum*n_kv;
            }
            __syncthreads();
            const int total = smem.start[n_rows];
            const int each  = total / (int) gridDim.x;
            const int more  = total % (int) gridDim.x; // so many shares are longer by one
            const int b     = blockIdx.x;
            at  = b*each + min(b, more);
            end = at + each + (b < more);
            for (int r = tid; r < n_rows; r += threads) {
                if (smem.start[r] <= at && (at < smem.start[r + 1] || r + 1 == n_rows)) { // an empty share: anywhere
                    smem.row = r;
                }
            }
        } else if (tid == 0) {
            smem.row = 0;
        }
        if (tid == 0) {
            smem.at  = at;
            smem.end = end;
        }
        __syncthreads();
    }
#endif // PACKED16_MMA_LINE
};

// Adds up the pieces of the items that were cut, in their order. 32 threads a column (16 at D=64), four dimensions each, at D=256 twice four.
#define PACKED16_MERGE_SHARES_THREADS 128
static constexpr __host__ __device__ int packed16_merge_shares_lanes(const int D) { return D/4 < WARP_SIZE ? D/4 : WARP_SIZE; }
static constexpr __host__ __device__ int packed16_merge_shares_cols(const int D) {
    return PACKED16_MERGE_SHARES_THREADS/packed16_merge_shares_lanes(D);
}

// Launch: grid (ceil(nq*gqa / packed16_merge_shares_cols(D)), n_head_kv, n_seq), block PACKED16_MERGE_SHARES_THREADS.
//   n_units 0    a line: ends [seq][columns][kv], the blocks that have the first and the last piece of an item; parts and meta have two
//                places of `cols` columns, a power of two, per block
//   otherwise    parts [seq][kv][unit][column][D] and meta [seq][kv][unit][column]
template <int D>
static __global__ void __launch_bounds__(PACKED16_MERGE_SHARES_THREADS) packed16_merge_shares(
        const float * parts, const float2 * meta, const int2 * ends, const float * sinks, float * dst, const int cols, const packed16_args args) {
    constexpr int lanes = packed16_merge_shares_lanes(D);
    constexpr int quads = D/4/lanes;

    const int n_cols = args.nq*args.gqa;
    const int col    = blockIdx.x*packed16_merge_shares_cols(D) + threadIdx.x/lanes;
    const int lane   = threadIdx.x % lanes;
    const int kv     = blockIdx.y;
    const int seq    = blockIdx.z;
    const int q      = (unsigned int) col/(unsigned int) args.gqa;
    const int head   = kv*args.gqa + col - q*args.gqa;
    const int log2   = __ffs(cols) - 1; // of cols
    const int n_x    = (n_cols + cols - 1) >> log2;
    parts += 4*lane;

    packed16_dependencies_wait();
    if (col >= n_cols) {
        return;
    }
    int2 end = make_int2(0, args.n_units - 1);
    if (args.n_units == 0) {
        end = ends[(seq*n_x + (col >> log2))*args.n_head_kv + kv];
        if (end.x == end.y) {
            return; // written already
        }
    }
    // The row of piece i; the first one of an item has the second place of its block.
    const auto row_of = [=](const int i) {
        return args.n_units == 0 ? ((uint32_t) (2*i + (i == end.x)) << log2) + (col & (cols - 1)) :
            ((uint32_t) (seq*args.n_head_kv + kv)*args.n_units + i)*n_cols + col;
    };

    float top = sinks ? packed16_sink_logit(sinks[head]) : PACKED16_MAX_FLOOR;
#pragma unroll 4
    for (int i = end.x; i <= end.y; ++i) {
        top = fmaxf(top, meta[row_of(i)].x);
    }
    float sum = sinks ? packed16_exp2(packed16_sink_logit(sinks[head]) - top) : 0.0f;
    float acc[quads][4] = {};
#pragma unroll 4
    for (int i = end.x; i <= end.y; ++i) {
        const uint32_t at = row_of(i);
        const float2   ml = meta[at];
        const float    w  = packed16_exp2(ml.x - top);
        sum = fmaf(ml.y, w, sum);
#pragma unroll
        for (int j = 0; j < quads; ++j) {
            const float4 x = *(const float4 *) (parts + (uint64_t) at*D + j*4*lanes);
            acc[j][0] = fmaf(x.x, w, acc[j][0]);
            acc[j][1] = fmaf(x.y, w, acc[j][1]);
            acc[j][2] = fmaf(x.z, w, acc[j][2]);
            acc[j][3] = fmaf(x.w, w, acc[j][3]);
        }
    }
    // sum is 0 only when every cell of the column is masked
    const float scale = sum == 0.0f ? 0.0f : __fdiv_rn(1.0f, sum);
    float *     out   = dst + (((int64_t) seq*args.nq + q)*args.n_head + head)*D + 4*lane;
#pragma unroll
    for (int j = 0; j < quads; ++j) {
        *(float4 *) (out + j*4*lanes) = make_float4(acc[j][0]*scale, acc[j][1]*scale, acc[j][2]*scale, acc[j][3]*scale);
    }
}
