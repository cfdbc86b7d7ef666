// The packed16 K cache keeps what was put into it: through states in memory, on the device and in files read by a new
// process, through copies between streams, beside another sequence, and whether tokens came in one batch or singly.
//
//   test-packed16-state MODEL [TEXT-FILE]     MODEL may come from LLAMA_TEST_PACKED16_MODEL; without one exits with 77
//
// Logits decide. They are the same bit for bit where the same cells are read in the same order and in batches of the same
// size. Elsewhere sums run in another order: there the divergence stays under a bound, and each greedy token is chosen
// again or is as good as tied. The bound is wider for a q4_0 V, whose coarse steps turn a last bit into a step: an f16 K
// beside it shows the same 6e-5 between decode and prefill.

#include "test-packed16-state.h"

#include <cstring>
#include <fstream>
#include <iterator>

static constexpr int SKIPPED = 77;

static void test_quality(const options & opt, const tokens_t & tokens) {
    options f16 = opt;
    f16.type_k = GGML_TYPE_F16;
    const reference a(f16, tokens);
    const reference b(opt, tokens);
    const double d = kld(a.prompt, b.prompt);
    char buf[96];
    snprintf(buf, sizeof(buf), "prompt against an f16 K: mean KLD %.2e, at most 1e-3 and not 0", d);
    check(d <= 1e-3 && d > 0, buf);
}

static void test_decode_agrees_with_prefill(const options & opt, const tokens_t & tokens) {
    const reference ref(opt, tokens);
    auto ctx = new_context(opt);
    std::vector<logits_t> singly;
    for (size_t i = 0; i < tokens.size(); i++) {
        singly.push_back(decode(ctx.get(), { { tokens[i], (llama_pos) i, 0 } })[0]);
    }
    check_kld(kld(ref.prompt, singly), max_kld(opt), "decode agrees with prefill");
}

// A restored cache is searched for free cells from its start, where a sliding window has left some: the next token then
// lies elsewhere than in the original.
static void check_restored(const options & opt, llama_context * ctx, const reference & ref, llama_pos n, const std::string & what) {
    if (llama_model_n_swa(model) > 0) {
        check_close(opt, follow(ctx, ref.next, n, 0), ref.next, what);
    } else {
        check_equal(generate(ctx, ref.first(), n, 0), ref.next, what);
    }
}

static void test_state(const options & opt, const tokens_t & tokens) {
    reference ref(opt, tokens);
    auto * ctx = ref.ctx.get();

    std::vector<uint8_t> full(llama_state_get_size(ctx));
    check(llama_state_get_data(ctx, full.data(), full.size()) == full.size(), "full state: written as long as announced");
    std::vector<uint8_t> seq(llama_state_seq_get_size(ctx, 0));
    check(llama_state_seq_get_data(ctx, seq.data(), seq.size(), 0) == seq.size(), "sequence state: written as long as announced");

    const llama_pos n = tokens.size();
    ref.next = generate(ctx, ref.first(), n, 0);

    {
        auto other = new_context(opt);
        check(llama_state_set_data(other.get(), full.data(), full.size()) == full.size(), "full state: read in another context");
        check_restored(opt, other.get(), ref, n, "full state");
    }
    {
        // holes: the cells of seq 0 between those of seq 1, which goes
        options two = opt;
        two.n_seq   = 2;
        two.unified = true;
        auto other = new_context(two);
        for (llama_pos i = 0; i < 40; i++) {
            decode(other.get(), { { tokens[i], i, 0 }, { tokens[i], i, 1 } });
        }
        llama_memory_seq_rm(llama_get_memory(other.get()), 0, -1, -1);
        check(llama_state_seq_set_data(other.get(), seq.data(), seq.size(), 0) == seq.size(), "sequence state: read into scattered cells");
        check_close(opt, follow(other.get(), ref.next, n, 0), ref.next, "sequence state");
    }
#ifdef LLAMA_STATE_SEQ_FLAGS_ON_DEVICE // since b9016
    {
        auto flags = LLAMA_STATE_SEQ_FLAGS_ON_DEVICE;
        auto other = new_context(opt);
        prefill(other.get(), tokens, 0, 0);
        std::vector<uint8_t> host(llama_state_seq_get_size_ext(other.get(), 0, flags));
        llama_state_seq_get_data_ext(other.get(), host.data(), host.size(), 0, flags);
        llama_memory_clear(llama_get_memory(other.get()), true);
        prefill(other.get(), tokens_t(tokens.rbegin(), tokens.rend()), 0, 0);
        check(llama_state_seq_set_data_ext(other.get(), host.data(), host.size(), 0, flags) != 0, "state on the device: restored");
        check_restored(opt, other.get(), ref, n, "state on the device");
    }
#endif

    for (ggml_type type_k : { GGML_TYPE_F16, GGML_TYPE_Q8_0 }) {
        options another = opt;
        another.type_k = type_k;
        auto other = new_context(another);
        check(llama_state_set_data(other.get(), full.data(), full.size()) == 0, std::string("state refused by K type ") + ggml_type_name(type_k));
        prefill(other.get(), tokens, 0, 0);
        std::vector<uint8_t> foreign(llama_state_get_size(other.get()));
        llama_state_get_data(other.get(), foreign.data(), foreign.size());
        auto packed = new_context(opt);
        check(llama_state_set_data(packed.get(), foreign.data(), foreign.size()) == 0, std::string("packed16 refuses a state of K type ") + ggml_type_name(type_k));
        check_equal(generate(packed.get(), best(prefill(packed.get(), tokens, 0, 0).back()), n, 0), ref.next, "after that refusal");
    }
    full.resize(full.size()/2);
    auto other = new_context(opt);
    check(llama_state_set_data(other.get(), full.data(), full.size()) == 0, "half a state refused");
}

static void test_seq_rm(const options & opt, const tokens_t & tokens) {
    reference ref(opt, tokens);
    ref.next = generate(ref.ctx.get(), ref.first(), tokens.size(), 0);
    if (!llama_memory_seq_rm(llama_get_memory(ref.ctx.get()), 0, tokens.size(), -1)) {
        printf("  skip removing the end of a sequence: this model's memory cannot\n");
        return;
    }
    check_equal(generate(ref.ctx.get(), ref.first(), tokens.size(), 0), ref.next, "removed and decoded again");
}

static void test_streams(const options & opt, const tokens_t & tokens) {
    options two = opt;
    two.n_seq   = 2;
    two.unified = false;
    reference ref(two, tokens);
    auto * ctx = ref.ctx.get();
    // the stream that is copied into holds something else before
    prefill(ctx, tokens_t(tokens.rbegin(), tokens.rend()), 0, 1);
    llama_memory_seq_rm(llama_get_memory(ctx), 1, -1, -1);
    llama_memory_seq_cp(llama_get_memory(ctx), 0, 1, -1, -1);
    ref.next = generate(ctx, ref.first(), tokens.size(), 0);
    check_equal(generate(ctx, ref.first(), tokens.size(), 1), ref.next, "sequence copied to another stream");
}

static void test_parallel(const options & opt, const tokens_t & a, const tokens_t & b) {
    result alone[2];
    for (int s = 0; s < 2; s++) {
        const reference ref(opt, s ? b : a);
        alone[s] = generate(ref.ctx.get(), ref.first(), (s ? b : a).size(), 0);
    }
    for (bool unified : { false, true }) {
        options two = opt;
        two.n_seq   = 2;
        two.unified = unified;
        auto ctx = new_context(two);

        prefill(ctx.get(), a, 0, 0);
        prefill(ctx.get(), b, 0, 1);
        result got[2] = { { alone[0].tokens, {} }, { alone[1].tokens, {} } };
        for (int i = 0; i < N_NEW; i++) {
            const auto logits = decode(ctx.get(), {
                { alone[0].tokens[i], (llama_pos) a.size() + i, 0 },
                { alone[1].tokens[i], (llama_pos) b.size() + i, 1 },
            });
            for (int s = 0; s < 2; s++) {
                got[s].logits.push_back(logits[s]);
            }
        }
        for (int s = 0; s < 2; s++) {
            check_close(opt, got[s], alone[s], std::string(unified ? "one cache for both" : "a stream each") + ", sequence " + std::to_string(s) + " as alone");
        }
    }
}

static void test_refusals(const options & opt) {
    options off = opt;
    off.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    check(!new_context(off), "refused without flash attention");
    for (ggml_type type_v : { GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q5_0, GGML_TYPE_Q4_1, GGML_TYPE_I32 }) {
        options other = opt;
        other.type_v = type_v;
        check(!new_context(other), std::string("refused with V type ") + ggml_type_name(type_v));
    }
    check(!llama_memory_can_shift(llama_get_memory(new_context(opt).get())), "says that it cannot shift");
}

//
// a new process: reads a state file, prints the tokens that follow
//

static int continue_from(const options & opt, const char * path, bool whole) {
    auto ctx = new_context(opt);
    tokens_t tokens(4096);
    size_t   n = 0;
    if (!(whole ? llama_state_load_file    (ctx.get(), path,    tokens.data(), tokens.size(), &n)
                : llama_state_seq_load_file(ctx.get(), path, 0, tokens.data(), tokens.size(), &n) != 0)) {
        return 1;
    }
    // the last token is the one to go on with; the others are in the cache
    for (llama_token t : generate(ctx.get(), tokens[n - 1], n - 1, 0).tokens) {
        printf("%d ", t);
    }
    return 0;
}

static void test_new_process(const options & opt, const tokens_t & tokens, const std::string & self, const std::string & model_path) {
    for (bool whole : { true, false }) {
        reference ref(opt, tokens);
        tokens_t stored = tokens;
        stored.push_back(ref.first());

        const std::string path = std::string("test-packed16-state-") + ggml_type_name(opt.type_v) + (whole ? ".whole" : ".seq");
        check(whole ? llama_state_save_file    (ref.ctx.get(), path.c_str(),    stored.data(), stored.size())
                    : llama_state_seq_save_file(ref.ctx.get(), path.c_str(), 0, stored.data(), stored.size()) != 0,
              std::string(whole ? "session" : "sequence") + " file written");

        std::string want;
        for (llama_token t : generate(ref.ctx.get(), ref.first(), tokens.size(), 0).tokens) {
            want += std::to_string(t) + " ";
        }

        const std::string out = path + ".out";
        const std::string command = "\"" + self + "\" --continue " + path + " " + (whole ? "whole" : "seq") + " " +
            std::to_string((int) opt.type_v) + " \"" + model_path + "\" > " + out;
#ifdef _WIN32
        const int rc = system(("\"" + command + "\"").c_str());
#else
        const int rc = system(command.c_str());
#endif
        std::ifstream in(out);
        const std::string got((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        in.close();
        check(rc == 0 && got == want, std::string(whole ? "session" : "sequence") + " file: a new process goes on with the same tokens");
        remove(path.c_str());
        remove(out.c_str());
    }
}

int main(int argc, char ** argv) {
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level >= GGML_LOG_LEVEL_ERROR && getenv("LLAMA_TEST_VERBOSE")) {
            fputs(text, stderr);
        }
    }, nullptr);

    const bool   child = argc == 6 && strcmp(argv[1], "--continue") == 0;
    const char * path  = child ? argv[5] : argc > 1 ? argv[1] : getenv("LLAMA_TEST_PACKED16_MODEL");
    if (!path || !*path) {
        printf("test-packed16-state: SKIPPED, no model: give one, or set LLAMA_TEST_PACKED16_MODEL\n");
        return SKIPPED;
    }

    llama_backend_init();
    llama_model_ptr owner(llama_model_load_from_file(path, llama_model_default_params()));
    model = owner.get();
    if (!model) {
        fprintf(stderr, "cannot load %s\n", path);
        return 1;
    }
    const llama_vocab * vocab = llama_model_get_vocab(model);
    n_vocab = llama_vocab_n_tokens(vocab);

    options opt;
    if (child) {
        opt.type_v = (ggml_type) atoi(argv[4]);
        return continue_from(opt, argv[2], strcmp(argv[3], "whole") == 0);
    }

    std::string text;
    if (argc > 2) {
        std::ifstream in(argv[2], std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    } else {
        for (int i = 0; i < 400; i++) {
            text += "And " + std::to_string(i*i) + " of the children said unto him, Let us go over. ";
        }
    }
    text.resize(std::min<size_t>(text.size(), 16384));
    tokens_t all(text.size() + 16);
    if (llama_vocab_type(vocab) != LLAMA_VOCAB_TYPE_NONE) {
        all.resize(std::max(0, llama_tokenize(vocab, text.data(), text.size(), all.data(), all.size(), true, false)));
    } else {
        for (size_t i = 0; i < all.size(); i++) {
            all[i] = (31*i*i + 7*i) % n_vocab; // a model made for tests
        }
    }
    if (all.size() < 2*N_PROMPT) {
        fprintf(stderr, "%s has only %zu tokens, %d are needed\n", argc > 2 ? argv[2] : "the text", all.size(), 2*N_PROMPT);
        return 1;
    }
    const tokens_t a(all.begin(), all.begin() + N_PROMPT);
    const tokens_t b(all.end() - N_PROMPT + 37, all.end());

    for (ggml_type type_v : { GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 }) {
        printf("K packed16, V %s\n", ggml_type_name(type_v));
        opt.type_v = type_v;

        test_quality(opt, a);
        test_decode_agrees_with_prefill(opt, a);
        test_state(opt, a);
        test_seq_rm(opt, a);
        test_streams(opt, a);
        test_parallel(opt, a, b);
        test_new_process(opt, a, argv[0], path);
    }
    test_refusals(options());

    printf("test-packed16-state: %s (%d failed)\n", n_failed ? "FAIL" : "OK", n_failed);
    return n_failed != 0;
}
