#pragma once

// The packed16 cases of test-backend-ops: GGML_OP_PACK_K_PACKED16, and GGML_OP_FLASH_ATTN_EXT on an I32 K.
// Included by test-backend-ops.cpp after test_case. The reference is the CPU backend with use_ref set, which for these two
// ops is a double-precision implementation of its own, so that `-b CPU` judges the CPU's fast path as well.

#include "test-packed16-attention.h"
#include "test-packed16-pack.h"
#include "test-packed16-perf.h"
#include "test-packed16-relations.h"

static void add_packed16_test_cases(std::vector<std::unique_ptr<test_case>> & test_cases) {
    const ggml_type     v_types[] = { GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 };
    const packed16_mask masks[]   = { MASK_CAUSAL, MASK_SLOTS, MASK_WINDOW, MASK_SEQS, MASK_DEAD, MASK_BIAS };

    const auto attention = [&](auto... args) {
        test_cases.emplace_back(new test_flash_attn_packed16(PACKED16, args...));
    };

    for (ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16 }) {
        for (ggml_packed16_scale_mode mode : { GGML_PACKED16_SCALE_ABSMAX, GGML_PACKED16_SCALE_MSE }) {
            for (const char * data : { "normal", "outliers", "edges" }) {
                for (bool view : { false, true }) {
                    //                                                   n_embd  n_rows  n_stream  n_tokens
                    test_cases.emplace_back(new test_pack_k_packed16(type,   64,     64,        1,        1, mode, data, view));
                    test_cases.emplace_back(new test_pack_k_packed16(type,  256,    256,        1,        5, mode, data, view));
                    test_cases.emplace_back(new test_pack_k_packed16(type, 1024,     96,        3,      288, mode, data, view)); // every row
                    test_cases.emplace_back(new test_pack_k_packed16(type, 1024,    512,        2,      513, mode, data, view));
                    test_cases.emplace_back(new test_pack_k_packed16(type,  896,    512,        1,      512, mode, data, view));
                }
            }
        }
    }

    // every combination, over a cache depth that changes along the way
    const int64_t depths[] = { 256, 512, 768, 1024, 1280, 2048, 2304 };
    size_t        depth    = 0;
    for (int64_t hs : { 64, 128, 256 }) {
        for (ggml_type type_V : v_types) {
            for (int64_t gqa : { 1, 2, 6, 8 }) {
                for (int64_t nb = 1; nb <= 8; nb++) {
                    for (packed16_mask mask : masks) {
                        const int64_t kv = depths[depth++ % std::size(depths)];
                        attention(type_V, hs, 2, gqa, kv, nb, 1, mask);
                    }
                }
                for (packed16_mask mask : masks) {
                    attention(type_V, hs, 1, gqa, 768, 512, 1, mask);
                }
            }
        }
    }

    for (ggml_type type_V : v_types) {
        for (int64_t nb : { 1, 3, 8, 9, 33 }) {
            // the canonical shape at the edges of tiles, splits and routes
            for (int64_t kv : { 256, 1792, 2048, 2304, 3328 }) {
                attention(type_V, 256, 4, 6, kv, nb, 1, MASK_CAUSAL);
            }
            // cells that fill no tile
            for (int64_t kv : { 1, 31, 113, 257, 1000 }) {
                attention(type_V, 128, 2, 4, kv, nb, 1, MASK_NONE);
                attention(type_V, 256, 2, 6, kv, nb, 1, MASK_BIAS);
            }
            for (int64_t hs : { 64, 128, 256 }) {
                attention(type_V, hs, 2, 16, 512, nb, 1, MASK_CAUSAL);
                attention(type_V, hs, 3,  6, 512, nb, 3, MASK_SLOTS);
                attention(type_V, hs, 3,  5, 768, nb, 2, MASK_DEAD);
                attention(type_V, hs, 2,  8, 512, nb, 1, MASK_CAUSAL, true);
                attention(type_V, hs, 2,  8, 768, nb, 2, MASK_DEAD,   true);
                attention(type_V, hs, 2,  1, 512, nb, 1, MASK_NONE,   true);
            }
        }
        attention(type_V, 256, 4, 6, 16384,   1, 1, MASK_CAUSAL);
        attention(type_V, 256, 4, 6, 16384,   4, 1, MASK_SLOTS);
        attention(type_V, 256, 4, 6,  1792, 512, 1, MASK_CAUSAL);
    }

    // prefill by a kernel of ours where fewer cells are unpacked for another
    for (int64_t hs : { 64, 128, 256 }) {
        const int64_t kv = (PACKED16_PREFILL_F16_BELOW(hs) + 255)/256*256;
        for (ggml_type type_V : v_types) {
            for (packed16_mask mask : masks) {
                if (kv > 0) {
                    attention(type_V, hs, 2, 4, kv, 33, 1, mask); // blocks of 8 warps
                    attention(type_V, hs, 2, 2, kv,  9, 1, mask, true);
                }
            }
        }
    }

    for (ggml_type type_V : v_types) {
        for (int64_t hs : { 64, 128, 256 }) {
            for (packed16_mask mask : { MASK_NONE, MASK_CAUSAL, MASK_SLOTS, MASK_DEAD, MASK_BIAS }) {
                for (int64_t kv : { 256, 768, 2304 }) {
                    test_cases.emplace_back(new test_packed16_invariance(PACKED16, type_V, hs, 2, 6, kv, 8, 1, mask));
                }
            }
        }
        test_cases.emplace_back(new test_packed16_invariance(PACKED16, type_V, 256, 4, 6, 3328, 3, 1, MASK_CAUSAL, true));
        test_cases.emplace_back(new test_packed16_invariance(PACKED16, type_V, 128, 2, 1, 2048, 5, 1, MASK_WINDOW));
        test_cases.emplace_back(new test_packed16_invariance(PACKED16, type_V, 128, 2, 8, 2048, 7, 1, MASK_SEQS));
    }

    for (int64_t hs : { 64, 128, 256 }) {
        for (ggml_packed16_scale_mode mode : { GGML_PACKED16_SCALE_ABSMAX, GGML_PACKED16_SCALE_MSE }) {
            test_cases.emplace_back(new test_packed16_against_f16(hs, mode));
        }
    }
}
