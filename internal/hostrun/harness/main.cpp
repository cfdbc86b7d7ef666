// Runs attention cases on host-run kernels. One case per line of standard input, "name=value" fields; one JSON
// line per case on standard output: how far the result is from the float64 answer, and a hash of
// each output row's bits. Also packs vectors: see pack().

#define HOSTRUN_MAIN
#include "packed16-pack.cuh"

#include "routes.h"

#include <cmath>
#include <iostream>
#include <memory>

std::vector<instance> & instances() {
    static std::vector<instance> all;
    return all;
}

static uint64_t hash(const void * data, size_t size) {
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < size; ++i) {
        h = (h ^ ((const unsigned char *) data)[i]) * 1099511628211ull;
    }
    return h;
}

static void attention(const fields & f) {
    static std::unique_ptr<problem> last;
    shape s;
    s.d         = f.number("d", 256);
    s.nq        = f.number("nq", 1);
    s.nk        = f.number("nk", 256);
    s.n_head_kv = f.number("kv", 1);
    s.gqa       = f.number("gqa", 6);
    s.n_seq     = f.number("seq", 1);
    s.n_mask3   = f.number("mask3", 1);
    s.kv_size   = s.nk + f.number("pad", 24);
    s.v         = f.text("v", "q4_0");
    s.mask      = f.text("mask", "causal");
    s.k         = f.text("k", "packed");
    s.sinks     = f.number("sinks", 0) != 0;
    s.seed      = f.number("data", 1);
    run_plan plan;
    plan.route = f.text("route", "decode");
    plan.first = f.number("first", 0);
    plan.rows  = f.number("rows", s.nq - plan.first);
    plan.cta   = f.number("cta", 0);
    plan.unit  = f.number("unit", 1);
    plan.columns = f.number("cols", 0);
    plan.assume_causal = f.number("assume_causal", 0) != 0;
    plan.sms   = f.number("sms", 1);
    plan.warps = f.number("warps", 8);
    hostrun::options.seed    = (uint64_t) f.number("order", 1);
    hostrun::options.preempt = (uint32_t) f.number("preempt", 0);
    hostrun::options.skip_barrier = f.text("skip", "");
    f.all_used();
    hostrun::counts = {};
    if (!last || last->s.key() != s.key()) {
        last = std::make_unique<problem>(make_problem(s));
    }
    const problem & p = *last;

    std::vector<float> got;
    bool found = false;
    for (const instance & i : instances()) {
        if (s.v == i.v) {
            got   = i.run(p, plan);
            found = true;
        }
    }
    if (!found) {
        hostrun::fail("harness: no instance for v=%s", s.v.c_str());
    }

    // Normalised squared error, and what must hold exactly: finite everywhere, zero in rows that see nothing.
    double error = 0, norm = 0;
    int not_finite = 0, not_zero = 0;
    std::string hashes;
    const size_t row = (size_t) s.n_head() * s.d;
    for (int seq = 0; seq < s.n_seq; ++seq) {
        for (int q = 0; q < plan.rows; ++q) {
            const float *  out  = &got[((size_t) seq * plan.rows + q) * row];
            const double * want = &p.answer[((size_t) seq * s.nq + plan.first + q) * row];
            const bool     dead = p.dead[(size_t) seq * s.nq + plan.first + q] != 0;
            for (size_t i = 0; i < row; ++i) {
                not_finite += !std::isfinite(out[i]);
                not_zero += dead && (out[i] != 0.0f || std::signbit(out[i]));
                error += (out[i] - want[i]) * (out[i] - want[i]);
                norm += want[i] * want[i];
            }
            char text[32];
            snprintf(text, sizeof(text), "%s\"%016llx\"", hashes.empty() ? "" : ",", (unsigned long long) hash(out, row * 4));
            hashes += text;
        }
    }
    printf("{\"nmse\":%.3e,\"not_finite\":%d,\"not_zero\":%d,\"dp4a\":%llu,\"skipped\":%llu,\"rows\":[%s]}\n",
        not_finite ? 1.0 : norm == 0 ? error : error / norm, not_finite, not_zero, (unsigned long long) hostrun::counts.dp4a,
        (unsigned long long) hostrun::counts.skipped, hashes.c_str());
}

// pack type=f32|f16 mode=0|1 blocks=N tokens=T order=…, then on the next line the rows' bytes in hex: packs T rows of N
// blocks through packed16_pack_rows to shuffled cache rows and prints payload and scales in row order, in hex.
static std::string unhex(const std::string & text) {
    std::string out;
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
        out += (char) std::stoi(text.substr(i, 2), nullptr, 16);
    }
    return out;
}
static void print_hex(const char * name, const char * p, size_t n) {
    printf("\"%s\":\"", name);
    for (size_t i = 0; i < n; ++i) {
        printf("%02x", (unsigned char) p[i]);
    }
    printf("\"");
}
static void pack(const fields & f, const std::string & hex) {
    const std::string type = f.text("type", "f32"), data = unhex(hex);
    const int mode = f.number("mode", 0), blocks = f.number("blocks", 1), tokens = f.number("tokens", 1), size = type == "f16" ? 2 : 4;
    hostrun::options.seed = (uint64_t) f.number("order", 1);
    f.text("pack", "");
    f.all_used();
    if (data.size() != (size_t) tokens * blocks * 32 * size) {
        hostrun::fail("harness: %zu bytes for %d rows of %d blocks of %s", data.size(), tokens, blocks, type.c_str());
    }
    // Rows of the cache are further apart than they are long, and tokens go to them in reverse, with a gap.
    const int cache = tokens + 3;
    const int64_t nb_payload = blocks * 32 + 32, nb_scales = blocks * 2 + 2;
    buffer src(data.size()), idxs((size_t) tokens * 8), payload((size_t) cache * nb_payload - 32), scales((size_t) cache * nb_scales - 2);
    memcpy(src.data, data.data(), data.size());
    for (int t = 0; t < tokens; ++t) {
        idxs.as<int64_t>()[t] = cache - 1 - t;
    }
    const dim3 grid((blocks * tokens + 63) / 64);
    if (size == 4) {
        hostrun::launch(packed16_pack_rows<float>, grid, dim3(64), 0, src.as<float>(), idxs.as<int64_t>(), payload.data, scales.data, blocks, tokens,
            (int64_t) blocks * 32 * size, nb_payload, nb_scales, mode);
    } else {
        hostrun::launch(packed16_pack_rows<half>, grid, dim3(64), 0, src.as<half>(), idxs.as<int64_t>(), payload.data, scales.data, blocks, tokens,
            (int64_t) blocks * 32 * size, nb_payload, nb_scales, mode);
    }
    for (int r = 0; r < cache - tokens; ++r) { // rows nobody asked for keep their bytes
        for (int64_t i = 0; i < blocks * 32; ++i) {
            if ((unsigned char) payload.data[r * nb_payload + i] != 0xff) {
                hostrun::fail("pack wrote row %d, which is in nobody's index", r);
            }
        }
    }
    std::string all_payload, all_scales;
    for (int t = 0; t < tokens; ++t) {
        all_payload.append(payload.data + (cache - 1 - t) * nb_payload, blocks * 32);
        all_scales.append(scales.data + (cache - 1 - t) * nb_scales, blocks * 2);
    }
    printf("{");
    print_hex("payload", all_payload.data(), all_payload.size());
    printf(",");
    print_hex("scales", all_scales.data(), all_scales.size());
    printf("}\n");
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        const fields f(line);
        if (f.values.count("pack")) {
            std::string hex;
            std::getline(std::cin, hex);
            pack(f, hex);
        } else {
            attention(f);
        }
        fflush(stdout);
    }
    return 0;
}
