// Shared memory of the running block: found, poisoned, and watched.
//
// Every __shared__ variable is a static in the section .hostrun.shared. The program's own
// symbol table says which variable belongs to which kernel (a static of f is named
// _ZZ<f>E<name>), so only the running kernel's variables are accessible; the rest of
// the section is poisoned for ASan, which catches running off the end.

#pragma once

#include <cstdarg>
#include <string>
#include <vector>

#include <cxxabi.h>
#include <sanitizer/asan_interface.h>

#define HOSTRUN_RAW __attribute__((no_sanitize("address", "undefined", "coverage")))

namespace hostrun {

struct settings {
    uint64_t seed    = 1;
    uint32_t preempt = 0; // switch fibers at one in `preempt` shared accesses (traced builds); 0: never
    // Leaves out the barrier at a source line, "file.cuh:123": a test's way of breaking a kernel.
    std::string skip_barrier;
};
inline settings options;

// What was done since the counts were last cleared.
struct tally {
    uint64_t dp4a = 0, barriers = 0, skipped = 0;
};
inline tally counts;

// What is running, for messages.
inline std::string running_kernel = "(no kernel)";
inline bool        in_kernel      = false;

// The coordinates of the running thread.
struct position { uint3 thread, block; };
inline position here;

[[noreturn]] HOSTRUN_RAW inline void fail(const char * format, ...) {
    fflush(stdout);
    fprintf(stderr, "hostrun: ");
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    if (in_kernel) {
        fprintf(stderr, "\n  in %s, block (%u,%u,%u), thread (%u,%u,%u), seed %llu", running_kernel.c_str(), here.block.x,
                here.block.y, here.block.z, here.thread.x, here.thread.y, here.thread.z, (unsigned long long) options.seed);
    }
    fprintf(stderr, "\n");
    fflush(stderr);
    _Exit(86);
}

// A small generator of its own, so that a seed means the same everywhere.
struct random_state {
    uint64_t s = 1;
    HOSTRUN_RAW uint32_t next() {
        s += 0x9e3779b97f4a7c15ull;
        uint64_t z = s;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return (uint32_t) ((z ^ (z >> 31)) >> 16);
    }
    HOSTRUN_RAW uint32_t below(uint32_t n) { return (uint32_t) (((uint64_t) next() * n) >> 32); }
};
inline random_state rng;

struct symbol { uintptr_t at; size_t size; std::string name; };
struct shared_section {
    uintptr_t lo = 0, hi = 0;
    std::vector<symbol> variables; // in the section
    std::vector<symbol> functions;
};
const shared_section & shared_map(); // read once from the program's own ELF file

// One shadow cell per byte of the running kernel's shared variables.
struct shadow {
    uint32_t write_epoch = 0, read_epoch = 0; // block barriers passed, +1; 0: never
    uint32_t write_sync = 0, read_sync = 0;   // warp barriers passed by that warp
    int32_t  writer = -1, reader = -1;        // thread index, or several_*
    bool     atomic = false;                  // the write was an atomic: others may follow it without a barrier
    const void * write_pc = nullptr, * read_pc = nullptr;
};
inline shadow *  shadows   = nullptr; // of the bytes [shadow_lo, shadow_hi)
inline uintptr_t shadow_lo = 0, shadow_hi = 0;
#if defined(HOSTRUN_TRACED)
inline constexpr bool traced = true; // compiled with -fsanitize-coverage=trace-loads,trace-stores
#else
inline constexpr bool traced = false;
#endif

// Makes the kernel's shared variables accessible and fills them with garbage that is NaN as float and half.
void shared_begin(const void * kernel, uint32_t pattern);
void shared_refill(uint32_t pattern);
void shared_end();

enum class access { read, write, atomic };

// Called by the trace hooks and by atomics; pc is the place of the access.
void shared_access(uintptr_t at, size_t size, access how, const void * pc);

} // namespace hostrun

