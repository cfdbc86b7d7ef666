// Checks the matrix tiles of packed16-mma.cuh, in the layout the program was compiled for, against plain sums.
// Prints one line per product: its name and the largest difference.

#define HOSTRUN_MAIN
#include "packed16-mma.cuh"

#include <algorithm>
#include <vector>

#define M PACKED16_MMA_M
#define N PACKED16_MMA_N

// c = start + A*B over two steps of 32 bytes, loaded the two ways. grid 1, block 32.
static __global__ void ints(const int8_t * A, const int8_t * B, int * C, const bool wide) {
    struct tiles { alignas(16) int8_t a[M][80], b[2*N][80]; };
    __shared__ tiles smem;
    const int lane = threadIdx.x;
    for (int i = lane; i < M*64; i += 32) {
        smem.a[i/64][i%64] = A[i];
    }
    for (int i = lane; i < 2*N*64; i += 32) {
        smem.b[i/64][i%64] = B[i];
    }
    __syncthreads();
    packed16_mma_c<int> c[2];
    for (int n = 0; n < 2; ++n) {
        for (int r = 0; r < packed16_mma_c<int>::n; ++r) {
            c[n].x[r] = 1000;
        }
    }
    for (int k = 0; k < 2; ++k) {
        packed16_mma_a a;
        packed16_mma_b b[2];
        if (wide) {
            packed16_mma_load_wide(a, A + 32*k, 64, lane);
            packed16_mma_load_wide(b[0], B + 32*k, 64, lane);
            packed16_mma_load_wide(b[1], B + N*64 + 32*k, 64, lane);
        } else {
            packed16_mma_load(a, &smem.a[0][32*k], 80, lane);
            packed16_mma_load(b, &smem.b[0][32*k], 80, lane);
        }
        for (int n = 0; n < 2; ++n) {
            packed16_mma_s8(c[n], a, b[n], c[n], lane);
        }
    }
    for (int n = 0; n < 2; ++n) {
        for (int r = 0; r < packed16_mma_c<int>::n; ++r) {
            C[packed16_mma_c<int>::row(r, lane)*2*N + n*N + packed16_mma_c<int>::col(r, lane)] = c[n].x[r];
        }
    }
}

// O^T = V^T * P over 32 cells: V f16 [cell][16 dimensions], P f32 [cell][N], in the way of the kernels. top: the
// largest weight of each column. grid 1, block 32.
static __global__ void halves(const uint16_t * V, const float * P, float * O, float * top) {
    __shared__ packed16_mma_vt<16, 32> vt;
    const int lane = threadIdx.x;
    for (int i = lane; i < 16*4; i += 32) {
        const int pair = i/4, d = i%4*4;
        vt.store(pair, d, *(const uint2 *) &V[(2*pair + 0)*16 + d], *(const uint2 *) &V[(2*pair + 1)*16 + d]);
    }
    __syncthreads();
    packed16_mma_c<float> o = {}, p;
    float m[packed16_mma_c<float>::n_cols] = {};
    for (int k = 0; k < 32; k += 16) {
        for (int r = 0; r < packed16_mma_c<float>::n; ++r) {
            p.x[r] = P[(k + packed16_mma_c<float>::row(r, lane))*N + packed16_mma_c<float>::col(r, lane)];
            float & x = m[r % packed16_mma_c<float>::n_cols];
            x = fmaxf(x, p.x[r]);
        }
        packed16_mma_a a;
        packed16_mma_b b;
        vt.load(a, 0, k, lane);
        packed16_mma_weights(b, p, lane);
        packed16_mma_f16(o, a, b, lane);
    }
    for (int r = 0; r < packed16_mma_c<float>::n; ++r) {
        O[packed16_mma_c<float>::row(r, lane)*N + packed16_mma_c<float>::col(r, lane)] = o.x[r];
    }
    for (int j = 0; j < packed16_mma_c<float>::n_cols; ++j) {
        top[packed16_mma_c<float>::col(j, lane)] = packed16_mma_over_rows(m[j], [](float x, float y) { return fmaxf(x, y); });
    }
}

int main() {
    hostrun::random_state random{PACKED16_MMA_LAYOUT};
    std::vector<int8_t> A(M*64), B(2*N*64);
    for (auto * v : {&A, &B}) {
        for (int8_t & x : *v) {
            x = (int8_t) (random.next() % 255 - 127);
        }
    }
    for (const bool wide : {false, true}) {
        std::vector<int> C(M*2*N, -1);
        hostrun::launch(ints, dim3(1), dim3(32), 0, A.data(), B.data(), C.data(), wide);
        int worst = 0;
        for (int i = 0; i < M; ++i) {
            for (int j = 0; j < 2*N; ++j) {
                int want = 1000;
                for (int k = 0; k < 64; ++k) {
                    want += A[i*64 + k]*B[j*64 + k];
                }
                worst = std::max(worst, std::abs(want - C[i*2*N + j]));
            }
        }
        printf("%s %d\n", wide ? "int8 from memory" : "int8 from shared memory", worst);
    }

    std::vector<uint16_t> V(32*16);
    std::vector<float>    P(32*N), O(16*N, -1.0f), top(N, -1.0f);
    for (uint16_t & v : V) {
        v = __half_as_ushort(__float2half_rn((float) (int) (random.next() % 201) - 100.0f));
    }
    for (float & p : P) {
        p = (float) (random.next() % 1024)/1024.0f; // exact in f16
    }
    hostrun::launch(halves, dim3(1), dim3(32), 0, V.data(), P.data(), O.data(), top.data());
    double worst = 0, worst_top = 0;
    for (int j = 0; j < N; ++j) {
        double most = 0;
        for (int d = 0; d < 16; ++d) {
            double want = 0;
            for (int k = 0; k < 32; ++k) {
                want += (double) __half2float(__ushort_as_half(V[k*16 + d]))*P[k*N + j];
            }
            worst = std::max(worst, std::abs(want - O[d*N + j]));
        }
        for (int k = 0; k < 32; ++k) {
            most = std::max(most, (double) P[k*N + j]);
        }
        worst_top = std::max(worst_top, std::abs(most - top[j]));
    }
    printf("f16 %g\nmaximum %g\n", worst, worst_top);
    return 0;
}
