#include "llama-packed16.h"

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "llama-arch.h"
#include "llama-hparams.h"
#include "llama-impl.h"
#include "llama-io.h"
#include "llama-model.h"

#include <cinttypes>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>

static constexpr int64_t PER_WORD  = 4;  // dimensions in one payload word
static constexpr int64_t PER_SCALE = 32; // dimensions under one scale

//
// layout
//

uint32_t llama_packed16_row_size(ggml_type type_k, uint32_t n_embd_k_gqa) {
    return type_k == LLAMA_TYPE_K_PACKED16 ? n_embd_k_gqa/PER_WORD : n_embd_k_gqa;
}

ggml_tensor * llama_packed16_new_scales(ggml_context * ctx, const ggml_tensor * k) {
    return ggml_new_tensor_3d(ctx, GGML_TYPE_F16, k->ne[0]*PER_WORD/PER_SCALE, k->ne[1], k->ne[2]);
}

std::vector<ggml_tensor *> llama_packed16_streams(ggml_context * ctx, ggml_tensor * k_scales) {
    std::vector<ggml_tensor *> res;
    for (int64_t s = 0; s < k_scales->ne[2]; ++s) {
        res.push_back(ggml_view_2d(ctx, k_scales, k_scales->ne[0], k_scales->ne[1], k_scales->nb[1], s*k_scales->nb[2]));
    }
    return res;
}

ggml_tensor * llama_packed16_view(ggml_context * ctx, ggml_tensor * t, int64_t n_head_kv, int64_t n_kv, uint32_t s0, uint32_t ns) {
    GGML_ASSERT(t->ne[0] % n_head_kv == 0);

    const int64_t ne0 = t->ne[0]/n_head_kv;

    return ggml_view_4d(ctx, t, ne0, n_head_kv, n_kv, ns, ggml_row_size(t->type, ne0), t->nb[1], t->nb[2], t->nb[2]*s0);
}

ggml_tensor * llama_packed16_cpy_k(ggml_context * ctx, ggml_tensor * k, ggml_tensor * k_scales, ggml_tensor * k_cur, ggml_tensor * k_idxs) {
    const int64_t n_embd_gqa = k_cur->ne[0]*k_cur->ne[1];
    const int64_t n_tokens   = k_cur->ne[2];

    GGML_ASSERT(n_embd_gqa == k->ne[0]*PER_WORD);
    GGML_ASSERT(ggml_row_size(k_cur->type, k_cur->ne[0]) == k_cur->nb[1]);

    // the heads of a token become one row, the streams of the cache one list of rows: k_idxs count through all of them
    k_cur    = ggml_view_2d   (ctx, k_cur, n_embd_gqa, n_tokens, k_cur->nb[2], 0);
    k        = ggml_reshape_2d(ctx, k,        k->ne[0],        k->ne[1]*k->ne[2]);
    k_scales = ggml_reshape_2d(ctx, k_scales, k_scales->ne[0], k_scales->ne[1]*k_scales->ne[2]);

    return ggml_pack_k_packed16(ctx, k, k_scales, k_cur, k_idxs);
}

//
// refusals
//

// V caches that the attention kernels read beside a packed K
static bool supports_type_v(ggml_type type_v) {
    return type_v == GGML_TYPE_F16 || type_v == GGML_TYPE_Q8_0 || type_v == GGML_TYPE_Q4_0;
}

static bool supports_head_size(uint32_t n_embd_head) {
    return n_embd_head == 64 || n_embd_head == 128 || n_embd_head == 256;
}

// Why no context of this model and these parameters can have a packed16 K cache; empty if one can.
static std::string refusal(const llama_model & model, const llama_context_params & params) {
    const auto & hparams = model.hparams;

    if (hparams.is_mla()) {
        return "multi-head latent attention keeps one latent row in place of K and V: use -ctk f16 or q8_0";
    }
    if (hparams.indexer_head_size > 0) {
        return "sparse attention reads the K cache through an indexer of its own: use -ctk f16";
    }
    if (hparams.attn_soft_cap || model.arch == LLM_ARCH_GROK) {
        return "attention logits are soft-capped: use -ctk q8_0";
    }
    if (hparams.f_max_alibi_bias > 0.0f) {
        return "attention uses ALiBi: use -ctk q8_0";
    }
    if (model.split_mode() == LLAMA_SPLIT_MODE_TENSOR) {
        return "split mode tensor cuts K rows between devices: use -sm layer";
    }
    if (!supports_type_v(params.type_v)) {
        return format("V cache type %s has no kernel beside it: use -ctv f16, q8_0 or q4_0", ggml_type_name(params.type_v));
    }
    if (params.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_DISABLED) {
        return "flash attention is off, and nothing else reads it: use -fa on, or -ctk q8_0";
    }

    return "";
}

bool llama_packed16_prepare(const llama_model & model, llama_context_params & params) {
    // a recurrent state is no K cache: the type has nothing to apply to
    if (llm_arch_is_recurrent(model.arch)) {
        LLAMA_LOG_INFO("%s: %s has no K cache, packed16 does not apply\n", __func__, model.arch_name().c_str());
        return true;
    }

    const std::string why = refusal(model, params);
    if (!why.empty()) {
        LLAMA_LOG_ERROR("%s: packed16 K cache refused for %s: %s\n", __func__, model.arch_name().c_str(), why.c_str());
        return false;
    }

    if (params.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_AUTO) {
        LLAMA_LOG_INFO("%s: enabling flash_attn since it is required for the packed16 K cache\n", __func__);
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    }

    return true;
}

// One K/V layer of the cache and the two operations on it, without data: what a device is asked about.
struct op_probe {
    ggml_context_ptr ctx;

    ggml_tensor * pack = nullptr;
    ggml_tensor * attn = nullptr;

    op_probe(const llama_hparams & hparams, uint32_t il, bool sinks, ggml_type type_v, int64_t n_kv, int64_t n_stream, int64_t n_q) {
        ggml_init_params ip = {
            /*.mem_size   =*/ 32*ggml_tensor_overhead(),
            /*.mem_buffer =*/ nullptr,
            /*.no_alloc   =*/ true,
        };
        ctx.reset(ggml_init(ip));

        const int64_t D         = hparams.n_embd_head_k(il);
        const int64_t n_head    = hparams.n_head(il);
        const int64_t n_head_kv = hparams.n_head_kv(il);

        ggml_tensor * k   = ggml_new_tensor_3d(ctx.get(), LLAMA_TYPE_K_PACKED16, D*n_head_kv/PER_WORD, n_kv, n_stream);
        ggml_tensor * ks  = llama_packed16_new_scales(ctx.get(), k);
        ggml_tensor * v   = ggml_new_tensor_4d(ctx.get(), type_v, D, n_head_kv, n_kv, n_stream);
        ggml_tensor * q   = ggml_new_tensor_4d(ctx.get(), GGML_TYPE_F32, D, n_head, n_q, n_stream);
        ggml_tensor * cur = ggml_new_tensor_3d(ctx.get(), GGML_TYPE_F32, D, n_head_kv, n_q*n_stream);
        ggml_tensor * idx = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I64, n_q*n_stream);
        ggml_tensor * m   = ggml_new_tensor_4d(ctx.get(), GGML_TYPE_F16, n_kv, n_q, 1, n_stream);

        pack = llama_packed16_cpy_k(ctx.get(), k, ks, cur, idx);

        k  = ggml_permute(ctx.get(), llama_packed16_view(ctx.get(), k,  n_head_kv, n_kv, 0, n_stream), 0, 2, 1, 3);
        ks = ggml_permute(ctx.get(), llama_packed16_view(ctx.get(), ks, n_head_kv, n_kv, 0, n_stream), 0, 2, 1, 3);
        v  = ggml_permute(ctx.get(), v, 0, 2, 1, 3);
        q  = ggml_permute(ctx.get(), q, 0, 2, 1, 3);

        attn = ggml_flash_attn_ext(ctx.get(), q, k, v, m, 1.0f, 0.0f, 0.0f);
        ggml_flash_attn_ext_add_sinks(attn, sinks ? ggml_new_tensor_1d(ctx.get(), GGML_TYPE_F32, n_head) : nullptr);
        ggml_flash_attn_ext_add_k_scales(attn, ks);
        ggml_flash_attn_ext_set_prec(attn, GGML_PREC_F32);
    }
};

void llama_packed16_check_layer(const llama_model & model, const llama_hparams & hparams, uint32_t il, ggml_type type_v,
        uint32_t kv_size, uint32_t n_stream, ggml_backend_dev_t dev) {
    const std::string where = format("packed16 K cache refused for %s: layer %u ", model.arch_name().c_str(), il);

    const uint32_t dk = hparams.n_embd_head_k(il);
    const uint32_t dv = hparams.n_embd_head_v(il);

    if (dk != dv) {
        throw std::runtime_error(where + format("has K heads of %u and V heads of %u dimensions: use -ctk q8_0", dk, dv));
    }
    if (!supports_head_size(dk)) {
        throw std::runtime_error(where + format("has heads of %u dimensions, not 64, 128 or 256: use -ctk q8_0", dk));
    }

    if (!dev) {
        dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    }

    const char * required = getenv("GGML_CUDA_FA_ROUTE_REQUIRE");
    if (required && required[0] != '\0' && ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU) {
        throw std::runtime_error(where + format("is on the CPU, which has no route %s: raise -ngl or unset GGML_CUDA_FA_ROUTE_REQUIRE", required));
    }

    // decode, the widest verify, prefill
    for (const int64_t n_q : { 1, 8, 512 }) {
        const op_probe probe(hparams, il, model.layers[il].attn_sinks != nullptr, type_v, kv_size, n_stream, n_q);

        for (const ggml_tensor * op : { probe.pack, probe.attn }) {
            if (!ggml_backend_dev_supports_op(dev, op)) {
                throw std::runtime_error(where + format("is on %s, which cannot run %s for D = %u, %u query and %u KV heads, V %s, %" PRId64 " rows: use -ctk q8_0",
                            ggml_backend_dev_name(dev), ggml_op_name(op->op), dk, hparams.n_head(il), hparams.n_head_kv(il), ggml_type_name(type_v), n_q));
            }
        }
    }
}

void llama_packed16_check_attn(const ggml_tensor * k, const ggml_tensor * k_scales, bool flash_attn, bool kq_b, bool v_mla, int il) {
    if (k->type != LLAMA_TYPE_K_PACKED16) {
        return;
    }
    if (!k_scales) {
        llama_packed16_refuse_plain_k(il);
    }
    if (kq_b || v_mla || !flash_attn) {
        throw std::runtime_error(format("packed16 K cache refused: layer %d %s: use -ctk q8_0", il,
                    kq_b  ? "adds a bias to its attention logits, which flash attention does not do" :
                    v_mla ? "decompresses V after attention (MLA)" : "attends without flash attention"));
    }
}

void llama_packed16_refuse_plain_k(int il) {
    throw std::runtime_error(format("packed16 K cache refused: this graph reads K of layer %d in a way of its own, without scales: use -ctk q8_0", il));
}

//
// state
//

void llama_packed16_state_write(llama_io_write_i & io, ggml_tensor * k_scales, const std::vector<std::pair<uint32_t, uint32_t>> & ranges) {
    const int32_t  type     = (int32_t) k_scales->type;
    const uint64_t size_row = k_scales->nb[1];

    io.write(&type,     sizeof(type));
    io.write(&size_row, sizeof(size_row));

    for (const auto & range : ranges) {
        io.write_tensor(k_scales, range.first*size_row, (range.second - range.first)*size_row);
    }
}

bool llama_packed16_state_read(llama_io_read_i & io, ggml_tensor * k_scales, uint32_t il, const std::vector<uint32_t> & idxs, bool contiguous) {
    const size_t size_row = k_scales->nb[1];

    int32_t  type_ref;
    uint64_t size_row_ref;

    io.read(&type_ref,     sizeof(type_ref));
    io.read(&size_row_ref, sizeof(size_row_ref));

    if (type_ref != (int32_t) k_scales->type || size_row_ref != size_row) {
        LLAMA_LOG_ERROR("%s: mismatched K scales (type %d with %zu bytes a cell instead of type %d with %zu, layer %u)\n", __func__,
                type_ref, (size_t) size_row_ref, (int) k_scales->type, size_row, il);
        return false;
    }

    if (contiguous && !idxs.empty()) {
        io.read_tensor(k_scales, idxs[0]*size_row, idxs.size()*size_row);
        return true;
    }

    for (const uint32_t idx : idxs) {
        io.read_tensor(k_scales, idx*size_row, size_row);
    }

    return true;
}

//
// start-up line
//

void llama_packed16_log(size_t payload, size_t scales, size_t v, ggml_type type_v, uint32_t n_cells, size_t n_layers) {
    LLAMA_LOG_INFO("%s: packed16 K, %s V: %zu bytes (K payload %zu + K scales %zu + V %zu; %u cells, %zu layers, no f16 K)\n", __func__,
            ggml_type_name(type_v), payload + scales + v, payload, scales, v, n_cells, n_layers);
}
