#pragma once

// Decode and verify on matrix tiles (NVIDIA, sm_80 on): up to 8 query rows, all query heads of a KV head, one K/V stream.
//
// Columns, chunks, units and the merge tree are those of packed16-decode.cuh; only the sums inside a chunk are formed
// otherwise. A column of a matrix product does not depend on its neighbours, and the tiles sit at fixed absolute cells, so
// the output bits of a row do not depend on nq, on the other rows, on the split or on the route.
//
// Tile: 8 warps (4 at D=64), NT tiles of 8 columns, a chunk of 128 cells at a time.
//
//     Q        asked for before K and V, quantised by the warp that asked for it while these come
//     mask     32 cells a warp; one whose cells all rows see, without a bias, says so: then nothing of it is stored or read
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
//     mask i+1 in registers -> LDS unless plain, vote | barrier | K i+1, weights | barrier | PV | barrier | V i+1
//
// In a cluster of blocks (short calls, sm_90 on) partial results take the place of K, and the blocks merge them among themselves:
// packed16-cluster.cuh.
//
// LDS at D=256, q4_0, NT 1 or 3: K 34 KiB, V 18 KiB, weights 2 or 6, Q 2 or 6, mask 4: 62 or 71 KiB, three blocks.
// Bytes per cell and KV head: 272 of K, 144 of q4_0 V, read once for all columns of the block.
// Per 16 cells and tile of columns: 8 int8 products and 64 fma per lane (QK), 16 f16 products (PV).
//
// A hidden cell has weight 0, and 0*NaN must not leak; V may also overflow f16. A sum that is not finite is formed again in f32 from
// the cells whose weight is not 0, for that column and dimension alone.

#include "packed16-decode-mma-tile.cuh"
#include "packed16-q.cuh"

// Launch: grid (n_head_kv*ceil(nq*gqa / (8*nt)), ceil(chunks / args.chunks_per_cta), n_seq), block 32*packed16_decode_mma_warps(D),
// as much shared memory as the struct. In clusters of (1, grid.y, 1), where chunks_per_cta is 1 and n_units grid.y, dst is given and
// the struct is followed by a packed16_cluster_inbox. KV heads of the same cells are neighbours: their scales and V share sectors.
// Arguments as of packed16_decode, but Q as f32. It is launched when all before it is done, and what may run beside it waits for
// its end before it writes: its inputs are constant while it runs.
template <int D, typename V_t, int nt>
static __global__ void __launch_bounds__(
        packed16_decode_mma_warps(D)*WARP_SIZE, PACKED16_MMA_DECODE_RESIDENT/(packed16_decode_mma_warps(D)*WARP_SIZE)) packed16_decode_mma(
        const packed16_q_view Q, const char * __restrict__ K, const char * __restrict__ K_scales, const char * __restrict__ V,
        const char * __restrict__ mask, const float * __restrict__ sinks, float * parts, float2 * meta, float * dst, const packed16_args args) {
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

    const int tid    = threadIdx.x;
    const int lane   = tid & (WARP_SIZE - 1);
    const int warp   = (unsigned) tid / WARP_SIZE;
    const int n_cols = args.nq*args.gqa;
    const int kv     = blockIdx.x % args.n_head_kv;
    const int col0   = blockIdx.x / args.n_head_kv * smem_t::cols;
    const int seq    = blockIdx.z;
    const int n_mine = min(smem_t::cols, n_cols - col0);
    const packed16_quotient query_of(args.gqa); // of a column
    const int q_low  = query_of(col0);
    const int n_rows = query_of(col0 + n_mine - 1) - q_low + 1;

    // On its way before all else: quantising it is what there is to do until K is here. Columns past the last one repeat it.
    float x[smem_t::cols/warps][D/32];
#pragma unroll
    for (int i = 0; i < smem_t::cols/warps; ++i) {
        const int c = col0 + min(i*warps + warp, n_mine - 1);
        const int q = query_of(c);
        packed16_load_q<D>(x[i], Q.q + q*Q.nbq1 + (kv*args.gqa + c - q*args.gqa)*Q.nbq2 + seq*Q.nbq3, lane);
    }

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
#if PACKED16_CLUSTER_NATIVE
    const bool clustered = smem_t::clusters && dst && gridDim.y > 1;
    auto &     own       = *(packed16_cluster_parts<D, smem_t::cols> *) smem.k;
    const packed16_cluster_post<D, smem_t::cols> post = {*(packed16_cluster_inbox<D, smem_t::cols> *) (&smem + 1)};
#endif // PACKED16_CLUSTER_NATIVE

    packed16_copy_k<D>(smem.k[warp], K, K_scales, args, chunk_0*PACKED16_CHUNK + warp*cells, lane);
    packed16_copy_commit();
    smem.v.template copy<T>(V, args.nbv1, chunk_0*PACKED16_CHUNK, args.nk);
    packed16_copy_commit();

    packed16_decode_mask<smem_t::rows, T> mask_next;
    mask_next.load(mask, args.nbm1, n_rows, chunk_0*PACKED16_CHUNK, args.nk);

#if PACKED16_CLUSTER_NATIVE
    if (clustered) {
        post.open(post.inbox.bytes(n_mine, blockIdx.y, args.n_units));
    }
#endif // PACKED16_CLUSTER_NATIVE

#pragma unroll
    for (int i = 0; i < smem_t::cols/warps; ++i) {
        const int c = i*warps + warp;
        packed16_quantize_q_row<D, smem_t::cols>(x[i], (int8_t *) smem.q[c], &smem.qs[0][c], lane, Q.scale_log2);
    }

    // Which query row of the block's a column of mine belongs to, 4 bits each; 8 past the last column.
    uint32_t query_bits = 0;
#pragma unroll
    for (int i = 0; i < 2*nt; ++i) {
        const int c = 8*(i/2) + 2*(lane & 3) + i%2;
        query_bits |= (uint32_t) (c < n_mine ? query_of(col0 + c) - q_low : 8) << 4*i;
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

    // Puts the mask in registers into LDS unless it is plain; what the warps saw is known after the next barrier.
    const auto vote = [&](const int at) {
        const int seen = mask_next.store(smem.mask[at], n_rows);
        if (lane == 0) {
            smem.seen[at][warp] = seen;
        }
    };
    const auto voted = [&](const int at) {
        int any = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            any |= smem.seen[at][w];
        }
        return (any & PACKED16_MASK_SEEN) != 0;
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

            float top[nt][2];
#pragma unroll
            for (int i = 0; i < 2*nt; ++i) {
                top[i/2][i%2] = PACKED16_MAX_FLOOR;
            }
            if (smem.seen[at][warp*cells/WARP_SIZE] & PACKED16_MASK_PLAIN) { // most chunks; columns past the last one are not written
#pragma unroll
                for (int i = 0; i < nt*2*mt*2; ++i) {
                    const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                    top[n][e] = fmaxf(top[n][e], s[m][n][2*r + e]);
                }
            } else {
                // all loads first: none of them waits for another column
                uint16_t bits[nt][2][mt][2];
#pragma unroll
                for (int i = 0; i < nt*2*mt*2; ++i) {
                    const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                    const int row = query_bits >> 4*(2*n + e) & 15;
                    bits[n][e][m][r] = smem.mask[at][row & 7][warp*cells + 16*m + 8*r + (lane >> 2)];
                    if (row == 8) {
                        bits[n][e][m][r] = PACKED16_MASK_DEAD;
                    }
                }
#pragma unroll
                for (int i = 0; i < nt*2*mt*2; ++i) {
                    const int n = i/(4*mt), e = i/(2*mt)%2, m = i/2%mt, r = i%2;
                    const uint32_t mask_bits = bits[n][e][m][r];
                    float &        x         = s[m][n][2*r + e];
                    x = mask_bits == PACKED16_MASK_DEAD ? PACKED16_LOGIT_DEAD : x + PACKED16_LOG2E*packed16_half_bits(mask_bits);
                    top[n][e] = fmaxf(top[n][e], x);
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
            const auto write = [&](const auto & part_at, const auto & meta_at) {
#pragma unroll
                for (int column = 0; column < 2*nt; ++column) {
                    const int n = column/2, e = column%2;
                    const int c = 8*n + first + e;
                    if (c >= n_mine) {
                        continue;
                    }
#pragma unroll
                    for (int i = 0; i < 2*dt; i += tiles::neighbours) {
                        float values[tiles::neighbours];
#pragma unroll
                        for (int j = 0; j < tiles::neighbours; ++j) {
                            values[j] = run[tiles::tile_of(i + j)][n].x[2*tiles::row_of(i + j) + e];
                        }
                        packed16_store_run(part_at(c, tiles::dim(warp, tiles::tile_of(i), tiles::row_of(i), lane)), values);
                    }
                    if (tid < 4) {
                        *meta_at(c) = make_float2(m_of[n][e], l_run[n][e]);
                    }
                }
            };
#if PACKED16_CLUSTER_NATIVE
            if (clustered) { // K has been used
                write([&](const int c, const int d) { return &own.acc[c][d]; }, [&](const int c) { return &own.meta[c]; });
            } else
#endif // PACKED16_CLUSTER_NATIVE
            {
                write([&](const int c, const int d) { return &parts[(unit_row + c)*D + d]; }, [&](const int c) { return &meta[unit_row + c]; });
            }
            forget();
        }
    }

#if PACKED16_CLUSTER_NATIVE
    if constexpr (smem_t::clusters) {
        if (clustered) {
            post.ready();
            packed16_cluster_send<D, smem_t::cols, T>(post, own, n_mine, blockIdx.y, args.n_units);
            post.wait();
            packed16_cluster_merge<D, smem_t::cols, T>(post.inbox, sinks, dst, args, seq, kv, col0, n_mine, blockIdx.y);
            return;
        }
    }
#endif // PACKED16_CLUSTER_NATIVE
    if (dst) {
        packed16_merge_own<D, T>(smem.merge, parts, meta, sinks, dst, args, seq, kv, col0, n_mine);
    }
}
