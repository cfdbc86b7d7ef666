// Copies from global to shared memory that go on beside the thread (cp.async). On a GPU one may land at any time between its
// begin and the wait for it. Here it spoils its destination when it is begun, so that overwriting what others still read is a
// race and reading too early gives NaN, and lands when the thread waits for it and not before, so that a missing wait shows.
// Reading past a buffer shows when a copy is begun.

#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

namespace hostrun {

struct copy_under_way {
    void *        to;
    int           n;
    unsigned char bytes[16];
};

// Groups of copies of each thread of the running block, oldest first; the last one is open.
inline std::vector<std::vector<std::vector<copy_under_way>>> copies;

HOSTRUN_RAW inline std::vector<std::vector<copy_under_way>> & own_copies() {
    copies.resize(std::max(copies.size(), (size_t) block.size));
    auto & own = copies[thread_index()];
    if (own.empty()) {
        own.resize(1);
    }
    return own;
}

static inline void copy_async(void * to, const void * from, int n) {
    copy_under_way c{to, n, {}};
    memcpy(c.bytes, from, n);
    unsigned char spoilt[sizeof(c.bytes)];
    std::fill_n(spoilt, sizeof(spoilt), (unsigned char) 0xff);
    memcpy(to, spoilt, n);
    own_copies().back().push_back(c);
}

HOSTRUN_RAW inline void copy_commit() { own_copies().emplace_back(); }

// Lands all but the last n closed groups.
static inline void copy_wait(int n) {
    auto & own = own_copies();
    while ((int) own.size() - 1 > n) {
        for (const copy_under_way & c : own.front()) {
            memcpy(c.to, c.bytes, c.n);
        }
        own.erase(own.begin());
    }
}

} // namespace hostrun
