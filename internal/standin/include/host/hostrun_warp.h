// Warp operations: every lane of the warp brings a value and takes another lane's.
// All lanes must come, to the same source line, with the full mask: an AMD GPU
// ignores the mask and reads garbage from a lane that is elsewhere.

#pragma once

namespace hostrun {

// Brings `value` (size bytes) and returns, when the whole warp has come, all lanes' values.
HOSTRUN_RAW inline const exchange & meet(uint32_t mask, const void * value, size_t size, bool orders_memory, place p) {
    fiber * me = block.current;
    warp &  w  = block.warps[me->index / 32];
    if (mask != 0xffffffffu) {
        fail("%s at %s:%d: mask %08x: an AMD GPU ignores masks, so only 0xffffffff has one meaning", p.what, p.file, p.line, mask);
    }
    exchange & slot = w.slot[w.generation & 1];
    if (slot.arrived != 0 && !w.where.same(p)) {
        me->now   = state::at_warp_op;
        me->waits = p;
        stuck("lanes of one warp are at different warp operations");
    }
    w.where = p;
    for (size_t i = 0; i < size; ++i) {
        slot.value[me->index % 32][i] = ((const unsigned char *) value)[i];
    }
    slot.arrived |= 1u << (me->index % 32);
    if (slot.arrived != w.lanes) {
        wait(state::at_warp_op, p);
        return slot;
    }
    w.generation++;
    w.slot[w.generation & 1].arrived = 0;
    w.sync += orders_memory;
    const uint32_t first = me->index & ~31u;
    for (uint32_t i = first; i < first + 32 && i < block.size; ++i) {
        if (block.fibers[i].now == state::at_warp_op) {
            make_ready(block.fibers[i]);
        }
    }
    yield();
    return slot;
}

HOSTRUN_RAW inline int lane() { return (int) (block.current->index % 32); }

template <typename T> HOSTRUN_RAW T shuffle(uint32_t mask, T value, int src, place p) {
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= 16, "shuffles move whole words, 16 bytes at most");
    const int        n = (int) block.size - (int) (block.current->index & ~31u); // lanes of this warp
    const exchange & x = meet(mask, &value, sizeof(T), false, p);
    if (src >= n) {
        fail("%s at %s:%d: reads lane %d of a warp with %d lanes", p.what, p.file, p.line, src, n);
    }
    T out;
    __builtin_memcpy(&out, x.value[src], sizeof(T));
    return out;
}

HOSTRUN_RAW inline uint32_t ballot(uint32_t mask, int predicate, place p) {
    const unsigned char bit = predicate != 0;
    const exchange & x = meet(mask, &bit, 1, false, p);
    uint32_t out = 0;
    for (int i = 0; i < 32; ++i) {
        out |= (x.arrived >> i & 1) != 0 && x.value[i][0] != 0 ? 1u << i : 0;
    }
    return out;
}

HOSTRUN_RAW inline uint32_t lanes_here() { return block.warps[block.current->index / 32].lanes; }

} // namespace hostrun

#define HOSTRUN_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

// The width has no default: ggml's HIP mapping of these names needs all four arguments.
template <typename T> static inline T __shfl_sync(uint32_t mask, T v, int src, int width, HOSTRUN_AT) {
    return hostrun::shuffle(mask, v, (hostrun::lane() & ~(width - 1)) + (src & (width - 1)), {file, line, "__shfl_sync"});
}
template <typename T> static inline T __shfl_xor_sync(uint32_t mask, T v, int lanes, int width, HOSTRUN_AT) {
    const int self = hostrun::lane(), src = self ^ lanes;
    return hostrun::shuffle(mask, v, src >= ((self + width) & ~(width - 1)) ? self : src, {file, line, "__shfl_xor_sync"});
}
template <typename T> static inline T __shfl_up_sync(uint32_t mask, T v, unsigned delta, int width, HOSTRUN_AT) {
    const int self = hostrun::lane(), src = self - (int) delta;
    return hostrun::shuffle(mask, v, src < (self & ~(width - 1)) ? self : src, {file, line, "__shfl_up_sync"});
}
template <typename T> static inline T __shfl_down_sync(uint32_t mask, T v, unsigned delta, int width, HOSTRUN_AT) {
    const int self = hostrun::lane();
    return hostrun::shuffle(mask, v, (self & (width - 1)) + (int) delta >= width ? self : self + (int) delta, {file, line, "__shfl_down_sync"});
}
static inline uint32_t __ballot_sync(uint32_t mask, int p, HOSTRUN_AT) { return hostrun::ballot(mask, p, {file, line, "__ballot_sync"}); }
static inline int __all_sync(uint32_t mask, int p, HOSTRUN_AT) {
    return hostrun::ballot(mask, p, {file, line, "__all_sync"}) == hostrun::lanes_here();
}
static inline int __any_sync(uint32_t mask, int p, HOSTRUN_AT) { return hostrun::ballot(mask, p, {file, line, "__any_sync"}) != 0; }
static inline void __syncwarp(uint32_t mask = 0xffffffffu, HOSTRUN_AT) {
    const char none = 0;
    hostrun::meet(mask, &none, 1, true, {file, line, "__syncwarp"});
}
