// The matrix-tile prefill's scratch: what a graph reserves for a call has room for every call with no more query rows and cells, and
// for what its launch makes of it. Random calls; a line on standard output per fault.

#define HOSTRUN_MAIN
#include "packed16-launch.cuh"

#include <random>

static int faults = 0;

static void check(const char * what, const packed16_args & a, const int n_seq, const int D, const int nsm, const packed16_args & most, const size_t need, const size_t room) {
    if (need > room && faults++ < 8) {
        printf("%s: nq %d nk %d of at most nq %d nk %d, gqa %d kv %d seq %d D %d, %d multiprocessors: needs %zu, has %zu\n", what, a.nq, a.nk,
            most.nq, most.nk, a.gqa, a.n_head_kv, n_seq, D, nsm, need, room);
    }
}

// What packed16_launch_prefill_mma makes of a call where `resident` blocks fit.
template <int D, int shape>
static packed16_prefill_scratch launched(const packed16_args & a, const int n_seq, const int nsm, const int resident) {
    using tile = packed16_prefill_tile<D, shape>;
    const int    n_x    = (a.nq*a.gqa + tile::cols - 1)/tile::cols;
    const int    n_rows = packed16_prefill_rows(a, n_seq, tile::cols);
    const int    slots  = nsm*std::min(resident, tile::resident);
    const size_t units  = n_rows ? 0 : packed16_prefill_units(a, n_seq, D, tile::cols, tile::bn, nsm, slots);
    packed16_prefill_scratch s = {};
    s.parts   = n_rows ? (size_t) 2*tile::cols*packed16_prefill_shares(a, n_rows, tile::bn, slots) : units > 1 ? (size_t) n_seq*a.n_head*a.nq*units : 0;
    s.items   = (size_t) n_rows*a.n_head_kv;
    s.classes = (size_t) packed16_class_stride(a.nk, tile::bn)*n_x*a.n_mask3;
    return s;
}

template <int D>
static void calls(std::mt19937 & random, const int n) {
    const auto below = [&](const int n) { return (int) (random() % n); };
    const auto size  = [&](const int n) { return 1 + below(1 + below(n)); }; // small ones too
    for (int i = 0; i < n; ++i) {
        packed16_args most = {};
        most.nq        = size(8192);
        most.nk        = size(1 << (1 + below(20)));
        most.gqa       = size(16);
        most.n_head_kv = size(32);
        most.n_head    = most.gqa*most.n_head_kv;
        const int n_seq = size(64), nsm = size(160);
        most.n_mask3   = below(2) ? n_seq : 1;
        const packed16_prefill_scratch room = packed16_prefill_scratch_of(most, n_seq, D, nsm);
        for (int j = 0; j < 20; ++j) {
            packed16_args a = most;
            a.nq = j == 0 ? most.nq : size(most.nq);
            a.nk = j == 0 ? most.nk : size(most.nk);
            const int resident = 1 + below(8);
            for (const packed16_prefill_scratch & need : {
                    launched<D, 8>(a, n_seq, nsm, resident), launched<D, 4>(a, n_seq, nsm, resident),
                    launched<D, PACKED16_SHAPE_LOW>(a, n_seq, nsm, resident), packed16_prefill_scratch_of(a, n_seq, D, nsm)}) {
                check("results", a, n_seq, D, nsm, most, need.parts,   room.parts);
                check("items",   a, n_seq, D, nsm, most, need.items,   room.items);
                check("classes", a, n_seq, D, nsm, most, need.classes, room.classes);
            }
        }
    }
}

int main() {
    std::mt19937 random(1);
    calls< 64>(random, 2000);
    calls<128>(random, 2000);
    calls<256>(random, 2000);
    return faults > 0;
}
