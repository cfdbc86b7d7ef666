#pragma once

#include "test-packed16-data.h"

#if __has_include("../ggml/src/ggml-cuda/packed16-config.h")
#include "../ggml/src/ggml-cuda/packed16-config.h"
#else // no GPU backend of ours: nothing is unpacked
#define PACKED16_MAX_DECODE_NQ        8
#define PACKED16_PREFILL_F16_BELOW(d) 0
#endif // __has_include

#include <map>

// Which cell which row may see. The last 1/16 of the cells is padding that no row sees, except with `none` and `bias`.
enum packed16_mask {
    MASK_NONE,     // no mask tensor
    MASK_CAUSAL,   // cells in order of position
    MASK_SLOTS,    // causal, but positions lie scattered over the cells as they do after slots have been reused
    MASK_WINDOW,   // sliding window: a lower edge too
    MASK_SEQS,     // rows and cells of three sequences, mixed
    MASK_DEAD,     // causal, and every other row sees nothing
    MASK_BIAS,     // finite values, with blocks of -inf: what upstream's own cases use
};

static std::string packed16_mask_name(packed16_mask mask) {
    static const char * names[] = { "none", "causal", "slots", "window", "seqs", "dead_rows", "bias" };
    return names[mask];
}

// GGML_OP_FLASH_ATTN_EXT on the layout of the KV cache: heads of a cell next to each other, the visible cells a view of
// more cells, the sequences a view of more streams. Everything that no row may see holds NaN.
struct test_flash_attn_packed16 : public test_case {
    const ggml_type     type_K; // PACKED16, or another one to compare speed with
    const ggml_type     type_V;
    const int64_t       hs;     // head size
    const int64_t       nh;     // KV heads
    const int64_t       gqa;
    const int64_t       kv;
    const int64_t       nb;     // query rows
    const int64_t       ns;     // ne[3]: sequences with a stream each
    const packed16_mask mask;
    const bool          sinks;

    std::string vars() override {
        const std::string K = packed16_type_name(type_K);
        const std::string V = packed16_type_name(type_V);
        const std::string m = packed16_mask_name(mask);
        return VARS_TO_STR10(K, V, hs, nh, gqa, kv, nb, ns, m, sinks);
    }

    // Whether a backend may have this prefill unpacked to f16, for a kernel with f16 sums.
    bool unpacks() const {
        return type_K == PACKED16 && nb > PACKED16_MAX_DECODE_NQ && kv < PACKED16_PREFILL_F16_BELOW(hs);
    }

    double max_nmse_err() override {
        return unpacks() ? 5e-4 : type_V == GGML_TYPE_F16 ? 1e-6 : 1e-5; // the first is upstream's bound for attention
    }

    uint64_t op_flops(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return 2*nh*gqa*nb*2*hs*kv*ns;
    }

    test_flash_attn_packed16(ggml_type type_K, ggml_type type_V, int64_t hs, int64_t nh, int64_t gqa, int64_t kv, int64_t nb,
                             int64_t ns, packed16_mask mask, bool sinks = false)
        : type_K(type_K), type_V(type_V), hs(hs), nh(nh), gqa(gqa), kv(kv), nb(nb), ns(ns), mask(mask), sinks(sinks) {}

    int64_t n_cells()   const { return kv + 64; }
    int64_t n_streams() const { return ns + 1; }

    ggml_tensor * new_cache(ggml_context * ctx, ggml_type type, int64_t row_of_head, const char * name) {
        ggml_tensor * t = ggml_new_tensor_3d(ctx, type, row_of_head*nh, n_cells(), n_streams());
        ggml_set_name(t, name);
        return t;
    }

    // the cells of all streams but the first, as [row_of_head, kv, nh, ns]
    ggml_tensor * cache_view(ggml_context * ctx, ggml_tensor * t, int64_t row_of_head) const {
        t = ggml_view_4d(ctx, t, row_of_head, nh, kv, ns, ggml_row_size(t->type, row_of_head), t->nb[1], t->nb[2], t->nb[2]);
        return ggml_permute(ctx, t, 0, 2, 1, 3);
    }

    // set by build_inputs: views as attention takes them
    ggml_tensor * q        = nullptr;
    ggml_tensor * k        = nullptr;
    ggml_tensor * v        = nullptr;
    ggml_tensor * m        = nullptr;
    ggml_tensor * s        = nullptr;
    ggml_tensor * k_scales = nullptr;

    void build_inputs(ggml_context * ctx) {
        q = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, hs, nh*gqa, nb, ns);
        ggml_set_name(q, "q");
        q = ggml_permute(ctx, q, 0, 2, 1, 3);

        const int64_t k_row = type_K == PACKED16 ? hs/4 : hs;

        k = cache_view(ctx, new_cache(ctx, type_K, k_row, "k"), k_row);
        v = cache_view(ctx, new_cache(ctx, type_V, hs,    "v"), hs);
        if (type_K == PACKED16) {
            k_scales = cache_view(ctx, new_cache(ctx, GGML_TYPE_F16, hs/32, "k_scales"), hs/32);
        }
        if (mask != MASK_NONE) {
            m = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, kv, nb, 1, ns);
            ggml_set_name(m, "m");
        }
        if (sinks) {
            s = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, nh*gqa);
            ggml_set_name(s, "s");
        }
    }

    ggml_tensor * attend(ggml_context * ctx, ggml_tensor * q, ggml_tensor * m) const {
        ggml_tensor * out = ggml_flash_attn_ext(ctx, q, k, v, m, 1.0f/sqrtf(hs), 0.0f, 0.0f);
        if (k_scales) {
            ggml_flash_attn_ext_add_k_scales(out, k_scales);
        }
        ggml_flash_attn_ext_add_sinks(out, s);
        ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
        return out;
    }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        build_inputs(ctx);
        ggml_tensor * out = attend(ctx, q, m);
        ggml_set_name(out, "out");
        return out;
    }

    void initialize_tensors(ggml_context * ctx) override {
        packed16_random rnd(vars());

        const std::vector<ggml_fp16_t> m    = make_mask(rnd);
        const std::vector<bool>        seen = seen_cells(m);

        std::map<std::string, ggml_tensor *> tensors;
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != NULL; t = ggml_get_next_tensor(ctx, t)) {
            if (t->view_src == NULL && t->op == GGML_OP_NONE) {
                tensors[t->name] = t;
                if (strncmp(t->name, "sent_", 5) == 0) {
                    init_tensor_uniform(t);
                }
            }
        }

        std::vector<float> q(ggml_nelements(tensors["q"]));
        for (float & x : q) {
            x = 2.0f*rnd.normal(); // peaked enough that the wrong cell shows
        }
        if (unpacks()) { // such a kernel takes Q as it is: values that are the same after they were quantised
            for (size_t i = 0; i < q.size(); i++) {
                q[i] = i % PACKED16_BLOCK == 0 ? 127.0f/16 : std::max(-127.0f, std::min(127.0f, roundf(16.0f*q[i])))/16;
            }
        }
        ggml_backend_tensor_set(tensors["q"], q.data(), 0, q.size()*sizeof(float));

        if (mask != MASK_NONE) {
            ggml_backend_tensor_set(tensors["m"], m.data(), 0, m.size()*sizeof(ggml_fp16_t));
        }
        if (sinks) {
            init_tensor_uniform(tensors["s"], -4.0f, 8.0f);
        }
        init_cache(rnd, seen, type_K, tensors["k"], type_K == PACKED16 ? tensors["k_scales"] : nullptr);
        init_cache(rnd, seen, type_V, tensors["v"], nullptr);
    }

    // [ns][nb][kv]
    std::vector<ggml_fp16_t> make_mask(packed16_random & rnd) const {
        const ggml_fp16_t dead = ggml_fp32_to_fp16(-INFINITY);
        const ggml_fp16_t zero = ggml_fp32_to_fp16(0.0f);

        const int64_t n_used = mask == MASK_BIAS ? kv : std::max(nb, kv - kv/16);
        const int64_t window = std::max<int64_t>(1, n_used/3);
        const int64_t n_seqs = mask == MASK_SEQS ? 3 : 1;

        std::vector<ggml_fp16_t> m;
        if (mask == MASK_NONE) {
            return m;
        }
        m.assign(ns*nb*kv, dead);

        for (int64_t s = 0; s < ns; s++) {
            std::vector<int64_t> pos(std::min(n_used, kv)); // of each cell
            for (size_t i = 0; i < pos.size(); i++) {
                pos[i] = (int64_t) i;
            }
            if (mask == MASK_SLOTS) {
                rnd.shuffle(pos);
            }
            for (int64_t row = 0; row < nb; row++) {
                ggml_fp16_t * dst   = m.data() + (s*nb + row)*kv;
                const int64_t here  = n_used - nb + row - s; // the streams are not equally long
                const int64_t block = rnd.below(kv);
                if (mask == MASK_DEAD && row % 2 == 0) {
                    continue;
                }
                for (size_t c = 0; c < pos.size(); c++) {
                    bool see = pos[c] <= std::max<int64_t>(here, 0);
                    see = see && (mask != MASK_WINDOW || pos[c] > here - window);
                    see = see && (int64_t) (c/5)%n_seqs == row%n_seqs;
                    if (mask == MASK_BIAS) {
                        see = (int64_t) c < block || (int64_t) c >= block + kv/8;
                    }
                    if (see) {
                        dst[c] = mask == MASK_BIAS ? ggml_fp32_to_fp16(rnd.normal()) : zero;
                    }
                }
            }
        }
        return m;
    }

    // [ns][kv]: cells that a row of the stream may see
    std::vector<bool> seen_cells(const std::vector<ggml_fp16_t> & m) const {
        std::vector<bool> seen(ns*kv, mask == MASK_NONE);
        const ggml_fp16_t dead = ggml_fp32_to_fp16(-INFINITY);
        for (size_t i = 0; i < m.size(); i++) {
            if (m[i] != dead) {
                seen[i/kv/nb*kv + i%kv] = true;
            }
        }
        return seen;
    }

    void init_cache(packed16_random & rnd, const std::vector<bool> & seen, ggml_type type, ggml_tensor * t, ggml_tensor * scales) {
        constexpr int64_t n_distinct = 2048; // rows; a deep cache repeats them

        const int64_t n     = hs*nh;
        const size_t  row   = t->nb[1];
        const size_t  s_row = scales ? scales->nb[1] : 0;

        // all bits set is NaN in every f16 here: as a V value, as the scale of a q8_0, q4_0 or packed16 block
        std::vector<uint8_t> data(ggml_nbytes(t), 0xFF);
        std::vector<uint8_t> data_s(scales ? ggml_nbytes(scales) : 0, 0xFF);
        std::vector<uint8_t> pool(n_distinct*row);
        std::vector<uint8_t> pool_s(n_distinct*s_row);

        const packed16_channels channels(rnd, n);
        std::vector<float>      x(n);
        for (int64_t i = 0; i < std::min(n_distinct, ns*kv); i++) {
            channels.row(rnd, x.data());
            if (type == PACKED16) {
                for (int64_t b = 0; b < n/PACKED16_BLOCK; b++) {
                    ((uint16_t *) &pool_s[i*s_row])[b] = packed16_quantize_block(&x[b*PACKED16_BLOCK], PACKED16_ABSMAX, (int8_t *) &pool[i*row + b*PACKED16_BLOCK]);
                }
            } else if (ggml_is_quantized(type)) {
                ggml_quantize_chunk(type, x.data(), &pool[i*row], 0, 1, n, nullptr);
            } else {
                ggml_fp32_to_fp16_row(x.data(), (ggml_fp16_t *) &pool[i*row], n);
            }
        }
        for (int64_t s = 0; s < ns; s++) {
            for (int64_t c = 0; c < kv; c++) {
                if (seen[s*kv + c]) {
                    const int64_t from = (s*kv + c) % n_distinct;
                    const int64_t to   = (s + 1)*n_cells() + c;
                    memcpy(&data[to*row], &pool[from*row], row);
                    if (scales) {
                        memcpy(&data_s[to*s_row], &pool_s[from*s_row], s_row);
                    }
                }
            }
        }
        ggml_backend_tensor_set(t, data.data(), 0, data.size());
        if (scales) {
            ggml_backend_tensor_set(scales, data_s.data(), 0, data_s.size());
        }
    }
};
