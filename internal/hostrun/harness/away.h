// Launches that leave the program: with HARNESS_AWAY, kernel<<<…>>>(…) sends the kernel's address, the launch, its
// arguments and every live buffer down file descriptor 4, and goes on with the buffers that come back on 3. What
// is at the other end runs the compiled code of another machine (internal/rdna3), driven by the kernels' own launch
// code. Addresses of this process are the addresses there; buffers lie 4 GiB apart, so that no stride leads from one into another.

#pragma once

#include <cstddef>
#include <cstdint>

namespace hostrun::away {

void * allocate(size_t n);
void   release(void * p);

struct argument {
    const void * data;
    size_t       size;
};

void send(const void * kernel, const uint32_t (&grid)[3], const uint32_t (&block)[3], size_t dynamic_shared, const argument * args,
    size_t n_args);

} // namespace hostrun::away
