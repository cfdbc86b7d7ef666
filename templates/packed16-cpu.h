#pragma once

// The packed16 ops on the CPU: included once, by ops.cpp.

#include "packed16-attention.h"
#include "packed16-ref.h"

#include "../packed16-quantize.h"
#include "../packed16-rules.h"

#include <algorithm>

// GGML_OP_PACK_K_PACKED16

static void packed16_pack(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * k_cur     = dst->src[0];
    const ggml_tensor * k_idxs    = dst->src[1];
    const ggml_tensor * k_payload = dst->src[2];
    const ggml_tensor * k_scales  = dst->src[3];

    const int64_t n_blocks = k_cur->ne[0]/PACKED16_BLOCK; // of all heads of a token
    const int64_t n_items  = n_blocks*k_cur->ne[1];
    const int64_t first    = n_items*params->ith/params->nth;
    const int64_t last     = n_items*(params->ith + 1)/params->nth;

    const packed16_mode mode = ggml_get_op_params_i32(dst, 0) == GGML_PACKED16_SCALE_MSE ? PACKED16_MSE : PACKED16_ABSMAX;

    for (int64_t i = first; i < last; i++) {
        const int64_t row = i/n_blocks;
        const int64_t b   = i%n_blocks;

        const int64_t cell   = ((const int64_t *) k_idxs->data)[row];
        const int64_t stream = cell/k_payload->ne[1];
        const int64_t index  = cell%k_payload->ne[1];

        GGML_ASSERT(cell >= 0 && stream < k_payload->ne[2]);

        const char * src = (const char *) k_cur->data + row*k_cur->nb[1];

        float         x[PACKED16_BLOCK];
        const float * px = (const float *) src + PACKED16_BLOCK*b;
        if (k_cur->type == GGML_TYPE_F16) {
            ggml_cpu_fp16_to_fp32((const ggml_fp16_t *) src + PACKED16_BLOCK*b, x, PACKED16_BLOCK);
            px = x;
        }

        int8_t         q[PACKED16_BLOCK];
        const uint16_t scale = packed16_quantize_block(px, mode, q);

        int32_t  * payload = (int32_t  *) ((char *) k_payload->data + index*k_payload->nb[1] + stream*k_payload->nb[2]);
        uint16_t * scales  = (uint16_t *) ((char *) k_scales->data  + index*k_scales->nb[1]  + stream*k_scales->nb[2]);

        for (int w = 0; w < PACKED16_BLOCK/4; w++) {
            const uint8_t * p = (const uint8_t *) q + 4*w;
            payload[PACKED16_BLOCK/4*b + w] = (int32_t) (p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24);
        }
        scales[b] = scale;
    }
}

void ggml_compute_forward_pack_k_packed16(const ggml_compute_params * params, ggml_tensor * dst) {
    if (params->use_ref) {
        packed16_ref_pack(params, dst);
        return;
    }
    packed16_pack(params, dst);
}

// GGML_OP_FLASH_ATTN_EXT with an I32 K

static void packed16_attention_forward(const ggml_compute_params * params, const ggml_tensor * dst) {
    const packed16_attention a(dst);

    float * scratch  = (float *) params->wdata + a.scratch_size()*params->ith;
    float * partials = (float *) params->wdata + a.scratch_size()*params->nth; // decode only

    GGML_ASSERT(params->wsize >= a.work_size(params->nth));

    const int64_t n_items = a.decode ? a.n_tiles*a.n_chunks : a.n_tiles;

    if (params->ith == 0) {
        ggml_threadpool_chunk_set(params->threadpool, params->nth);
    }
    ggml_barrier(params->threadpool);

    for (int64_t item = params->ith; item < n_items; item = ggml_threadpool_chunk_add(params->threadpool, 1)) {
        packed16_tile tile(a, a.decode ? item/a.n_chunks : item, scratch);
        tile.load_queries();

        if (a.decode) {
            tile.part = packed16_partial(partials + item*a.partial_size());
            tile.run(item%a.n_chunks);
            continue;
        }

        tile.total.clear(tile.n_rows, a.D);
        for (int64_t chunk = 0; chunk < a.n_chunks; chunk++) {
            tile.run(chunk);
            for (int row = 0; row < tile.n_rows; row++) {
                packed16_merge_row(tile.total, tile.part, row, a.D);
            }
        }
        for (int row = 0; row < tile.n_rows; row++) {
            tile.store_row(tile.total, row);
        }
    }

    if (!a.decode) {
        return;
    }

    ggml_barrier(params->threadpool);

    for (int64_t i = params->ith; i < a.n_tiles*packed16_attention::ROWS; i += params->nth) {
        packed16_tile tile(a, i/packed16_attention::ROWS, scratch);
        const int     row = (int) (i%packed16_attention::ROWS);
        if (row >= tile.n_rows) {
            continue;
        }
        tile.total.clear(tile.n_rows, a.D);
        for (int64_t chunk = 0; chunk < a.n_chunks; chunk++) {
            packed16_merge_row(tile.total, packed16_partial(partials + (i/packed16_attention::ROWS*a.n_chunks + chunk)*a.partial_size()), row, a.D);
        }
        tile.store_row(tile.total, row);
    }
}

// true when dst was a packed16 attention, and is done
static bool packed16_compute_attention(const ggml_compute_params * params, ggml_tensor * dst) {
    if (dst->src[1]->type != GGML_TYPE_I32) {
        return false;
    }
    const char * refusal = packed16_attention_refusal(dst);
    if (refusal != NULL) {
        GGML_ABORT("%s", refusal);
    }
    if (params->use_ref) {
        packed16_ref_attention(params, dst);
    } else {
        packed16_attention_forward(params, dst);
    }
    return true;
}

size_t ggml_packed16_work_size(const ggml_tensor * op, int n_tasks) {
    return packed16_is_attention(op) ? packed16_attention(op).work_size(n_tasks) : 0;
}
