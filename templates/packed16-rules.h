#pragma once

// What packed16 attention and packing can do, in one place: every backend asks here before it looks at its own limits.
// Each function returns NULL when the op is fine, and otherwise the reason in words that a user can act on.

#include "ggml.h"

#include <string.h>

static inline bool packed16_is_attention(const struct ggml_tensor * op) {
    return op->op == GGML_OP_FLASH_ATTN_EXT && op->src[1]->type == GGML_TYPE_I32;
}

static inline const char * packed16_attention_refusal(const struct ggml_tensor * op) {
    const struct ggml_tensor * q        = op->src[0];
    const struct ggml_tensor * k        = op->src[1];
    const struct ggml_tensor * v        = op->src[2];
    const struct ggml_tensor * mask     = op->src[3];
    const struct ggml_tensor * k_scales = op->src[5];

    const int64_t head_size = q->ne[0];

    if (k_scales == NULL) {
        return "the I32 K has no scales: add them with ggml_flash_attn_ext_add_k_scales";
    }
    if (head_size != 64 && head_size != 128 && head_size != 256) {
        return "packed16 K needs a head size of 64, 128 or 256: use -ctk q8_0 for this model";
    }
    if (v->ne[0] != head_size) {
        return "packed16 K needs K and V heads of one size: use -ctk q8_0 for this model";
    }
    if (v->type != GGML_TYPE_F16 && v->type != GGML_TYPE_Q8_0 && v->type != GGML_TYPE_Q4_0) {
        return "packed16 K needs a V cache of type f16, q8_0 or q4_0: set -ctv to one of them";
    }
    if (q->type != GGML_TYPE_F32) {
        return "packed16 K needs an F32 Q";
    }
    if (v->ne[1] != k->ne[1] || v->ne[2] != k->ne[2] || q->ne[2] % k->ne[2] != 0) {
        return "packed16 K needs as many V cells and heads as K has, and a whole number of query heads for each";
    }
    if (q->ne[2]/k->ne[2] > 16) {
        return "packed16 K takes at most 16 query heads per KV head: use -ctk q8_0 for this model";
    }
    if (q->nb[0] != sizeof(float) || k->nb[0] != sizeof(int32_t) || v->nb[0] != ggml_type_size(v->type)) {
        return "packed16 K needs contiguous Q, K and V rows (V not transposed)";
    }
    if (mask != NULL && (mask->type != GGML_TYPE_F16 || mask->ne[0] < k->ne[1] || mask->ne[1] < q->ne[1])) {
        return "packed16 K needs an F16 mask that covers all cells and rows";
    }
    float max_bias;
    float logit_softcap;
    memcpy(&max_bias,      op->op_params + 1, sizeof(float));
    memcpy(&logit_softcap, op->op_params + 2, sizeof(float));
    if (max_bias != 0.0f) {
        return "packed16 K has no ALiBi (max_bias): use -ctk q8_0 for this model";
    }
    if (logit_softcap != 0.0f) {
        return "packed16 K has no logit softcap: use -ctk q8_0 for this model";
    }
    return NULL;
}

static inline const char * packed16_pack_refusal(const struct ggml_tensor * op) {
    const struct ggml_tensor * k_cur     = op->src[0];
    const struct ggml_tensor * k_payload = op->src[2];
    const struct ggml_tensor * k_scales  = op->src[3];

    if (k_cur->type != GGML_TYPE_F32 && k_cur->type != GGML_TYPE_F16) {
        return "packed16 packs F32 or F16 rows only";
    }
    if (k_cur->ne[0] != 32*k_scales->ne[0] || k_cur->ne[0] != 4*k_payload->ne[0]) {
        return "the packed16 cache rows do not have the size of the K rows";
    }
    return NULL;
}

// NULL for every op that is not about packed16
static inline const char * packed16_refusal(const struct ggml_tensor * op) {
    if (op->op == GGML_OP_PACK_K_PACKED16) {
        return packed16_pack_refusal(op);
    }
    return packed16_is_attention(op) ? packed16_attention_refusal(op) : NULL;
}

#ifdef __cplusplus

#include "ggml-impl.h"

#include <atomic>

// for a backend's supports_op: false with a line in the log, which is not repeated while the reason stays the same
static inline bool packed16_supported(const struct ggml_tensor * op, const char * backend) {
    static std::atomic<const char *> last_reason = { nullptr };

    const char * reason = packed16_refusal(op);
    if (reason != NULL && last_reason.exchange(reason) != reason) {
        GGML_LOG_WARN("%s: %s is not supported: %s\n", backend, ggml_op_name(op->op), reason);
    }
    return reason == NULL;
}

#endif
