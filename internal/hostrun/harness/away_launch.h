// The launches of away.h, with the signatures of those in hostrun.h.

#pragma once

#include <tuple>
#include <utility>

#include "away.h"
#include "hostrun.h"

namespace hostrun::away {

template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_shared, Args &&... args) {
    std::tuple<std::decay_t<Params>...> bound(static_cast<std::decay_t<Params>>(std::forward<Args>(args))...);
    std::apply([&](const auto &... x) {
        const argument list[] = {{&x, sizeof(x)}...};
        send((const void *) kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, dynamic_shared, list, sizeof...(x));
    }, bound);
}

template <typename... Params> struct bound_launch {
    void (*kernel)(Params...);
    dim3   grid, block;
    size_t dynamic_shared;
    template <typename... Args> void operator()(Args &&... args) const {
        away::launch(kernel, grid, block, dynamic_shared, std::forward<Args>(args)...);
    }
};

template <typename... Params>
bound_launch<Params...> launcher(void (*kernel)(Params...), dim3 grid, dim3 block, size_t dynamic_shared = 0, cudaStream_t = nullptr) {
    return {kernel, grid, block, dynamic_shared};
}

} // namespace hostrun::away
