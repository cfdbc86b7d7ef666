// The one copy of what hostrun_fiber.h declares; included by the unit that defines HOSTRUN_MAIN.

#include <sys/mman.h>

#include <algorithm>

#include <sanitizer/common_interface_defs.h>

// Saves the callee-saved registers and the stack pointer, and continues on another stack.
extern "C" void hostrun_switch(void ** save_sp, void * load_sp);
#if defined(__x86_64__)
asm(R"(
.text
.globl hostrun_switch
.type hostrun_switch, @function
hostrun_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size hostrun_switch, . - hostrun_switch
)");
static const int hostrun_frame_words = 8, hostrun_entry_word = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.globl hostrun_switch
.type hostrun_switch, %function
hostrun_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size hostrun_switch, . - hostrun_switch
)");
static const int hostrun_frame_words = 20, hostrun_entry_word = 11;
#else
#error "hostrun switches stacks on x86-64 and aarch64 only"
#endif

namespace hostrun {

static const size_t stack_size = 128 * 1024;

// Leaves the running fiber (or, with from == nullptr, the scheduler's own stack) for another.
static HOSTRUN_RAW void go(fiber * from, fiber * to) {
    block.current = to;
    void *  dummy;
    void ** save = from != nullptr ? &from->sp : &block.main_sp;
    if (to != nullptr) {
        here.thread = to->thread;
        __sanitizer_start_switch_fiber(from == nullptr ? &dummy : nullptr, to->stack, stack_size);
        hostrun_switch(save, to->sp);
    } else {
        __sanitizer_start_switch_fiber(nullptr, block.main_stack, block.main_stack_size);
        hostrun_switch(save, block.main_sp);
    }
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

// Takes a random fiber from the ready list.
static HOSTRUN_RAW fiber * next() {
    if (block.ready.empty()) {
        return nullptr;
    }
    const uint32_t at = rng.below((uint32_t) block.ready.size());
    fiber * f = &block.fibers[block.ready[at]];
    block.ready[at] = block.ready.back();
    block.ready.pop_back();
    return f;
}

static HOSTRUN_RAW void entry() {
    const void * from = nullptr;
    size_t from_size  = 0;
    __sanitizer_finish_switch_fiber(nullptr, &from, &from_size);
    if (block.main_stack == nullptr) { // the first fiber ever is entered from the main stack
        block.main_stack      = from;
        block.main_stack_size = from_size;
    }
    block.body(block.argument);
    block.current->now = state::done;
    block.done++;
    if (block.at_barrier > 0) {
        stuck("a thread returned while others wait at a barrier");
    }
    go(block.current, next());
    __builtin_trap();
}

static HOSTRUN_RAW void reset(fiber & f, uint32_t index, dim3 size) {
    if (f.stack == nullptr) {
        char * p = (char *) mmap(nullptr, stack_size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == (char *) MAP_FAILED || mprotect(p, 4096, PROT_NONE) != 0) {
            fail("no memory for the stack of thread %u", index);
        }
        f.stack = p + 4096;
    }
    void ** top = (void **) (f.stack + stack_size) - 2;
    __asan_unpoison_memory_region(f.stack + stack_size - 4096, 4096);
    void ** frame = top - hostrun_frame_words;
    for (int i = 0; i < hostrun_frame_words; ++i) {
        frame[i] = nullptr;
    }
    frame[hostrun_entry_word] = (void *) entry;
    f.sp     = frame;
    f.index  = index;
    f.thread = {index % size.x, index / size.x % size.y, index / (size.x * size.y)};
    f.now    = state::ready;
    f.warp_generation = 0;
}

static HOSTRUN_RAW void run_block(dim3 size) {
    block.at_barrier = block.done = 0;
    block.epoch = 1;
    block.ready.clear();
    for (uint32_t i = 0; i < block.size; ++i) {
        reset(block.fibers[i], i, size);
        block.ready.push_back(i);
    }
    for (uint32_t w = 0; w < block.warps.size(); ++w) {
        const uint32_t lanes = block.size - w * 32;
        block.warps[w] = warp();
        block.warps[w].lanes = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    }
    go(nullptr, next());
    if (block.done != block.size) {
        stuck("no thread can go on");
    }
}

void run_grid(void (*body)(void *), void * argument, const void * kernel, dim3 grid, dim3 size) {
    if (in_kernel) {
        fail("a kernel launched a kernel");
    }
    block.size = size.x * size.y * size.z;
    const uint64_t blocks = (uint64_t) grid.x * grid.y * grid.z;
    if (block.size == 0 || block.size > 1024 || blocks == 0 || grid.y > 65535 || grid.z > 65535) {
        fail("no GPU launches grid (%u,%u,%u) of blocks (%u,%u,%u)", grid.x, grid.y, grid.z, size.x, size.y, size.z);
    }
    // Seeded by the launch alone, so that a case repeats whatever ran before it.
    rng.s = options.seed;
    block.body     = body;
    block.argument = argument;
    block.fibers.resize(std::max<size_t>(block.fibers.size(), block.size));
    block.warps.resize((block.size + 31) / 32);
    blockDim = size;
    gridDim  = grid;
    shared_begin(kernel, 0);
    std::vector<uint32_t> order(blocks);
    for (uint32_t i = 0; i < blocks; ++i) {
        order[i] = i;
    }
    for (uint32_t i = (uint32_t) blocks; i > 1; --i) {
        std::swap(order[i - 1], order[rng.below(i)]);
    }
    in_kernel = true;
    for (uint32_t i : order) {
        // Both patterns are NaN as float and as either half, and different as integers.
        shared_refill(rng.next() % 2 ? 0xffffffffu : 0x7fff7fffu);
        copies.clear(); // those that a block did not wait for
        here.block = {i % grid.x, i / grid.x % grid.y, i / (grid.x * grid.y)};
        run_block(size);
    }
    in_kernel = false;
    shared_end();
}

HOSTRUN_RAW void make_ready(fiber & f) {
    f.now = state::ready;
    block.ready.push_back(f.index);
}

HOSTRUN_RAW void yield() {
    fiber * me = block.current;
    block.ready.push_back(me->index);
    fiber * to = next();
    if (to == me) {
        block.current = me;
        return;
    }
    go(me, to);
}

HOSTRUN_RAW void wait(state s, place p) {
    fiber * me = block.current;
    me->now    = s;
    me->waits  = p;
    fiber * to = next();
    if (to == nullptr) {
        stuck("no thread can go on");
    }
    go(me, to);
}

HOSTRUN_RAW void syncthreads(place p) {
    if (!in_kernel) {
        fail("__syncthreads outside a kernel");
    }
    if (!options.skip_barrier.empty()) {
        const char * slash = strrchr(p.file, '/');
        if (options.skip_barrier == std::string(slash != nullptr ? slash + 1 : p.file) + ":" + std::to_string(p.line)) {
            counts.skipped++;
            return;
        }
    }
    if (block.done > 0) {
        stuck("a barrier is reached after another thread has returned");
    }
    if (block.at_barrier > 0 && !block.barrier.same(p)) {
        block.current->now   = state::at_barrier;
        block.current->waits = p;
        stuck("threads of one block wait at different barriers");
    }
    block.barrier = p;
    if (++block.at_barrier < block.size) {
        wait(state::at_barrier, p);
        return;
    }
    block.at_barrier = 0;
    block.epoch++;
    counts.barriers++;
    for (uint32_t i = 0; i < block.size; ++i) {
        if (block.fibers[i].now == state::at_barrier) {
            make_ready(block.fibers[i]);
        }
    }
    yield();
}

// Says who waits where, and stops.
void stuck(const char * why) {
    std::string text;
    std::vector<std::pair<std::string, uint32_t>> groups;
    for (uint32_t i = 0; i < block.size; ++i) {
        const fiber & f = block.fibers[i];
        std::string at  = f.now == state::done ? "returned" : "still running";
        if (f.now == state::at_barrier || f.now == state::at_warp_op) {
            const char * slash = strrchr(f.waits.file, '/');
            at = std::string(f.waits.what) + " at " + (slash != nullptr ? slash + 1 : f.waits.file) + ":" + std::to_string(f.waits.line);
        }
        auto g = std::find_if(groups.begin(), groups.end(), [&](const auto & e) { return e.first == at; });
        if (g == groups.end()) {
            groups.push_back({at, 1});
        } else {
            g->second++;
        }
    }
    for (const auto & [at, n] : groups) {
        text += "\n    " + std::to_string(n) + " threads: " + at;
    }
    fail("diverged: %s%s", why, text.c_str());
}

} // namespace hostrun
