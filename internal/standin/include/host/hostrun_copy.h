// Copies from global to shared memory that go on beside the thread (cp.async). They land when the thread waits for them and
// not before, so that a missing wait shows; reading past a buffer shows when a copy is begun.

#pragma once

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
