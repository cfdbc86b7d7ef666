// bfloat16 by name and size: upstream's headers mention it, packed16 kernels do not use it.

#pragma once

#include "hip_runtime.h"

struct __hip_bfloat16 {
    unsigned short data;
    __hip_bfloat16() = default;
    __host__ __device__ __hip_bfloat16(float f) : data((unsigned short) (__builtin_bit_cast(unsigned, f) >> 16)) {}
    __host__ __device__ operator float() const { return __builtin_bit_cast(float, (unsigned) data << 16); }
};
struct __hip_bfloat162 {
    __hip_bfloat16 x, y;
};
