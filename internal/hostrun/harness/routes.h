// The kernels of one V type behind a plain function, so that each type is its own translation unit.

#pragma once

#include <vector>

#include "problem.h"

// How a case is run.
struct run_plan {
    std::string route = "decode"; // decode, prefill, mma: the prefill on matrix tiles, or unpack: K and V for a kernel of somebody else
    int first = 0, rows = 1;      // the query rows of the problem that are in the call
    int cta   = 0;                // decode: chunks of a block; 0: all of them, so that the block merges for itself
    int columns = 0;              // decode on matrix tiles: columns of a block; 0: as the launch chooses
    int unit  = 1;                // decode: chunks in one partial result
    bool assume_causal = false;   // prefill: the seed's unsafe shortcut
    int sms   = 1;                // mma: multiprocessors to fill with shares of the cells
    int warps = 8;                // mma: 4: as where a block has little shared memory, 32: as where it has too little for tiles of 64 cells at D=128
};

// Runs the plan through the kernels' own launch code; the result is f32 [seq][query of the call][head][D].
using runner = std::vector<float> (*)(const problem & p, const run_plan & plan);

struct instance {
    const char * v;
    runner       run;
};
std::vector<instance> & instances();

// Registers an instance before main.
struct registration {
    explicit registration(const instance & i) { instances().push_back(i); }
};
