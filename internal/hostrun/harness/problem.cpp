#include "problem.h"

#ifdef HARNESS_AWAY
#include "away.h"
#endif

#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

fields::fields(const std::string & line) {
    std::istringstream in(line);
    for (std::string word; in >> word;) {
        const size_t eq = word.find('=');
        values[word.substr(0, eq)] = eq == std::string::npos ? "1" : word.substr(eq + 1);
    }
}
std::string fields::text(const char * name, const char * otherwise) const {
    used[name] = true;
    const auto it = values.find(name);
    return it == values.end() ? otherwise : it->second;
}
int fields::number(const char * name, int otherwise) const {
    return atoi(text(name, std::to_string(otherwise).c_str()).c_str());
}
void fields::all_used() const {
    for (const auto & [name, value] : values) {
        if (!used.count(name)) {
            fprintf(stderr, "harness: unknown field %s=%s\n", name.c_str(), value.c_str());
            exit(2);
        }
    }
}

#ifdef HARNESS_AWAY

buffer::buffer(size_t n) : data((char *) hostrun::away::allocate(n)), size(n) { memset(data, 0xff, n); }
buffer::~buffer() { hostrun::away::release(data); }

#else

buffer::~buffer() { free(data); }
buffer::buffer(size_t n) : size(n) {
    if (posix_memalign((void **) &data, 128, n) != 0) {
        fprintf(stderr, "harness: no memory for %zu bytes\n", n);
        exit(2);
    }
    memset(data, 0xff, n);
}

#endif // HARNESS_AWAY

std::string shape::key() const {
    std::ostringstream o;
    o << d << ' ' << nq << ' ' << nk << ' ' << n_head_kv << ' ' << gqa << ' ' << n_seq << ' ' << n_mask3 << ' ' << kv_size << ' ' << v << ' '
      << mask << ' ' << k << ' ' << sinks << ' ' << seed;
    return o.str();
}

float half_value(uint16_t bits) {
    _Float16 h;
    memcpy(&h, &bits, 2);
    return (float) h;
}
uint16_t half_bits(float f) {
    const _Float16 h = (_Float16) f;
    uint16_t bits;
    memcpy(&bits, &h, 2);
    return bits;
}

uint16_t pack_block(const float * x, int8_t * q, int mode) {
    float amax = 0.0f;
    bool finite = true;
    for (int i = 0; i < 32; ++i) {
        finite = finite && std::isfinite(x[i]);
        amax = std::fmax(amax, std::fabs(x[i]));
    }
    uint16_t bits = finite ? half_bits(amax / 127.0f) : 0x7e00;
    for (int pass = 0; ; ++pass) {
        const float s = half_value(bits);
        if (!std::isfinite(s)) {
            memset(q, 0, 32);
            return 0x7e00;
        }
        const float r = s == 0.0f ? 0.0f : 1.0f / s;
        float num = 0.0f, den = 0.0f;
        for (int i = 0; i < 32; ++i) {
            const float y = std::nearbyint(x[i] * r);
            q[i] = (int8_t) std::fmin(std::fmax(y, -127.0f), 127.0f);
            const float product = x[i] * (float) q[i];
            num = num + product;
            den = den + (float) (q[i] * q[i]);
        }
        if (mode == 0 || pass == 1 || den == 0.0f) {
            return bits;
        }
        bits = half_bits(num / den);
    }
}

namespace {

struct generator {
    uint64_t s;
    uint32_t next() {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t) (s >> 33);
    }
    int    below(int n) { return (int) (next() % (uint32_t) n); }
    double uniform() { return (next() + 0.5) / 2147483648.0; }
    float  normal() { return (float) (std::sqrt(-2.0 * std::log(uniform())) * std::cos(2.0 * M_PI * uniform())); }
};

const uint16_t minus_inf = 0xfc00, half_nan = 0x7e00;

// visible(query, cell) for each mask kind; writes f16 values.
void fill_mask(problem & p, generator & g) {
    const shape & s = p.s;
    if (s.mask == "none") {
        return;
    }
    p.mask = buffer((size_t) s.n_mask3 * s.nq * s.nk * 2);
    auto * m = p.mask.as<uint16_t>();
    for (int slice = 0; slice < s.n_mask3; ++slice) {
        std::vector<int> owner(s.nk), position(s.nk);
        for (int k = 0; k < s.nk; ++k) {
            owner[k]    = g.below(3);
            position[k] = k;
        }
        if (s.mask == "shuffled") { // slots are reused: cells are not in position order
            for (int k = s.nk - 1; k > 0; --k) {
                std::swap(position[k], position[g.below(k + 1)]);
            }
        }
        for (int q = 0; q < s.nq; ++q) {
            const int at = s.nk - s.nq - (s.nk > s.nq + 40 ? 17 : 0) + q; // the last cells are padding
            for (int k = 0; k < s.nk; ++k, ++m) {
                const int pos = position[k];
                bool sees = pos <= at;
                if (s.mask == "window") {
                    sees = sees && pos > at - 100;
                } else if (s.mask == "sequences") {
                    sees = sees && owner[k] == q % 3;
                } else if (s.mask == "holes") {
                    sees = sees && (k / 64 % 3 != 1) && owner[k] != 0;
                } else if (s.mask == "dead") { // some rows see nothing, and a whole stretch is seen by nobody
                    sees = sees && q % 3 != 1 && (k < s.nk / 4 || k >= s.nk / 2);
                }
                *m = sees ? 0 : minus_inf;
                if (s.mask == "bias" && sees) {
                    *m = half_bits(0.5f * g.normal());
                }
            }
        }
    }
}

bool seen_by_any(const problem & p, int seq, int k) {
    const shape & s = p.s;
    if (k >= s.nk) {
        return false;
    }
    if (p.mask.data == nullptr) {
        return true;
    }
    const auto * m = p.mask.as<uint16_t>() + (size_t) (seq % s.n_mask3) * s.nq * s.nk;
    for (int q = 0; q < s.nq; ++q) {
        if (m[(size_t) q * s.nk + k] != minus_inf) {
            return true;
        }
    }
    return false;
}

// One V row, its exact values to out when that is not null.
void v_values(const shape & s, const char * row, double * out) {
    for (int i = 0; i < s.d; ++i) {
        if (s.v == "f16") {
            out[i] = half_value(((const uint16_t *) row)[i]);
            continue;
        }
        const int size = s.v == "q8_0" ? 34 : 18;
        const char * block = row + i / 32 * size;
        uint16_t bits;
        memcpy(&bits, block, 2);
        const int j = i % 32;
        const int quant = s.v == "q8_0" ? (int) (int8_t) block[2 + j] : ((uint8_t) block[2 + j % 16] >> (j < 16 ? 0 : 4) & 15) - 8;
        out[i] = (double) half_value(bits) * quant;
    }
}

// Poison is in every other block of 32, so that a block of K that f16 does not hold has a sound block of V beside it.
void fill_v(const shape & s, char * row, bool poison, generator & g) {
    const uint16_t bad[] = {half_nan, 0x7c00, minus_inf};
    if (s.v == "f16") {
        for (int i = 0; i < s.d; ++i) {
            ((uint16_t *) row)[i] = poison && i % 64 < 32 ? bad[g.below(3)] : half_bits(g.normal());
        }
        return;
    }
    const int size = s.v == "q8_0" ? 34 : 18;
    for (int b = 0; b < s.d / 32; ++b, row += size) {
        const uint16_t d = poison && b % 2 == 0 ? bad[g.below(3)] : half_bits((s.v == "q8_0" ? 0.02f : 0.3f) * (float) (0.5 + g.uniform()));
        memcpy(row, &d, 2);
        for (int i = 2; i < size; ++i) {
            row[i] = (char) g.next();
        }
    }
}

// Attention in float64, from Q quantised by the contract's rule; cells gives K and V of a (sequence, KV head, cell). Hidden cells are
// left out, or multiplied by 0. answer [seq][query][head][D], dead [seq][query].
template <typename Cells>
void attend(const problem & p, const Cells & cells, const bool hidden_too, std::vector<double> & answer, std::vector<char> & dead) {
    const shape & s = p.s;
    const int blocks = s.d / 32;
    answer.assign((size_t) s.n_seq * s.nq * s.n_head() * s.d, 0.0);
    dead.assign((size_t) s.n_seq * s.nq, 0);
    for (int seq = 0; seq < s.n_seq; ++seq) {
        for (int kv = 0; kv < s.n_head_kv; ++kv) {
            std::vector<double> k((size_t) s.nk * s.d), v((size_t) s.nk * s.d);
            for (int c = 0; c < s.nk; ++c) {
                cells(seq, kv, c, &k[(size_t) c * s.d], &v[(size_t) c * s.d]);
            }
            for (int q = 0; q < s.nq; ++q) {
                const uint16_t * m = p.mask.data == nullptr ? nullptr : p.mask.as<uint16_t>() + ((size_t) (seq % s.n_mask3) * s.nq + q) * s.nk;
                for (int g = 0; g < s.gqa; ++g) {
                    const int head = kv * s.gqa + g;
                    const size_t out = (((size_t) seq * s.nq + q) * s.n_head() + head) * s.d;
                    const float * x = p.q.as<float>() + out; // same order
                    std::vector<double> xq(s.d), logit(s.nk);
                    for (int b = 0; b < blocks; ++b) {
                        float amax = 0.0f;
                        for (int i = 0; i < 32; ++i) {
                            amax = std::fmax(amax, std::fabs(x[b * 32 + i]));
                        }
                        const float sc = amax / 127.0f, r = sc == 0.0f ? 0.0f : 1.0f / sc;
                        for (int i = 0; i < 32; ++i) {
                            xq[b * 32 + i] = (double) sc * std::nearbyint(x[b * 32 + i] * r);
                        }
                    }
                    const double none = -std::numeric_limits<double>::infinity();
                    double top = none;
                    for (int c = 0; c < s.nk; ++c) {
                        double dot = 0;
                        for (int i = 0; i < s.d; ++i) {
                            dot += xq[i] * k[(size_t) c * s.d + i];
                        }
                        const bool hidden = m != nullptr && m[c] == minus_inf;
                        logit[c] = hidden ? (hidden_too ? dot : 0.0) + none : p.scale * dot + (m != nullptr ? half_value(m[c]) : 0.0);
                        top = std::fmax(top, logit[c]);
                    }
                    dead[(size_t) seq * s.nq + q] = top == none;
                    if (s.sinks) {
                        top = std::fmax(top, p.sinks.as<float>()[head]);
                    }
                    double sum = s.sinks ? std::exp(p.sinks.as<float>()[head] - top) : 0.0;
                    for (int c = 0; c < s.nk; ++c) {
                        if (logit[c] == none && !hidden_too) {
                            continue; // its V may be NaN
                        }
                        const double w = logit[c] == none ? 0.0 : std::exp(logit[c] - top);
                        sum += w;
                        for (int i = 0; i < s.d; ++i) {
                            answer[out + i] += w * v[(size_t) c * s.d + i];
                        }
                    }
                    for (int i = 0; i < s.d; ++i) {
                        answer[out + i] /= sum == 0.0 ? 1.0 : sum;
                    }
                }
            }
        }
    }
}

// The answer, from K and V as stored.
void solve(problem & p) {
    const shape & s = p.s;
    attend(p, [&](const int seq, const int kv, const int c, double * k, double * v) {
        const size_t row = ((size_t) seq * s.kv_size + c) * s.n_head_kv + kv;
        for (int i = 0; i < s.d; ++i) {
            k[i] = (double) half_value(p.scales.as<uint16_t>()[row * (s.d / 32) + i / 32]) * p.payload.as<int8_t>()[row * s.d + i];
        }
        v_values(s, p.v.data + row * p.v_row(), v);
    }, false, p.answer, p.dead);
}

} // namespace

std::vector<float> attend_unpacked(const problem & p, const uint16_t * k16, const uint16_t * v16) {
    const shape & s = p.s;
    std::vector<double> answer;
    std::vector<char>   dead;
    attend(p, [&](const int seq, const int kv, const int c, double * k, double * v) {
        const size_t row = (((size_t) seq * s.n_head_kv + kv) * s.nk + c) * s.d;
        for (int i = 0; i < s.d; ++i) {
            k[i] = half_value(k16[row + i]);
            v[i] = half_value(v16[row + i]);
        }
    }, true, answer, dead);
    return std::vector<float>(answer.begin(), answer.end());
}

int64_t problem::v_row() const { return s.v == "f16" ? s.d * 2 : s.d / 32 * (s.v == "q8_0" ? 34 : 18); }

problem make_problem(const shape & given) {
    problem p;
    p.s = given;
    const shape & s = p.s;
    generator g{(uint64_t) s.seed * 1000003 + 17};
    p.scale = 1.0f / std::sqrt((float) s.d);
    const size_t cells = (size_t) s.n_seq * s.kv_size, rows = cells * s.n_head_kv;

    p.q = buffer((size_t) s.n_seq * s.nq * s.n_head() * s.d * 4);
    for (size_t i = 0; i < p.q.size / 4; ++i) {
        p.q.as<float>()[i] = g.normal();
    }
    if (s.sinks) {
        p.sinks = buffer((size_t) s.n_head() * 4);
        for (int h = 0; h < s.n_head(); ++h) {
            p.sinks.as<float>()[h] = 2.0f * g.normal();
        }
    }
    fill_mask(p, g);

    p.k_rows  = buffer(rows * s.d * 4);
    p.k_f16   = buffer(rows * s.d * 2);
    p.payload = buffer(rows * s.d);
    p.scales  = buffer(rows * s.d / 32 * 2);
    p.v       = buffer(rows * p.v_row());
    for (size_t row = 0; row < rows; ++row) {
        const int cell = (int) (row / s.n_head_kv % s.kv_size), seq = (int) (row / s.n_head_kv / s.kv_size);
        const bool poison = !seen_by_any(p, seq, cell);
        float * x = p.k_rows.as<float>() + row * s.d;
        for (int i = 0; i < s.d; ++i) {
            x[i] = g.normal() * (i == 5 ? 8.0f : 1.0f); // one loud channel, as real K has
            if (poison && i % 32 == 0) {
                x[i] = i % 64 == 0 ? NAN : 7e4f; // more than f16 holds, though its scale is finite
            }
            p.k_f16.as<uint16_t>()[row * s.d + i] = half_bits(x[i]);
            if (s.k == "f16") {
                x[i] = half_value(half_bits(x[i]));
            }
        }
        for (int b = 0; b < s.d / 32; ++b) {
            p.scales.as<uint16_t>()[row * (s.d / 32) + b] = pack_block(x + b * 32, p.payload.as<int8_t>() + row * s.d + b * 32, 0);
        }
        fill_v(s, p.v.data + row * p.v_row(), poison, g);
    }
    solve(p);
    return p;
}
