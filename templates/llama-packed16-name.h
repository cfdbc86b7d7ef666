#pragma once

// The packed16 K cache as users name it. A K cache of type I32 is packed16: int8 payload words with one F16 scale per
// 32 dimensions in a second tensor. There is no such V cache, so these helpers are for type_k alone.

#include "ggml.h"

#include <cstdlib>
#include <cstring>
#include <string>

constexpr enum ggml_type LLAMA_TYPE_K_PACKED16 = GGML_TYPE_I32;

inline const char * llama_type_k_name(enum ggml_type type) {
    return type == LLAMA_TYPE_K_PACKED16 ? "packed16" : ggml_type_name(type);
}

// The packed16 type, or GGML_TYPE_COUNT for any other name; "i32" is a storage type and names no cache.
inline enum ggml_type llama_type_k_from_name(const char * name) {
    return strcmp(name, llama_type_k_name(LLAMA_TYPE_K_PACKED16)) == 0 ? LLAMA_TYPE_K_PACKED16 : GGML_TYPE_COUNT;
}

constexpr const char * LLAMA_TYPE_K_FLAG = "GGML_CUDA_ROCM_Q8K_DOT4_PACKED16_K_CACHE";

// What a program starts from when its user named no K type: packed16 in place of F16 if the environment asks for it.
// Ask before the command line is read, so that an explicit type wins, and for the target context alone.
inline enum ggml_type llama_type_k_default(enum ggml_type type) {
    const char * value = getenv(LLAMA_TYPE_K_FLAG);
    return type == GGML_TYPE_F16 && value != nullptr && strcmp(value, "1") == 0 ? LLAMA_TYPE_K_PACKED16 : type;
}

// What is wrong with the value of the flag; empty if it is one of those allowed.
inline std::string llama_type_k_env_error() {
    const char * value = getenv(LLAMA_TYPE_K_FLAG);
    if (value == nullptr || value[0] == '\0' || strcmp(value, "0") == 0 || strcmp(value, "1") == 0) {
        return "";
    }
    return std::string(LLAMA_TYPE_K_FLAG) + "=" + value + " is not allowed: use 0 or 1";
}
