#pragma once

// The perf cases of packed16: attention on packed16 K next to what upstream offers for the same rows and mask, packing, and
// a copy that shows what the memory does. Environment:
//
//   PACKED16_PERF_SHAPES  "D,n_head_kv,gqa,nk,nq;..." instead of the shapes below
//   PACKED16_PERF_CACHES  "K/V,..." instead of the pairs below, timed in this order
//   PACKED16_PERF_MS      least time of a case in ms instead of a second, in graphs of at most 1000 calls
//   PACKED16_PERF_CALLS   so many times the calls in a graph that upstream would put there: what a graph itself costs is
//                         then little beside them on a fast GPU
//   PACKED16_PERF_WARM    untimed runs of each graph. On a GPU the second one captures it, which a program that generates
//                         text does once for thousands of replays: with 2, the time is that of a replay

#include "test-packed16-attention.h"

#include <cstdlib>
#include <sstream>

// Cheap to set up at great depth: no padding to check, so no second stream.
struct test_packed16_perf : public test_flash_attn_packed16 {
    using test_flash_attn_packed16::test_flash_attn_packed16;

    void initialize_tensors(ggml_context * ctx) override {
        packed16_random rnd(vars());
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != NULL; t = ggml_get_next_tensor(ctx, t)) {
            if (t->view_src != NULL || t->op != GGML_OP_NONE) {
                continue;
            }
            const std::string name = t->name;
            if (name == "m") {
                set_mask(t);
            } else if (name == "k" || name == "v") {
                set_rows(rnd, name == "k" ? type_K : type_V, t, name == "k" && type_K == PACKED16 ? ggml_get_tensor(ctx, "k_scales") : nullptr);
            } else if (name == "q") {
                init_tensor_uniform(t, -3.5f, 3.5f);
            }
        }
    }

    // decides the calls in a graph, and nothing else that is used
    uint64_t op_flops(ggml_tensor * t) override {
        const uint64_t flops = test_flash_attn_packed16::op_flops(t);
        if (!getenv("PACKED16_PERF_MS")) {
            return flops;
        }
        const int calls = getenv("PACKED16_PERF_CALLS") ? std::max(1, atoi(getenv("PACKED16_PERF_CALLS"))) : 1;
        return std::max<uint64_t>(flops/calls, 100*1000*1000);
    }

  private:
    // cells in order of position, the last row at the end of the context
    void set_mask(ggml_tensor * t) const {
        std::vector<ggml_fp16_t> m(nb*kv, ggml_fp32_to_fp16(-INFINITY));
        const int64_t n_used = std::max(nb, kv - kv/16);
        for (int64_t row = 0; row < nb; row++) {
            std::fill_n(m.begin() + row*kv, std::min(kv, n_used - nb + row + 1), ggml_fp32_to_fp16(0.0f));
        }
        for (int64_t s = 0; s < ns; s++) {
            ggml_backend_tensor_set(t, m.data(), s*m.size()*sizeof(ggml_fp16_t), m.size()*sizeof(ggml_fp16_t));
        }
    }

    void set_rows(packed16_random & rnd, ggml_type type, ggml_tensor * t, ggml_tensor * scales) const {
        constexpr int64_t n_distinct = 2048; // a deep cache repeats them

        const int64_t n     = hs*nh;
        const int64_t rows  = ggml_nrows(t);
        const size_t  row   = t->nb[1];
        const size_t  s_row = scales ? scales->nb[1] : 0;

        std::vector<uint8_t> pool(n_distinct*row), pool_s(n_distinct*s_row);

        const packed16_channels channels(rnd, n);
        std::vector<float>      x(n);
        for (int64_t i = 0; i < std::min(n_distinct, rows); i++) {
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
        for (int64_t i = 0; i < rows; i += n_distinct) {
            const int64_t here = std::min(n_distinct, rows - i);
            ggml_backend_tensor_set(t, pool.data(), i*row, here*row);
            if (scales) {
                ggml_backend_tensor_set(scales, pool_s.data(), i*s_row, here*s_row);
            }
        }
    }
};

// a copy much larger than any cache: bytes read and written
struct test_packed16_copy : public test_case {
    static constexpr int64_t n_row = 1 << 16;
    static constexpr int64_t rows  = 1 << 10;

    std::string vars() override {
        const int64_t packed16_copy_bytes = 2*n_row*rows*(int64_t) sizeof(float);
        return VAR_TO_STR(packed16_copy_bytes);
    }

    ggml_tensor * build_graph(ggml_context * ctx) override {
        ggml_tensor * a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_row, rows);
        ggml_tensor * b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_row, rows);
        return ggml_cpy(ctx, a, b);
    }

    void initialize_tensors(ggml_context * ctx) override {
        std::vector<float> x(n_row, 1.0f);
        for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != NULL; t = ggml_get_next_tensor(ctx, t)) {
            for (int64_t i = 0; i < rows && t->view_src == NULL; i++) {
                ggml_backend_tensor_set(t, x.data(), i*t->nb[1], t->nb[1]);
            }
        }
    }
};

static ggml_type packed16_perf_type(const std::string & name) {
    for (ggml_type type : { PACKED16, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 }) {
        if (packed16_type_name(type) == name) {
            return type;
        }
    }
    GGML_ABORT("PACKED16_PERF_CACHES: %s is not a type of these cases", name.c_str());
}

static std::vector<std::string> packed16_perf_list(const char * var, const char * otherwise, char separator) {
    const char *             text = getenv(var);
    std::istringstream       in(text ? text : otherwise);
    std::vector<std::string> list;
    for (std::string item; std::getline(in, item, separator);) {
        list.push_back(item);
    }
    return list;
}

static void add_packed16_perf_cases(std::vector<std::unique_ptr<test_case>> & test_cases) {
    // the canonical shape and those of the other head sizes, from a short chat to a long document
    std::string shapes;
    for (const char * heads : { "256,4,6", "128,8,4", "128,8,8", "64,8,4", "64,8,8" }) {
        for (int nk : { 512, 3328, 16384, 131072 }) {
            for (int nq : { 1, 4, 512 }) {
                shapes += std::string(heads) + "," + std::to_string(nk) + "," + std::to_string(nq) + ";";
            }
        }
    }

    for (const std::string & shape : packed16_perf_list("PACKED16_PERF_SHAPES", shapes.c_str(), ';')) {
        long long hs, nh, gqa, kv, nb;
        if (sscanf(shape.c_str(), "%lld,%lld,%lld,%lld,%lld", &hs, &nh, &gqa, &kv, &nb) != 5) {
            GGML_ABORT("PACKED16_PERF_SHAPES: %s is not D,n_head_kv,gqa,nk,nq", shape.c_str());
        }
        for (const std::string & cache : packed16_perf_list("PACKED16_PERF_CACHES",
                 "packed16/q4_0,q8_0/q4_0,packed16/q8_0,q8_0/q8_0,packed16/f16,q8_0/f16,f16/f16", ',')) {
            const size_t slash = std::min(cache.find('/'), cache.size() - 1);
            test_cases.emplace_back(new test_packed16_perf(packed16_perf_type(cache.substr(0, slash)),
                packed16_perf_type(cache.substr(slash + 1)), hs, nh, gqa, kv, nb, 1, MASK_CAUSAL));
        }
    }

    for (int64_t n_tokens : { 1, 4, 512 }) {
        test_cases.emplace_back(new test_pack_k_packed16(GGML_TYPE_F32, 1024, 16384, 1, n_tokens, GGML_PACKED16_SCALE_ABSMAX, "outliers", false));
    }
    test_cases.emplace_back(new test_packed16_copy());
}
