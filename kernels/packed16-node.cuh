#pragma once

// From a FLASH_ATTN_EXT node to the shape that decides its route, to kernel arguments, and to scratch. Host code of
// packed16-fattn.cu, after packed16-routes.h.

#include "packed16-launch.cuh"

static bool packed16_aligned(const ggml_tensor * t, const size_t n) {
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        if (t->ne[i] > 1 && t->nb[i] % n != 0) {
            return false;
        }
    }
    return t->view_offs % n == 0;
}

// The most bytes, up to 16, that divide a row.
static size_t packed16_row_alignment(const ggml_tensor * t) {
    const size_t row = ggml_row_size(t->type, t->ne[0]);
    return row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : row % 4 == 0 ? 4 : 2;
}

static packed16_v_kind packed16_kind_of_v(const ggml_type type) {
    switch (type) {
        case GGML_TYPE_F16:  return PACKED16_V_F16;
        case GGML_TYPE_Q8_0: return PACKED16_V_Q8_0;
        case GGML_TYPE_Q4_0: return PACKED16_V_Q4_0;
        default:             return PACKED16_V_OTHER;
    }
}

static packed16_shape packed16_shape_of(const ggml_tensor * dst) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];

    packed16_shape s = {};
    s.k   = K->type == GGML_TYPE_I32 ? PACKED16_K_PACKED : K->type == GGML_TYPE_F16 ? PACKED16_K_F16 : PACKED16_K_OTHER;
    s.v   = packed16_kind_of_v(V->type);
    s.nq  = Q->ne[1];
    s.nk  = K->ne[1];
    s.d   = Q->ne[0];
    s.dv  = V->ne[0];
    s.gqa = Q->ne[2] % K->ne[2] == 0 ? Q->ne[2]/K->ne[2] : 0;

    s.max_bias    = ggml_get_op_params_f32(dst, 1) != 0.0f;
    s.softcap     = ggml_get_op_params_f32(dst, 2) != 0.0f;
    s.other_mask  = mask && (mask->type != GGML_TYPE_F16 || mask->ne[2] != 1 || mask->nb[0] != sizeof(ggml_fp16_t));
    s.shared_mask = mask && mask->ne[3] != Q->ne[3];

    // Q, K payload and V are copied up to 16 bytes at a time, as the rows of a head allow, K scales a row of a head at a time
    s.misaligned = !packed16_aligned(Q, 16) || !packed16_aligned(K, 16) || !packed16_aligned(V, packed16_row_alignment(V));
    if (s.k == PACKED16_K_PACKED) {
        s.misaligned = s.misaligned || !dst->src[5] || !packed16_aligned(dst->src[5], Q->ne[0]/16);
    }
    return s;
}

// Scratch behind the result. One after the other, each on 128 bytes.
struct packed16_scratch {
    size_t end;

    size_t take(const size_t size) {
        const size_t at = GGML_PAD(end, 128);
        end = at + size;
        return at;
    }
};

struct packed16_scratch_layout {
    size_t q_payload, q_scales, packed_payload, packed_scales, parts, meta, ends, classes, unpacked_k, unpacked_v, unpacked_sinks;
};

// Of K and V unpacked to f16.
static packed16_scratch_layout packed16_place_unpacked(packed16_scratch & scratch, const packed16_args & a, const int n_seq, const packed16_shape & s) {
    packed16_scratch_layout at = {};
    const size_t size = (size_t) n_seq*a.n_head_kv*a.nk*s.d*sizeof(half);
    at.unpacked_k     = scratch.take(size);
    at.unpacked_v     = scratch.take(size);
    at.unpacked_sinks = scratch.take((a.n_head + 31)*sizeof(float)); // that kernel reads up to a tile of heads past the last one
    return at;
}

// Of all other calls. nsm_mma: multiprocessors for the matrix-tile prefill, 0 where that is not asked for.
static packed16_scratch_layout packed16_place(
        packed16_scratch & scratch, const packed16_args & a, const int n_seq, const int D, const bool prefill, const bool f16_k, const int nsm_mma) {
    packed16_scratch_layout at = {};
    // the prefill kernels read up to a tile past the last row
    const size_t n_rows = (size_t) n_seq*a.n_head*a.nq + (prefill ? std::max(PACKED16_BM, PACKED16_MMA_MAX_COLS) : 0);
    at.q_payload = scratch.take(n_rows*D);
    at.q_scales  = scratch.take(n_rows*(D/PACKED16_SCALE_BLOCK)*sizeof(float));
    if (f16_k) {
        const size_t n_cells = (size_t) n_seq*a.n_head_kv*a.nk;
        at.packed_payload = scratch.take(n_cells*D);
        at.packed_scales  = scratch.take(n_cells*(D/PACKED16_SCALE_BLOCK)*sizeof(half));
    }
    if (nsm_mma > 0) {
        const packed16_prefill_scratch need = packed16_prefill_scratch_of(a, n_seq, D, nsm_mma);
        at.classes = scratch.take(need.classes);
        at.parts   = scratch.take(need.parts*D*sizeof(float));
        at.meta    = scratch.take(need.parts*sizeof(float2));
        at.ends    = scratch.take(need.items*sizeof(int2));
    } else if (prefill) {
        at.classes = scratch.take((size_t) packed16_class_stride(a.nk, PACKED16_BN)*((a.nq + PACKED16_BM - 1)/PACKED16_BM)*a.n_mask3);
    } else {
        const size_t n_parts = (size_t) n_seq*a.n_head_kv*a.n_units*a.nq*a.gqa;
        at.parts = scratch.take(n_parts*D*sizeof(float));
        at.meta  = scratch.take(n_parts*sizeof(float2));
    }
    return at;
}

static packed16_args packed16_args_of(const ggml_tensor * dst) {
    const ggml_tensor * Q    = dst->src[0];
    const ggml_tensor * K    = dst->src[1];
    const ggml_tensor * V    = dst->src[2];
    const ggml_tensor * mask = dst->src[3];
    const ggml_tensor * S    = dst->src[5];

    packed16_args a = {};
    a.nk        = K->ne[1];
    a.nq        = Q->ne[1];
    a.n_head    = Q->ne[2];
    a.n_head_kv = K->ne[2];
    a.gqa       = Q->ne[2]/K->ne[2];
    a.n_mask3   = mask ? mask->ne[3] : 1;

    a.nbk1 = K->nb[1];
    a.nbk2 = K->nb[2];
    a.nbk3 = K->nb[3];
    a.nbv1 = V->nb[1];
    a.nbv2 = V->nb[2];
    a.nbv3 = V->nb[3];
    if (S && K->type == GGML_TYPE_I32) {
        a.nbs1 = S->nb[1];
        a.nbs2 = S->nb[2];
        a.nbs3 = S->nb[3];
    }
    if (mask) {
        a.nbm1 = mask->nb[1];
        a.nbm3 = mask->nb[3];
    }
    return a;
}
