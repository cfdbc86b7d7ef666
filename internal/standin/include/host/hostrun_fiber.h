// Threads of a block as fibers on one OS thread, and the block barrier.
// A fiber gives way at barriers, at warp operations and, in traced builds, at
// shared accesses; the next one is drawn at random from those that can run.

#pragma once

namespace hostrun {

// Where in the source a thread waits; two threads meet only at the same place.
struct place {
    const char * file = "";
    int          line = 0;
    const char * what = "";
    HOSTRUN_RAW bool same(const place & o) const { return line == o.line && strcmp(file, o.file) == 0 && strcmp(what, o.what) == 0; }
};

enum class state { ready, at_barrier, at_warp_op, done };

struct fiber {
    void *   sp    = nullptr; // saved stack pointer
    char *   stack = nullptr; // lowest usable byte
    uint3    thread{};
    uint32_t index = 0; // linear thread index in the block
    state    now   = state::ready;
    place    waits;
    uint32_t warp_generation = 0; // warp operations taken part in
};

// One exchange of values between the lanes of a warp; two, because a lane may arrive
// at the next operation before another has read the result of this one.
struct exchange {
    uint32_t arrived = 0;
    alignas(16) unsigned char value[32][16];
};
struct warp {
    uint32_t lanes      = 0; // mask of lanes that exist
    uint32_t generation = 0;
    uint32_t sync       = 0; // memory-ordering barriers passed (__syncwarp)
    place    where;
    exchange slot[2];
};

struct block_state {
    std::vector<fiber>    fibers;
    std::vector<warp>     warps;
    std::vector<uint32_t> ready; // indices of fibers that can run
    fiber *  current   = nullptr;
    uint32_t size      = 0; // threads
    uint32_t at_barrier = 0, done = 0;
    uint32_t epoch     = 1; // block barriers passed, + 1
    place    barrier;
    void (*body)(void *) = nullptr;
    void * argument      = nullptr;
    void * main_sp       = nullptr;
    const void * main_stack = nullptr;
    size_t main_stack_size  = 0;
};
inline block_state block;

HOSTRUN_RAW inline uint32_t thread_index() { return block.current->index; }
HOSTRUN_RAW inline uint32_t block_epoch() { return block.epoch; }
HOSTRUN_RAW inline uint32_t warp_sync() { return block.warps[block.current->index / 32].sync; }

void run_grid(void (*body)(void *), void * argument, const void * kernel, dim3 grid, dim3 size);

void yield();                      // stay ready, let another fiber run
void wait(state s, place p);       // until someone makes this fiber ready
void make_ready(fiber & f);
void syncthreads(place p);
[[noreturn]] void stuck(const char * why);

} // namespace hostrun

// Coordinates as kernels name them. blockDim and gridDim do not change during a launch.
inline dim3 blockDim, gridDim;
#define threadIdx (hostrun::here.thread)
#define blockIdx  (hostrun::here.block)

static inline void __syncthreads(const char * file = __builtin_FILE(), int line = __builtin_LINE()) {
    hostrun::syncthreads({file, line, "__syncthreads"});
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
