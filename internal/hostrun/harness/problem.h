// One attention problem: its shape, its data laid out as llama.cpp's cache lays it
// out, and the float64 answer. Compiled for speed, without sanitizers; the
// buffers are exact allocations, so that a sanitized kernel cannot run past one unseen.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

// The fields of a case, "name=value" separated by blanks.
struct fields {
    std::map<std::string, std::string> values;
    mutable std::map<std::string, bool> used;

    explicit fields(const std::string & line);
    std::string text(const char * name, const char * otherwise) const;
    int         number(const char * name, int otherwise) const;
    void        all_used() const; // exits when a field was never asked for
};

// A buffer of exactly n bytes, 128-byte aligned, filled with a pattern that is NaN as float and half.
struct buffer {
    char * data = nullptr;
    size_t size = 0;

    buffer() = default;
    explicit buffer(size_t n);
    buffer(buffer && o) noexcept : data(o.data), size(o.size) { o.data = nullptr; }
    buffer & operator=(buffer && o) noexcept { std::swap(data, o.data); std::swap(size, o.size); return *this; }
    ~buffer();
    template <typename T> T * as() { return (T *) data; }
    template <typename T> const T * as() const { return (const T *) data; }
};

struct shape {
    int d = 256, nq = 1, nk = 256, n_head_kv = 1, gqa = 6, n_seq = 1;
    int n_mask3 = 1;      // slices of the mask: 1 or n_seq
    int kv_size = 0;      // cells allocated; those from nk on hold NaN and must not matter
    std::string v = "q4_0", mask = "causal", k = "packed"; // k: packed (the cache) or f16 (packed by the call)
    bool sinks  = false;
    int  seed   = 1;

    int n_head() const { return n_head_kv * gqa; }
    std::string key() const; // two cases with one key share data and answer
};

struct problem {
    shape  s;
    float  scale = 0;
    buffer q;                          // f32 [seq][query][head][D], read through strides as [D, nq, n_head, n_seq]
    buffer k_rows;                     // f32 rows before packing [seq][cell][head][D]
    buffer k_f16;                      // the same rounded to f16
    buffer payload, scales;            // the cache: [seq][cell][head][D] bytes and [seq][cell][head][D/32] f16
    buffer v;                          // [seq][cell][head] rows
    buffer mask;                       // f16 [slice][query][nk]; null data when there is none
    buffer sinks;                      // f32 [head]; null data when there are none
    std::vector<double> answer;        // [seq][query][head][D]
    std::vector<char>   dead;          // [seq][query]: every cell masked

    int64_t v_row() const;             // bytes of a V row
};

problem make_problem(const shape & s);

// Attention on K and V unpacked to f16, [seq][kv][cell][D], as by a kernel that multiplies hidden cells by 0: f32 [seq][query][head][D].
std::vector<float> attend_unpacked(const problem & p, const uint16_t * k, const uint16_t * v);

// The reference packer (packed16.md section 2): one block of 32 to 32 bytes and f16 bits. mode 0 absmax, 1 mse.
uint16_t pack_block(const float * x, int8_t * q, int mode);

float    half_value(uint16_t bits);
uint16_t half_bits(float f); // to nearest even
