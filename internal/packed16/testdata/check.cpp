// Reads vectors (see vectors.go) without comments and compares what packed16-quantize.h makes of them. Prints one line for
// each difference, then a count; exits 1 when there was a difference, 2 when the input is not understood.

#include "packed16-quantize.h"

#include <initializer_list>
#include <stdio.h>

static bool in_form = true;

static uint32_t hex() {
    unsigned n = 0;
    in_form = scanf("%x", &n) == 1 && in_form;
    return n;
}

int main() {
    int n = 0;
    int n_different = 0;

    for (char name[64]; scanf("%63s", name) == 1;) {
        float x[PACKED16_BLOCK];
        for (float & v : x) {
            v = packed16_float(hex());
        }
        for (packed16_mode mode : { PACKED16_ABSMAX, PACKED16_MSE }) {
            int8_t q[PACKED16_BLOCK];
            bool   same = packed16_quantize_block(x, mode, q) == hex();
            for (int w = 0; w < PACKED16_BLOCK/4; w++) {
                uint32_t word = 0;
                for (int j = 0; j < 4; j++) {
                    word |= (uint32_t) (uint8_t) q[4*w + j] << 8*j;
                }
                same = (word == hex()) && same;
            }
            if (!in_form) {
                fprintf(stderr, "%s: not a vector\n", name);
                return 2;
            }
            if (!same) {
                printf("%s differs in %s\n", name, mode == PACKED16_MSE ? "mse" : "absmax");
                n_different++;
            }
            n++;
        }
    }

    printf("%d compared, %d different\n", n, n_different);
    return n == 0 || n_different != 0;
}
