#pragma once

// Cases that hold two results of one backend against each other.

#include "test-packed16-attention.h"

#include <numeric>

// The bits of a row do not depend on how many rows are asked for at once, up to 8: all rows in one call, against each row
// in a call of its own.
struct test_packed16_invariance : public test_flash_attn_packed16 {
    using test_flash_attn_packed16::test_flash_attn_packed16;

    std::string op_desc(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return "PACKED16_INVARIANCE";
    }

    bool run_whole_graph() override {
        return true;
    }

    double max_nmse_err() override {
        return 0.0;
    }

    // of the backend under test: how many values differ
    double err(const float * a, const float * b, size_t n) override {
        GGML_UNUSED(b);
        size_t n_different = 0;
        for (size_t i = 0; i < n/2; i++) {
            n_different += memcmp(a + i, a + n/2 + i, sizeof(float)) != 0;
        }
        return (double) n_different;
    }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        build_inputs(ctx);

        ggml_tensor * rows = nullptr;
        for (int64_t i = 0; i < nb; i++) {
            ggml_tensor * qi = ggml_view_4d(ctx, q, hs, 1, nh*gqa, ns, q->nb[1], q->nb[2], q->nb[3], i*q->nb[1]);
            ggml_tensor * mi = m ? ggml_view_4d(ctx, m, kv, 1, 1, ns, m->nb[1], m->nb[2], m->nb[3], i*m->nb[1]) : nullptr;
            ggml_tensor * oi = attend(ctx, qi, mi);
            rows = rows ? ggml_concat(ctx, rows, oi, 2) : oi;
        }

        ggml_tensor * out = ggml_concat(ctx, attend(ctx, q, m), rows, 3);
        ggml_set_name(out, "out");
        return out;
    }
};

// What packing costs: rows packed by the op and read by attention, against the same attention on the F16 rows.
struct test_packed16_against_f16 : public test_case {
    const int64_t                  hs;
    const ggml_packed16_scale_mode mode_s;

    static constexpr int64_t nh = 2, gqa = 6, kv = 512, nb = 4;

    std::string vars() override {
        const std::string scale = mode_s == GGML_PACKED16_SCALE_MSE ? "mse" : "absmax";
        return VARS_TO_STR2(hs, scale);
    }

    std::string op_desc(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return "PACKED16_AGAINST_F16";
    }

    bool run_whole_graph() override {
        return true;
    }

    double max_nmse_err() override {
        return 5e-4;
    }

    // each backend's packed half against its own F16 half
    double err(const float * a, const float * b, size_t n) override {
        return std::max(nmse(a + n/2, a, n/2), nmse(b + n/2, b, n/2));
    }

    test_packed16_against_f16(int64_t hs, ggml_packed16_scale_mode mode_s) : hs(hs), mode_s(mode_s) {}

    ggml_tensor * build_graph(ggml_context * ctx) override {
        ggml_tensor * q         = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, hs, nb, nh*gqa);
        ggml_tensor * k_cur     = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, hs*nh, kv);
        ggml_tensor * v         = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, hs*nh, kv);
        ggml_tensor * k_payload = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, hs*nh/4,  kv);
        ggml_tensor * k_scales  = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, hs*nh/32, kv);
        ggml_tensor * k_idxs    = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, kv);
        ggml_set_name(k_idxs, "k_idxs");

        const auto heads = [&](ggml_tensor * t, int64_t row_of_head) {
            return ggml_permute(ctx, ggml_view_3d(ctx, t, row_of_head, nh, kv, ggml_row_size(t->type, row_of_head), t->nb[1], 0), 0, 2, 1, 3);
        };

        ggml_tensor * packed = ggml_pack_k_packed16(ctx, k_payload, k_scales, k_cur, k_idxs);
        ggml_pack_k_packed16_set_scale_mode(packed, mode_s);

        const float   scale = 1.0f/sqrtf(hs);
        ggml_tensor * a = ggml_flash_attn_ext(ctx, q, heads(packed, hs/4), heads(v, hs), nullptr, scale, 0.0f, 0.0f);
        ggml_flash_attn_ext_add_k_scales(a, heads(k_scales, hs/32));

        ggml_tensor * b = ggml_flash_attn_ext(ctx, q, heads(k_cur, hs), heads(v, hs), nullptr, scale, 0.0f, 0.0f);
        ggml_flash_attn_ext_set_prec(b, GGML_PREC_F32);

        ggml_tensor * out = ggml_concat(ctx, a, b, 3);
        ggml_set_name(out, "out");
        return out;
    }

    void initialize_tensors(ggml_context * ctx) override {
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != NULL; t = ggml_get_next_tensor(ctx, t)) {
            if (strcmp(t->name, "k_idxs") == 0) {
                std::vector<int64_t> rows(kv);
                std::iota(rows.begin(), rows.end(), 0);
                ggml_backend_tensor_set(t, rows.data(), 0, kv*sizeof(int64_t));
            } else if (t->view_src == NULL && t->op == GGML_OP_NONE) {
                const float unit = sqrtf(3.0f); // uniform in +-sqrt(3) has variance 1
                init_tensor_uniform(t, -unit, unit);
            }
        }
    }
};
