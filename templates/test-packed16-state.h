#pragma once

// What test-packed16-state is made of: contexts, decoding with the logits of every token, and comparisons that report.

#include "llama-cpp.h"
#include "llama.h"

#include "../src/llama-packed16-name.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using tokens_t = std::vector<llama_token>;
using logits_t = std::vector<float>;

static constexpr int    N_PROMPT = 300; // more than one padding step of 256 cells
static constexpr int    N_NEW    = 24;
static constexpr float  MAX_TIE  = 0.05f; // of logits

static llama_model * model;
static int           n_vocab;
static int           n_failed;

static void check(bool ok, const std::string & what) {
    printf("  %-4s %s\n", ok ? "ok" : "FAIL", what.c_str());
    fflush(stdout);
    n_failed += !ok;
}

struct options {
    ggml_type type_k  = LLAMA_TYPE_K_PACKED16;
    ggml_type type_v  = GGML_TYPE_F16;
    uint32_t  n_seq   = 1;
    bool      unified = false;

    llama_flash_attn_type flash_attn = LLAMA_FLASH_ATTN_TYPE_AUTO;
};

// Upstream has had one limit of the outputs, later a second one, and before that none.
template <typename T> auto limit_outputs(T & params, uint32_t n, int) -> decltype(params.n_outputs_max_per_seq, void()) {
    params.n_outputs_max         = n;
    params.n_outputs_max_per_seq = n;
}

template <typename T> auto limit_outputs(T & params, uint32_t n, long) -> decltype(params.n_outputs_max, void()) {
    params.n_outputs_max = n;
}

template <typename T> void limit_outputs(T &, uint32_t, ...) {
}

static llama_context_ptr new_context(const options & opt) {
    auto params = llama_context_default_params();

    params.n_ctx           = 1024*opt.n_seq;
    params.n_batch         = 512;
    params.n_ubatch        = 512;
    params.n_seq_max       = opt.n_seq;
    limit_outputs(params, 512, 0);
    params.n_threads       = 2;
    params.n_threads_batch = 2;
    params.kv_unified      = opt.unified;
    params.flash_attn_type = opt.flash_attn;
    params.type_k          = opt.type_k;
    params.type_v          = opt.type_v;

    return llama_context_ptr(llama_init_from_model(model, params));
}

struct entry {
    llama_token  token;
    llama_pos    pos;
    llama_seq_id seq;
};

// Decodes one batch; returns the logits of every entry.
static std::vector<logits_t> decode(llama_context * ctx, const std::vector<entry> & entries) {
    llama_batch batch = llama_batch_init(entries.size(), 0, 1);
    for (const auto & e : entries) {
        const int i = batch.n_tokens++;
        batch.token[i]     = e.token;
        batch.pos[i]       = e.pos;
        batch.n_seq_id[i]  = 1;
        batch.seq_id[i][0] = e.seq;
        batch.logits[i]    = 1;
    }
    const int rc = llama_decode(ctx, batch);
    llama_batch_free(batch);
    if (rc != 0) {
        fprintf(stderr, "llama_decode returned %d\n", rc);
        exit(1);
    }

    std::vector<logits_t> res;
    for (size_t i = 0; i < entries.size(); i++) {
        const float * p = llama_get_logits_ith(ctx, i);
        res.emplace_back(p, p + n_vocab);
    }
    return res;
}

static std::vector<logits_t> prefill(llama_context * ctx, const tokens_t & tokens, llama_pos pos, llama_seq_id seq) {
    std::vector<entry> entries;
    for (llama_token t : tokens) {
        entries.push_back({ t, pos++, seq });
    }
    return decode(ctx, entries);
}

static llama_token best(const logits_t & logits) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

struct result {
    tokens_t              tokens;
    std::vector<logits_t> logits;
};

// The N_NEW greedy tokens of a sequence whose next token at position pos is first.
static result generate(llama_context * ctx, llama_token first, llama_pos pos, llama_seq_id seq) {
    result res;
    llama_token t = first;
    for (int i = 0; i < N_NEW; i++) {
        res.tokens.push_back(t);
        res.logits.push_back(decode(ctx, { { t, pos + i, seq } })[0]);
        t = best(res.logits.back());
    }
    return res;
}

// The same tokens as another sequence has, one by one, whatever this one would have chosen.
static result follow(llama_context * ctx, const result & other, llama_pos pos, llama_seq_id seq) {
    result res = { other.tokens, {} };
    for (llama_token t : other.tokens) {
        res.logits.push_back(decode(ctx, { { t, pos++, seq } })[0]);
    }
    return res;
}

static double kld(const std::vector<logits_t> & p, const std::vector<logits_t> & q) {
    double sum = 0;
    for (size_t i = 0; i < p.size(); i++) {
        const double mp = *std::max_element(p[i].begin(), p[i].end());
        const double mq = *std::max_element(q[i].begin(), q[i].end());
        double zp = 0;
        double zq = 0;
        for (int j = 0; j < n_vocab; j++) {
            zp += exp(p[i][j] - mp);
            zq += exp(q[i][j] - mq);
        }
        for (int j = 0; j < n_vocab; j++) {
            const double lp = p[i][j] - mp - log(zp);
            const double lq = q[i][j] - mq - log(zq);
            sum += exp(lp)*(lp - lq);
        }
    }
    return sum/p.size();
}

// Mean KLD allowed between two ways to compute the same. Matrix products add up in another order for another batch, most of
// all on a GPU, and rounding to 8 or 4 bits turns that into other cells. On an H200, decode against prefill, stock caches gave
// f16/f16 0, q8_0/q8_0 1.9e-5, q4_0/q4_0 1.5e-3, and packed16 with V f16 1.4e-5, q8_0 2.1e-5, q4_0 3.8e-4.
static double max_kld(const options & opt) {
    if (llama_supports_gpu_offload()) {
        return opt.type_v == GGML_TYPE_Q4_0 ? 1e-3 : 5e-5;
    }
    return opt.type_v == GGML_TYPE_Q4_0 ? 2e-4 : 1e-5;
}

static void check_kld(double d, double limit, const std::string & what) {
    char buf[64];
    snprintf(buf, sizeof(buf), ": mean KLD %.2e, at most %.0e", d, limit);
    check(d <= limit, what + buf);
}

static void check_equal(const result & got, const result & want, const std::string & what) {
    check(got.tokens == want.tokens, what + ": same tokens");
    check(got.logits == want.logits, what + ": same logits, bit for bit");
}

// got followed want
static void check_close(const options & opt, const result & got, const result & want, const std::string & what) {
    float worst = 0;
    for (size_t i = 0; i + 1 < want.tokens.size(); i++) {
        worst = std::max(worst, got.logits[i][best(got.logits[i])] - got.logits[i][want.tokens[i + 1]]);
    }
    char buf[64];
    snprintf(buf, sizeof(buf), ": same choices, apart from ties of %.3f", worst);
    check(worst <= MAX_TIE, what + buf);
    check_kld(kld(want.logits, got.logits), max_kld(opt), what);
}

// What every test compares with: the prompt in one batch, then greedy tokens.
struct reference {
    llama_context_ptr     ctx;
    std::vector<logits_t> prompt;
    result                next;

    reference(const options & opt, const tokens_t & tokens, llama_seq_id seq = 0) : ctx(new_context(opt)) {
        prompt = prefill(ctx.get(), tokens, 0, seq);
    }
    llama_token first() const { return best(prompt.back()); }
};
