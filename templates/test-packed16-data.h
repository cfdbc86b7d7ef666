#pragma once

// What the packed16 cases of test-backend-ops are fed: values like those of real K rows, and blocks at the edges of the
// format. Everything random is the same on every run of a case.

#include "../ggml/src/packed16-quantize.h"

#include "ggml.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

static constexpr ggml_type PACKED16 = GGML_TYPE_I32; // as a K type

static std::string packed16_type_name(ggml_type type) {
    return type == PACKED16 ? "packed16" : ggml_type_name(type);
}

struct packed16_random {
    std::mt19937 gen;

    explicit packed16_random(const std::string & seed) : gen((uint32_t) std::hash<std::string>{}(seed)) {}

    float normal() {
        return std::normal_distribution<float>(0.0f, 1.0f)(gen);
    }
    int64_t below(int64_t n) {
        return (int64_t) (gen() % (uint64_t) n);
    }
    template <typename T> void shuffle(std::vector<T> & v) {
        for (size_t i = v.size(); i > 1; i--) {
            std::swap(v[i - 1], v[below((int64_t) i)]);
        }
    }
};

// What real K rows look like: values around 1, but channels differ in size and a few of them are outliers in every row.
struct packed16_channels {
    std::vector<float> gain;

    packed16_channels(packed16_random & rnd, int64_t n) : gain(n) {
        for (float & g : gain) {
            g = std::exp(0.4f*rnd.normal());
        }
        for (int64_t i = 0; i < n/64; i++) {
            gain[rnd.below(n)] *= 8.0f;
        }
    }

    void row(packed16_random & rnd, float * x) const {
        for (size_t i = 0; i < gain.size(); i++) {
            x[i] = gain[i]*rnd.normal();
        }
    }
};

// the blocks on which implementations differ first: kind counts through them
static void packed16_edge_block(packed16_random & rnd, int64_t kind, float * x) {
    constexpr int n_kinds = 16;

    auto fill = [x](auto f) {
        for (int i = 0; i < PACKED16_BLOCK; i++) {
            x[i] = (float) f(i);
        }
    };
    const auto any = [&](float size) { fill([&](int) { return size*rnd.normal(); }); };
    const int  at  = (int) rnd.below(PACKED16_BLOCK);

    switch (kind % n_kinds) {
        case 0:  fill([](int) { return 0.0f; }); break;
        case 1:  fill([](int i) { return i % 2 ? -0.0f : 0.0f; }); break;
        case 2:  any(1.0f); x[at] = NAN; break;
        case 3:  any(1.0f); x[at] = INFINITY; break;
        case 4:  any(1.0f); x[at] = -INFINITY; break;
        case 5:  any(1.0f); x[at] = 8321039.0f; break;                          // scale just below 65520: the largest f16
        case 6:  any(1.0f); x[at] = 8321040.0f; break;                          // 65520: rounds to infinity
        case 7:  any(1e30f); break;
        case 8:  any(1.0f); x[at] = 3.0e38f; break;
        case 9:  fill([](int i) { return (i - 16)*0x1p-24f; }); break;          // a subnormal scale
        case 10: fill([](int i) { return i % 2 ? 1.4f*127*0x1p-24f : -1.4f*127*0x1p-24f; }); break; // which rounds down: saturates
        case 11: any(1e-7f); break;                                             // below half of the smallest scale
        case 12: any(1e-41f); break;                                            // subnormal f32
        case 13: fill([](int i) { return i == 0 ? 127.0f : i - 15.5f; }); break; // scale 1: ties to even
        case 14: fill([](int i) { return i % 2 ? 127.49f : -127.49f; }); break;
        case 15: fill([&](int i) { return i == at ? -3.0f : 0.0f; }); break;
    }
}
