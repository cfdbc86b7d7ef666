#pragma once

// Decode and verify on matrix tiles (NVIDIA, sm_80 on): up to 8 query rows, all query heads of a KV head, one K/V stream.
//
// Columns, chunks, units and the merge tree are those of packed16-decode.cuh; only the sums inside a chunk are formed
// otherwise. A column of a matrix product does not depend on its neighbours, and the tiles sit at fixed absolute cells, so
// the output bits of a row do not depend on nq, on the other rows, on the split or on the route.
//
// Tile: 8 warps (4 at D=64), NT tiles of 8 columns, a chunk of 128 cells at a time.
//
//     K        rows of 272 bytes (payload, scales) in LDS, 16 per warp (32 at D=64), copied by the warp that uses them. Rows are the M side
//     QK       per 16 cells and block of 32 bytes: one load, NT products; the integer sum begins at 1.5*2^23 and is a float
//              already; one fma for the K scale, one for the Q scale
//     softmax  maximum of a column: 3 shuffles in the warp, then over the warps by the lane that is the column; weights as f16 to LDS;
//              their sum is one more row of the product with V (ones), in warp 0
//     PV       a warp owns D/8 dimensions (16 at D=64) of all cells: tiles of V^T (packed16-decode-v.cuh) times tiles of weights
//     fold     in registers, with factors from the lane that is the column
//
// Copies of the next chunk's K start as soon as its mask has a visible cell and the warps are done with this one's K, those of
// V after PV: no second buffer, two or three blocks per multiprocessor keep the memory busy.
//
//     mask i+1 in registers -> LDS, vote | barrier | K i+1, weights | barrier | PV | barrier | V i+1
//
// LDS at D=256, q4_0, NT 1 or 3: K 34 KiB, V 18 KiB, weights 2 or 6, Q 2 or 6, mask 4: 62 or 71 KiB, three blocks.
// Bytes per cell and KV head: 272 of K, 144 of q4_0 V, read once for all columns of the block.
// Per 16 cells and tile of columns: 8 int8 products and 64 fma per lane (QK), 16 f16 products (PV).
//
// A hidden cell has weight 0, and 0*NaN must not leak; V may also overflow f16. A sum that is not finite is formed again in f32 from
// the cells whose weight is not 0, for that column and dimension alone.

#include "packed16-decode-v.cuh"
#include "packed16-merge.cuh"
#include "packed16-mma.cuh"
#include "packed16-q.cuh"
#include "packed16-qk.cuh"

#ifndef PACKED16_MMA_DECODE_UNROLL
#define PACKED16_MMA_DECODE_UNROLL 4 // steps of 16 cells in PV
#endif // PACKED16_MMA_DECODE_UNROLL

#ifndef PACKED16_MMA_DECODE_RESIDENT
#define PACKED16_MMA_DECODE_RESIDENT 512 // threads per multiprocessor that the registers leave room for
#endif // PACKED16_MMA_DECODE_RESIDENT

template <int D, typename V_t, int nt>
struct packed16_decode_mma_smem {
    static constexpr int warps = packed16_decode_mma_warps(D);
    static constexpr int cols  = nt*8;
    static constexpr int rows  = cols < PACKED16_MAX_DECODE_NQ ? cols : PACKED16_MAX_DECODE_NQ; // query rows at most
    static constexpr int cells = PACKED16_CHUNK/warps;                                          // of a warp

    alignas(16) char  k[warps][cells][D + 16]; // payload, then scales; an odd number of 16 bytes: no bank conflicts
    packed16_v_smem<D, V_t> v;
    alignas(16) char  q[cols][D + 16];
    alignas(16) float qs[D/32][cols];
    union {
        struct {
            alignas(16) uint16_t p[cols][PACKED16_CHUNK + 8]; // weights
            uint16_t mask[2][rows][PACKED16_CHUNK];           // by parity of the chunk
            alignas(8) float m[warps][cols];                  // maxima of a warp's cells
            int      alive[2][warps];                         // by parity of the chunk
        };
        packed16_merge_smem merge;
    };
};

// The mask of a chunk: thread t has cell t (and t + threads, ...) of each query row of the block.
template <int rows, int T>
struct packed16_decode_mask {
    static constexpr int n = (PACKED16_CHUNK + T - 1)/T;
    uint16_t bits[n][rows];

    __device__ __forceinline__ void load(const char * mask, const int nbm1, const int n_rows, const int k0, const int nk) {
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const int    k  = k0 + i*T + packed16_fresh(threadIdx.x);
            const char * at = mask + (int64_t) 2*k;
#pragma unroll
            for (int r = 0; r < rows; ++r, at += nbm1) {
                bits[i][r] = PACKED16_MASK_DEAD;
                if (r < n_rows && k < nk) {
                    bits[i][r] = mask ? *(const uint16_t *) at : 0;
                }
            }
        }
    }
    // Whether one of my cells is visible to one of the rows.
    __device__ __forceinline__ bool store(uint16_t (&to)[rows][PACKED16_CHUNK], const int n_rows) const {
        bool alive = false;
#pragma unroll
        for (int i = 0; i < n; ++i) {
            if (PACKED16_CHUNK % T == 0 || i*T + threadIdx.x < PACKED16_CHUNK) {
#pragma unroll
                for (int r = 0; r < rows; ++r) {
                    if (r < n_rows) {
                        to[r][i*T + threadIdx.x] = bits[i][r];
                        alive = alive || bits[i][r] != PACKED16_MASK_DEAD;
                    }
                }
            }
        }
        return alive;
    }
};

// A warp copies its cells of K, from cell k0 on; past the last cell its row again.
template <int D, int cells>
static __device__ __forceinline__ void packed16_copy_k(
        char (&to)[cells][D + 16], const char * K, const char * K_scales, const packed16_args & args, const int k0, const int lane) {
    static_assert(cells <= WARP_SIZE, "packed16: a warp has more cells than lanes");
    constexpr int pieces = D/16;
    constexpr int rows   = WARP_SIZE/pieces; // of one round of copies
    const int     lane_  = packed16_fresh(lane);
    const int     last   = args.nk - 1 - k0;
    const int     r      = lane_/pieces;
    const char *  from   = K + (int64_t) k0*args.nbk1 + lane_%pieces*16;
    char *        at     = &to[r][lane_%pieces*16];
#pragma unroll
    for (int i = 0; i < cells; i += rows) {
        packed16_copy_async<16>(at + i*sizeof(to[0]), from + min(r + i, last)*args.nbk1);
    }
    if (cells >= WARP_SIZE || lane_ < cells) {
        packed16_copy_async<D/16>(&to[lane_][D], K_scales + (int64_t) k0*args.nbs1 + min(lane_, last)*args.nbs1);
    }
}

// B tiles of neighbouring columns from shared memory: column j is the 32 bytes at p + j*stride, an odd number of 16 bytes apart.
template <int nt>
static __device__ __forceinline__ void packed16_load_columns(packed16_mma_b (&b)[nt], const void * p, const int stride, const int lane) {
#if PACKED16_MMA_NATIVE
    const char * s = (const char *) p;
#pragma unroll
    for (int n = 0; n + 1 < nt; n += 2) { // lanes 0-7: bytes 0-15 of tile n, 8-15: bytes 16-31, 16-31: of tile n + 1
        const uint32_t at = (uint32_t) __cvta_generic_to_shared(s + (8*n + (lane & 7) + (lane >> 4)*8)*stride + (lane >> 3 & 1)*16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(b[n].x[0]), "=r"(b[n].x[1]), "=r"(b[n + 1].x[0]), "=r"(b[n + 1].x[1]) : "r"(at) : "memory");
    }
    if constexpr (nt % 2 != 0) {
        const uint32_t at = (uint32_t) __cvta_generic_to_shared(s + (8*(nt - 1) + (lane & 7))*stride + (lane >> 3 & 1)*16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
            : "=r"(b[nt - 1].x[0]), "=r"(b[nt - 1].x[1]) : "r"(at) : "memory");
    }
#else
    packed16_mma_load(b, p, stride, lane);
#endif // PACKED16_MMA_NATIVE
}

// s[m][n]: logits of the warp's cells 16m .. against columns 8n .., in base 2, without the mask.
template <int D, int nt, int cells, int cols>
static __device__ __forceinline__ void packed16_qk_mma(
        float (&s)[cells/16][nt][4], const char (&k)[cells][D + 16], const char (&q)[cols][D + 16], const float (&qs)[D/32][cols], const int lane) {
    constexpr int mt = cells/16;

    uint32_t scales[mt][2][D/64];
#pragma unroll
    for (int m = 0; m < mt; ++m) {
        packed16_load_scales<D>(scales[m][0], &k[16*m + (lane >> 2) + 0][D]);
        packed16_load_scales<D>(scales[m][1], &k[16*m + (lane >> 2) + 8][D]);
#pragma unroll
        for (int n = 0; n < nt; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[m][n][i] = 0.0f;
            }
        }
    }
    const packed16_mma_c<int> start = {{PACKED16_MAGIC_I, PACKED16_MAGIC_I, PACKED16_MAGIC_I, PACKED16_MAGIC_I}};
#pragma unroll
    for (int b = 0; b < D/32; ++b) {
        packed16_mma_b qb[nt];
        packed16_load_columns(qb, &q[0][32*b], D + 16, lane);
        float2 q_scale[nt];
#pragma unroll
        for (int n = 0; n < nt; ++n) {
            q_scale[n] = *(const float2 *) &qs[b][8*n + 2*((lane & 3))];
        }
#pragma unroll
        for (int m = 0; m < mt; ++m) {
            packed16_mma_a a;
            packed16_mma_load(a, &k[16*m][32*b], D + 16, lane);
            const float ks[2] = {packed16_scale_of<D, 1>(scales[m][0], b, 0), packed16_scale_of<D, 1>(scales[m][1], b, 0)};
            const float kb[2] = {-PACKED16_MAGIC_F*ks[0], -PACKED16_MAGIC_F*ks[1]};
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_c<int> c;
                packed16_mma_s8(c, a, qb[n], start, lane);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    s[m][n][i] = fmaf(fmaf(__int_as_float(c.x[i]), ks[i/2], kb[i/2]), i%2 ? q_scale[n].y : q_scale[n].x, s[m][n][i]);
                }
            }
        }
    }
}

// What the lane that has it knows of a column, for the columns of this lane: x of lane c is column c's.
template <int nt>
static __device__ __forceinline__ void packed16_from_owners(float (&to)[nt][2], const float x, const int lane) {
#pragma unroll
    for (int n = 0; n < nt; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            to[n][e] = __shfl_sync(0xFFFFFFFF, x, 8*n + 2*(lane & 3) + e, WARP_SIZE);
        }
    }
}

// f(element j of part), where j is not known to the compiler and part stays in registers.
template <int tiles, int nt, typename F>
static __device__ __forceinline__ float packed16_part_at(packed16_mma_c<float> (&part)[tiles][nt], const int j, const F f) {
    float y = 0.0f;
#pragma unroll
    for (int e = 0; e < tiles*nt*4; ++e) {
        if (e == j) {
            y = f(part[e/(4*nt)][e/4%nt].x[e%4]);
        }
    }
    return y;
}

// The chunk's sums, of this warp's dimensions, and in warp 0 the sums of the weights as they are used: row 0 of the product with
// ones. Weights and V are in LDS; V is row 0 of the KV head in memory.
template <int D, typename V_t, int nt>
static __device__ __forceinline__ void packed16_pv_mma(
        packed16_mma_c<float> (&part)[packed16_decode_mma_tiles(D)][nt], packed16_mma_c<float> (&l)[nt], const packed16_decode_mma_smem<D, V_t, nt> & smem,
        const char * V, const int nbv1, const int k0, const int nk, const int warp, const int lane) {
    using tiles = packed16_v_tiles<D, V_t>;
    constexpr int dt = tiles::tiles;
    const packed16_mma_a ones = {{0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u}};
#pragma unroll
    for (int n = 0; n < nt; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            l[n].x[i] = 0.0f;
#pragma unroll
            for (int m = 0; m < dt; ++m) {
                part[m][n].x[i] = 0.0f;
            }
        }
    }
    constexpr int unroll = PACKED16_MMA_DECODE_UNROLL;
#pragma unroll unroll
    for (int k = 0; k < PACKED16_CHUNK; k += 16) {
        packed16_mma_b p[nt];
        packed16_load_columns(p, &smem.p[0][k], sizeof(smem.p[0]), lane);
        packed16_mma_a a[dt];
        tiles::load(a, smem.v, k, warp, lane);
#pragma unroll
        for (int m = 0; m < dt; ++m) {
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_f16(part[m][n], a[m], p[n], lane);
            }
        }
        if (warp == 0) {
#pragma unroll
            for (int n = 0; n < nt; ++n) {
                packed16_mma_f16(l[n], ones, p[n], lane);
            }
        }
    }
    float all = 0.0f; // not finite if one of them is not
#pragma unroll
    for (int m = 0; m < dt; ++m) {
#pragma unroll
        for (int n = 0; n < nt; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                all += fabsf(part[m][n].x[i]);
            }
        }
    }
    if (packed16_finite(all)) {
        return;
    }
#pragma unroll 1
    for (int j = 0; j < dt*nt*4; ++j) { // rare: one copy of the code
        const int   m = j/(4*nt), n = j/4%nt, i = j%4;
        const float x = packed16_part_at(part, j, [](float & y) { return y; });
        if (packed16_finite(x)) {
            continue;
        }
        const int dim = tiles::dim(warp, m, i/2, lane);
        float     sum = 0.0f;
        for (int k = 0; k < min(PACKED16_CHUNK, nk - k0); ++k) {
            const float w = packed16_half_bits(smem.p[8*n + 2*((lane & 3)) + i%2][k]);
            if (w != 0.0f) {
                sum = fmaf(w, V_t::value(V + (int64_t) (k0 + k)*nbv1, dim), sum);
            }
        }
        packed16_part_at(part, j, [=](float & y) { return y = sum; });
    }
}

// Launch: grid (n_head_kv*ceil(nq*gqa / (8*nt)), ceil(chunks / args.chunks_per_cta), n_seq), block 32*packed16_decode_mma_warps(D),
// as much shared memory as the struct. KV heads of the same cells are neighbours: their scales and V share sectors.
// Arguments as of packed16_decode, but Q as f32.
template <int D, typename V_t, int nt>
static __global__ void __launch_bounds__(
        packed16_decode_mma_warps(D)*WARP_SIZE, PACKED16_MMA_DECODE_RESIDENT/(packed16_decode_mma_warps(D)*WARP_SIZE)) packed16_decode_mma(
        const packed16_q_view Q, const char * K, const char * K_scales, const char * V, const char * mask, const float * sinks,
        float * parts, float2 * meta, float * dst, const packed16_args args) {
    using smem_t = packed16_decode_mma_smem<D, V_t, nt>;
    using tiles  = packed16_v_tiles<D, V_t>;
    constexpr int warps = smem_t::warps;
    constexpr int T     = warps*WARP_SIZE;
    constexpr int dt    = tiles::tiles;
    constexpr int cells = smem_t::cells;
    constexpr int mt    = cells/16;
    static_assert(PACKED16_MMA_LAYOUT == 1, "packed16: matrix-tile decode is written for the layout of NVIDIA's tiles");
    static_assert(PACKED16_CHUNK % (16*warps) == 0, "packed16: a chunk is not whole tiles for every warp");

    PACKED16_SHARED(smem_t, smem);

    packed16_dependencies_trigger();
    packed16_dependencies_wait();

    const int tid    = threadIdx.x;
    const int lane   = tid & (WARP_SIZE - 1);
    const int warp   = (unsigned) tid / WARP_SIZE;
    const int n_cols = args.nq*args.gqa;
    const int kv     = blockIdx.x % args.n_head_kv;
    const int col0   = blockIdx.x / args.n_head_kv * smem_t::cols;
    const int seq    = blockIdx.z;
    const int n_mine = min(smem_t::cols, n_cols - col0);
    const int q_low  = col0 / args.gqa;
    const int n_rows = (col0 + n_mine - 1)/args.gqa - q_low + 1;

    K        += kv*args.nbk2 + seq*args.nbk3;
    K_scales += kv*args.nbs2 + seq*args.nbs3;
    V        += kv*args.nbv2 + seq*args.nbv3;
    if (mask) {
        mask += seq % args.n_mask3 * args.nbm3 + (int64_t) q_low*args.nbm1;
    }
    const int64_t parts_row = packed16_parts_row(args, seq, kv) + col0;

    const int n_chunks = (args.nk + PACKED16_CHUNK - 1)/PACKED16_CHUNK;
    const int chunk_0  = blockIdx.y*args.chunks_per_cta;
    const int chunk_1  = min(chunk_0 + args.chunks_per_cta, n_chunks);

    packed16_copy_k<D>(smem.k[warp], K, K_scales, args, chunk_0*PACKED16_CHUNK + warp*cells, lane);
    packed16_copy_commit();
    smem.v.template copy<T>(V, args.nbv1, chunk_0*PACKED16_CHUNK, args.nk);
    packed16_copy_commit();

    packed16_decode_mask<smem_t::rows, T> mask_next;
    mask_next.load(mask, args.nbm1, n_rows, chunk_0*PACKED16_CHUNK, args.nk);

    // Columns past the last one repeat it.
    float x[smem_t::cols/warps][D/32];
#pragma unroll
    for (int i = 0; i < smem_t::cols/warps; ++i) {
        const int c = col0 + min(i*warps + warp, n_mine - 1);
        packed16_load_q<D>(x[i], Q.q + c/args.gqa*Q.nbq1 + (kv*args.gqa + c%args.gqa)*Q.nbq2 + seq*Q.nbq3, lane);
    }
#pragma unroll
    for (int i = 0; i < smem_t::cols/warps; ++i) {
        const int c = i*warps + warp;
        packed16_quantize_q_row<D, smem_t::cols>(x[i], (int8_t *) smem.q[c], &smem.qs[0][c], lane, Q.scale_log2);
    }

    // Which query row of the block's a column of mine belongs to, 4 bits each; 8 past the last column.
    uint32_t rows_of = 0;
#pragma unroll
    for (int i = 0; i < 2*nt; ++i) {
        const int c = 8*(i/2) + 2*(lane & 3) + i%2;
        rows_of |= (uint32_t) (c < n_mine ? (col0 + c)/args.gqa - q_low : 8) << 4*i;
    }

    packed16_mma_c<float> run[dt][nt] = {};
    float m_run;        // of the column that is this lane
    float l_run[nt][2]; // of columns of mine; in warp 0
    const auto forget = [&]() {
        m_run = PACKED16_MAX_FLOOR;
#pragma unroll
        for (int n = 0; n < nt; ++n) {
            l_run[n][0] = 0.0f;
            l_run[n][1] = 0.0f;
#pragma unroll
            for (int m = 0; m < dt; ++m) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    run[m][n].x[i] = 0.0f;
                }
            }
        }
    };
    forget();

    // Puts the mask in registers into LDS; whether the block sees one of its cells is known after the next barrier.
    const auto vote = [&](const int at) {
        const bool mine = mask_next.store(smem.mask[at], n_rows);
        const int  any  = warp_reduce_any(mine);
        if (lane == 0) {
            smem.alive[at][warp] = any;
        }
    };
    const auto voted = [&](const int at) {
        int any = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            any |= smem.alive[at][w];
        }
        return any != 0;
    };

    int at = 0;
    vote(at);
    __syncthreads();
    bool alive = voted(at);
    if (chunk_0 + 1 < chunk_1) {
        mask_next.load(mask, args.nbm1, n_rows, (chunk_0 + 1)*PACKED16_CHUNK, args.nk);
    }

#pragma unroll 1
    for (int chunk = chunk_0; chunk < chunk_1; ++chunk, at ^= 1) {
        const int k0 = chunk*PACKED16_CHUNK;

        float s[mt][nt][4];
        if (alive) {
            packed16_copy_wait<1>(); // all but V
            __syncwarp();
            packed16_qk_mma<D, nt>(s, smem.k[warp], smem.q, smem.qs, lane);

            // all loads, then all shuffles, then the stores: none of them waits for another column
            uint16_t bits[nt][2][mt][2];
#pragma unroll
            for (int i = 0; i < nt*2*mt*2; ++i) {
                const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                const int row = rows_of >> 4*(2*n + e) & 15;
                bits[n][e][m][r] = smem.mask[at][row & 7][warp*cells + 16*m + 8*r + (lane >> 2)];
                if (row == 8) {
                    bits[n][e][m][r] = PACKED16_MASK_DEAD;
                }
            }
            float top[nt][2];
#pragma unroll
            for (int n = 0; n < nt; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    top[n][e] = PACKED16_MAX_FLOOR;
#pragma unroll
                    for (int i = 0; i < 2*mt; ++i) {
                        const uint32_t mask_bits = bits[n][e][i/2][i%2];
                        float &        x         = s[i/2][n][2*(i%2) + e];
                        x = mask_bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : x + 1.44269504f*packed16_half_bits(mask_bits);
                        top[n][e] = fmaxf(top[n][e], x);
                    }
                }
            }
#pragma unroll
            for (int offset = 4; offset < WARP_SIZE; offset *= 2) {
#pragma unroll
                for (int i = 0; i < 2*nt; ++i) {
                    top[i/2][i%2] = fmaxf(top[i/2][i%2], __shfl_xor_sync(0xFFFFFFFF, top[i/2][i%2], offset, WARP_SIZE));
                }
            }
            if (lane < 4) {
#pragma unroll
                for (int n = 0; n < nt; ++n) {
                    *(float2 *) &smem.m[warp][8*n + 2*lane] = make_float2(top[n][0], top[n][1]);
                }
            }
        } else {
            packed16_copy_wait<0>(); // the first chunk was copied without a look at its mask
        }
        const bool more = chunk + 1 < chunk_1;
        if (more) {
            vote(at ^ 1);
        }
        __syncthreads();

        const bool next = more && voted(at ^ 1);
        if (next) {
            packed16_copy_k<D>(smem.k[warp], K, K_scales, args, k0 + PACKED16_CHUNK + warp*cells, lane);
        }
        packed16_copy_commit();
        if (chunk + 2 < chunk_1) {
            mask_next.load(mask, args.nbm1, n_rows, k0 + 2*PACKED16_CHUNK, args.nk);
        }

        if (alive) {
            float fold_a, fold_b;
            // A lane looks at one column: its maximum, and the factors of the fold.
            float m_chunk = PACKED16_MAX_FLOOR;
            if (lane < smem_t::cols) {
#pragma unroll
                for (int w = 0; w < warps; ++w) {
                    m_chunk = fmaxf(m_chunk, smem.m[w][lane]);
                }
            }
            float m_of[nt][2];
            packed16_from_owners(m_of, m_chunk, lane);
            packed16_merge_factors(m_run, m_chunk, fold_a, fold_b);
            half w[nt][2][mt][2];
#pragma unroll
            for (int i = 0; i < nt*2*mt*2; ++i) {
                const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                w[n][e][m][r] = __float2half_rn(packed16_exp2(s[m][n][2*r + e] - m_of[n][e]));
            }
#pragma unroll
            for (int i = 0; i < nt*2*mt*2; ++i) {
                const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                smem.p[8*n + 2*(lane & 3) + e][warp*cells + 16*m + 8*r + (lane >> 2)] = __half_as_ushort(w[n][e][m][r]);
            }
            packed16_copy_wait<1>(); // all but the next K
            __syncthreads();

            packed16_mma_c<float> part[dt][nt];
            packed16_mma_c<float> l[nt];
            packed16_pv_mma(part, l, smem, V, args.nbv1, k0, args.nk, warp, lane);
            float a[nt][2];
            float b[nt][2];
            packed16_from_owners(a, fold_a, lane);
            packed16_from_owners(b, fold_b, lane);
#pragma unroll
            for (int n = 0; n < nt; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int m = 0; m < dt; ++m) {
                        run[m][n].x[i] = packed16_merge_add(run[m][n].x[i], a[n][i%2], part[m][n].x[i], b[n][i%2]);
                    }
                }
                l_run[n][0] = packed16_merge_add(l_run[n][0], a[n][0], l[n].x[0], b[n][0]);
                l_run[n][1] = packed16_merge_add(l_run[n][1], a[n][1], l[n].x[1], b[n][1]);
            }
            __syncthreads();
        }
        if (next) {
            smem.v.template copy<T>(V, args.nbv1, k0 + PACKED16_CHUNK, args.nk);
        }
        packed16_copy_commit();
        alive = next;

        if (((chunk + 1) & (args.unit_chunks - 1)) == 0 || chunk + 1 == chunk_1) {
            const int64_t unit_row = parts_row + (int64_t) (chunk >> (__ffs(args.unit_chunks) - 1))*n_cols;
            const int     first    = 2*(packed16_fresh(lane) & 3);
            float m_of[nt][2];
            packed16_from_owners(m_of, m_run, lane);
#pragma unroll
            for (int n = 0; n < nt; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int c = 8*n + first + e;
                    if (c >= n_mine) {
                        continue;
                    }
#pragma unroll
                    for (int m = 0; m < dt; ++m) {
#pragma unroll
                        for (int r = 0; r < 2; ++r) {
                            parts[(unit_row + c)*D + tiles::dim(warp, m, r, lane)] = run[m][n].x[2*r + e];
                        }
                    }
                    if (tid < 4) {
                        meta[unit_row + c] = make_float2(m_of[n][e], l_run[n][e]);
                    }
                }
            }
            forget();
        }
    }

    if (dst) {
        packed16_merge_own<D, T>(smem.merge, parts, meta, sinks, dst, args, seq, kv, col0, n_mine);
    }
}
