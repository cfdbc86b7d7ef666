// Vector types with the sizes and alignments of CUDA's and HIP's, so that one assignment is one load.
// The includer defines DOT4FA_HD: what a function of host and device is declared with.

#pragma once

#define DOT4FA_VEC(T, N)                                                        \
    struct __attribute__((aligned(2 * sizeof(T)))) N##2 { T x, y; };            \
    struct N##3 { T x, y, z; };                                                 \
    struct __attribute__((aligned(4 * sizeof(T)))) N##4 { T x, y, z, w; };      \
    DOT4FA_HD N##2 make_##N##2(T x, T y) { return {x, y}; }                     \
    DOT4FA_HD N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }             \
    DOT4FA_HD N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
DOT4FA_VEC(int8_t, char)
DOT4FA_VEC(uint8_t, uchar)
DOT4FA_VEC(int16_t, short)
DOT4FA_VEC(uint16_t, ushort)
DOT4FA_VEC(int32_t, int)
DOT4FA_VEC(uint32_t, uint)
DOT4FA_VEC(float, float)
#undef DOT4FA_VEC
