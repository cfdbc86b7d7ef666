// Merges the same partial results in the ways there are, the kernel packed16_merge with 64 or 128 dimensions a block and the blocks of
// a cluster, and compares bits. The cluster's pushes are plain stores here. Prints what differs in each shape, and what was compared.

#define HOSTRUN_MAIN
#include "packed16-cluster.cuh"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

// The post of block `self`: counts the bytes that arrive where.
template <int D, int cols>
struct plain_post {
    using inbox_t = packed16_cluster_inbox<D, cols>;
    inbox_t & inbox;
    inbox_t * all;
    int *     bytes;

    template <typename T> void push(const T & to, const int rank, const T x) const {
        const size_t at = (const char *) &to - (const char *) &inbox;
        *(T *) ((char *) &all[rank] + at) = x;
        bytes[rank] += sizeof(T);
    }
};

template <int D, int cols, int threads>
static __global__ void send(const packed16_cluster_parts<D, cols> * own, packed16_cluster_inbox<D, cols> * all, int * bytes, const int n) {
    __shared__ packed16_cluster_parts<D, cols> smem;
    for (int i = threadIdx.x; i < n*D; i += threads) {
        smem.acc[i/D][i%D] = own[blockIdx.x].acc[i/D][i%D];
    }
    for (int c = threadIdx.x; c < n; c += threads) {
        smem.meta[c] = own[blockIdx.x].meta[c];
    }
    const plain_post<D, cols> post = {all[blockIdx.x], all, bytes};
    packed16_cluster_send<D, cols, threads>(post, smem, n, blockIdx.x, gridDim.x);
}

template <int D, int cols, int threads>
static __global__ void merge(const packed16_cluster_inbox<D, cols> * all, const float * sinks, float * dst, const packed16_args args,
        const int seq, const int kv, const int col0, const int n) {
    packed16_cluster_merge<D, cols, threads>(all[blockIdx.x], sinks, dst, args, seq, kv, col0, n, blockIdx.x);
}

static int differ, compared, wrong_bytes;

static void compare(const char * what, const int D, const packed16_args & args, const float * want, const float * got, const size_t n) {
    int bad = 0;
    for (size_t i = 0; i < n; ++i) {
        bad += std::isnan(want[i]) ? !std::isnan(got[i]) : memcmp(&want[i], &got[i], sizeof(float)) != 0;
    }
    if (bad > 0) {
        printf("%s, D %d, %d units of %d chunks, nq %d, gqa %d: %d of %zu differ\n",
            what, D, args.n_units, args.unit_chunks, args.nq, args.gqa, bad, n);
    }
    differ += bad;
    compared += n;
}

// cols 0: without a cluster.
template <int D, int cols>
static void check(const int n_units, const int unit_chunks, const int nq, const int gqa, const bool with_sinks, const int seed) {
    constexpr int threads = D == 64 ? 128 : 256;
    const int n_seq = 2, n_kv = 2, n_cols = nq*gqa;
    std::mt19937 random(seed);
    std::normal_distribution<float> gauss;

    packed16_args args = {};
    args.nq        = nq;
    args.gqa       = gqa;
    args.n_head_kv = n_kv;
    args.n_head    = n_kv*gqa;
    args.n_units   = n_units;
    args.unit_chunks = unit_chunks;

    const size_t rows = (size_t) n_seq*n_kv*n_units*n_cols;
    std::vector<float4> parts_(rows*D/4), want_((size_t) n_seq*nq*args.n_head*D/4), got_(want_.size());
    std::vector<float2> meta(rows);
    std::vector<float> sinks(args.n_head);
    float * parts = (float *) parts_.data();
    for (size_t r = 0; r < rows; ++r) {
        const bool dead = random()%5 == 0 || r%n_cols == 1; // column 1 sees nothing
        meta[r] = dead ? float2{PACKED16_MAX_FLOOR, 0.0f} : float2{20.0f*gauss(random), std::fabs(gauss(random)) + 0.5f};
        for (int d = 0; d < D; ++d) {
            parts[r*D + d] = dead ? 0.0f : random()%50 == 0 ? -0.0f : gauss(random);
        }
        if (r == 0) {
            parts[D - 1] = std::numeric_limits<float>::infinity();
            parts[D - 2] = std::numeric_limits<float>::quiet_NaN();
        }
    }
    for (float & x : sinks) {
        x = 20.0f*gauss(random);
    }
    float * want = (float *) want_.data();
    float * got  = (float *) got_.data();
    const size_t n_out = want_.size()*4;
    for (size_t i = 0; i < n_out; ++i) {
        want[i] = got[i] = 12345.0f;
    }
    const float * s = with_sinks ? sinks.data() : nullptr;
    hostrun::launch(packed16_merge<D, 1>, dim3(n_cols*(D/packed16_merge_dims(1)), n_kv, n_seq), dim3(PACKED16_MERGE_THREADS), 0,
        parts, meta.data(), s, want, args);

    if constexpr (D >= packed16_merge_dims(2)) {
        hostrun::launch(packed16_merge<D, 2>, dim3(n_cols*(D/packed16_merge_dims(2)), n_kv, n_seq), dim3(PACKED16_MERGE_THREADS), 0,
            parts, meta.data(), s, got, args);
        compare("128 dimensions a block", D, args, want, got, n_out);
    }
    if constexpr (cols > 0) {
        using inbox_t = packed16_cluster_inbox<D, cols>;
        for (int seq = 0; seq < n_seq; ++seq) {
            for (int kv = 0; kv < n_kv; ++kv) {
                for (int col0 = 0; col0 < n_cols; col0 += cols) {
                    const int n = std::min(cols, n_cols - col0);
                    std::vector<packed16_cluster_parts<D, cols>> own(n_units);
                    std::vector<inbox_t> all(n_units);
                    memset((void *) own.data(), 0xFF, n_units*sizeof(own[0]));
                    memset((void *) all.data(), 0xFF, n_units*sizeof(all[0]));
                    for (int u = 0; u < n_units; ++u) {
                        for (int c = 0; c < n; ++c) {
                            const size_t row = (((size_t) seq*n_kv + kv)*n_units + u)*n_cols + col0 + c;
                            memcpy(own[u].acc[c], parts + row*D, D*sizeof(float));
                            own[u].meta[c] = meta[row];
                        }
                    }
                    std::vector<int> bytes(n_units);
                    hostrun::launch(send<D, cols, threads>, dim3(n_units), dim3(threads), 0, own.data(), all.data(), bytes.data(), n);
                    for (int u = 0; u < n_units; ++u) {
                        wrong_bytes += bytes[u] != inbox_t::bytes(n, u, n_units);
                    }
                    hostrun::launch(merge<D, cols, threads>, dim3(n_units), dim3(threads), 0, all.data(), s, got, args, seq, kv, col0, n);
                }
            }
        }
        compare("a cluster", D, args, want, got, n_out);
    }
}

template <int D>
static void check_head_size() {
    for (int n_units = 2; n_units <= PACKED16_CLUSTER_MOST; ++n_units) {
        const int nq = n_units%3 + 1, gqa = (const int[]) {6, 5, 8, 1}[n_units%4]; // whole and broken blocks of columns, one and several
        check<D,  8>(n_units, 1, nq, gqa, n_units%2 == 0, n_units);
        check<D, 16>(n_units, 1, nq, gqa, n_units%2 == 1, n_units);
    }
    for (const int n_units : {1, 15, 16, 17, 128, 129, 300}) { // groups with nothing, one super-chunk and several, whole and broken ones
        check<D, 0>(n_units, 1, 1, 3, n_units%2 == 0, n_units);
        check<D, 0>(n_units, PACKED16_SUPER_CHUNK/PACKED16_CHUNK, 2, 1, n_units%2 == 1, n_units);
    }
}

int main() {
    check_head_size<64>();
    check_head_size<128>();
    check_head_size<256>();
    printf("differ %d, wrong byte counts %d\n", differ, wrong_bytes);
    fprintf(stderr, "%d values compared\n", compared);
    return compared == 0;
}
