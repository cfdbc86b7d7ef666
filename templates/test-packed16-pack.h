#pragma once

#include "test-packed16-data.h"

// GGML_OP_PACK_K_PACKED16
//
// An I32 payload does not survive the comparison as floats, and a NaN scale is a result here and not a fault. So both cache
// tensors are compared byte for byte, as this framework's sentinels are: with that, rows that nobody wrote count as well.
struct test_pack_k_packed16 : public test_case {
    const ggml_type                type;     // of k_cur
    const int64_t                  n_embd;   // all heads of a token
    const int64_t                  n_rows;   // per stream
    const int64_t                  n_stream;
    const int64_t                  n_tokens;
    const ggml_packed16_scale_mode mode_s;
    const std::string              data;     // normal, outliers, edges
    const bool                     view;     // k_cur is part of a larger row, as in a fused QKV

    std::string vars() override {
        const std::string scale = mode_s == GGML_PACKED16_SCALE_MSE ? "mse" : "absmax";
        return VARS_TO_STR8(type, n_embd, n_rows, n_stream, n_tokens, scale, data, view);
    }

    double max_nmse_err() override {
        return 0.0;
    }

    // what one call moves: not the whole cache
    size_t op_size(ggml_tensor * t) override {
        GGML_UNUSED(t);
        return n_tokens*(ggml_row_size(type, n_embd) + n_embd + n_embd/16);
    }

    test_pack_k_packed16(ggml_type type, int64_t n_embd, int64_t n_rows, int64_t n_stream, int64_t n_tokens,
                         ggml_packed16_scale_mode mode_s, const std::string & data, bool view)
        : type(type), n_embd(n_embd), n_rows(n_rows), n_stream(n_stream), n_tokens(n_tokens), mode_s(mode_s), data(data), view(view) {}

    ggml_tensor * build_graph(ggml_context * ctx) override {
        const int64_t pad = view ? 64 : 0;

        ggml_tensor * mem = ggml_new_tensor_2d(ctx, type, n_embd + 2*pad, n_tokens);
        ggml_set_name(mem, "k_cur");
        ggml_tensor * k_cur = ggml_view_2d(ctx, mem, n_embd, n_tokens, mem->nb[1], pad*ggml_type_size(type));

        ggml_tensor * k_idxs = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_tokens);
        ggml_set_name(k_idxs, "k_idxs");

        ggml_tensor * k_payload = ggml_new_tensor_3d(ctx, GGML_TYPE_I32, n_embd/4, n_rows, n_stream);
        ggml_set_name(k_payload, "k_payload");

        // I16 memory under the F16 scales, because a NaN in F16 fails a test
        ggml_tensor * scale_mem = ggml_new_tensor_3d(ctx, GGML_TYPE_I16, n_embd/32, n_rows, n_stream);
        ggml_set_name(scale_mem, "k_scales");
        ggml_tensor * k_scales = ggml_view_3d(ctx, scale_mem, n_embd/32, n_rows, n_stream, scale_mem->nb[1], scale_mem->nb[2], 0);
        k_scales->type = GGML_TYPE_F16;

        if (mode == MODE_TEST) {
            sentinels.push_back(k_payload);
            sentinels.push_back(scale_mem);
        }

        ggml_tensor * out = ggml_pack_k_packed16(ctx, k_payload, k_scales, k_cur, k_idxs);
        ggml_pack_k_packed16_set_scale_mode(out, mode_s);
        ggml_set_name(out, "out");
        return out;
    }

    void initialize_tensors(ggml_context * ctx) override {
        packed16_random rnd(vars());

        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != NULL; t = ggml_get_next_tensor(ctx, t)) {
            if (t->view_src != NULL) {
                continue;
            }
            if (strcmp(t->name, "k_cur") == 0) {
                init_rows(rnd, t);
            } else if (strcmp(t->name, "k_idxs") == 0) {
                std::vector<int64_t> rows(n_rows*n_stream);
                for (size_t i = 0; i < rows.size(); i++) {
                    rows[i] = (int64_t) i;
                }
                rnd.shuffle(rows);
                ggml_backend_tensor_set(t, rows.data(), 0, n_tokens*sizeof(int64_t));
            } else {
                init_tensor_uniform(t);
            }
        }
    }

    void init_rows(packed16_random & rnd, ggml_tensor * t) const {
        const packed16_channels channels(rnd, t->ne[0]);

        std::vector<float> x(ggml_nelements(t));
        for (int64_t row = 0; row < t->ne[1]; row++) {
            float * p = x.data() + row*t->ne[0];
            if (data == "edges") {
                for (int64_t b = 0; b < t->ne[0]/PACKED16_BLOCK; b++) {
                    packed16_edge_block(rnd, row*(t->ne[0]/PACKED16_BLOCK) + b, p + b*PACKED16_BLOCK);
                }
            } else if (data == "outliers") {
                channels.row(rnd, p);
            } else {
                for (int64_t i = 0; i < t->ne[0]; i++) {
                    p[i] = rnd.normal();
                }
            }
        }
        if (t->type == GGML_TYPE_F32) {
            ggml_backend_tensor_set(t, x.data(), 0, x.size()*sizeof(float));
        } else {
            std::vector<ggml_fp16_t> h(x.size());
            ggml_fp32_to_fp16_row(x.data(), h.data(), (int64_t) x.size());
            ggml_backend_tensor_set(t, h.data(), 0, h.size()*sizeof(ggml_fp16_t));
        }
    }
};
