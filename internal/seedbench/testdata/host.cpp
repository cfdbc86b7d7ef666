// seed.cu on the CPU: its kernels as fibers, and the calls of the run-time library that it makes.
#define HOSTRUN_MAIN
#include "common.cuh"

#include <chrono>

struct cudaDeviceProp { char name[32]; };
enum cudaMemcpyKind { cudaMemcpyDeviceToHost, cudaMemcpyHostToDevice };
typedef std::chrono::steady_clock::time_point * cudaEvent_t;

static inline cudaError_t cudaMalloc(void ** p, size_t n) { *p = malloc(n); return *p ? cudaSuccess : 1; }
static inline cudaError_t cudaFree(void * p) { free(p); return cudaSuccess; }
static inline cudaError_t cudaMemcpy(void * to, const void * from, size_t n, cudaMemcpyKind) { memcpy(to, from, n); return cudaSuccess; }
static inline cudaError_t cudaMemset(void * p, int v, size_t n) { memset(p, v, n); return cudaSuccess; }
static inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
static inline cudaError_t cudaEventCreate(cudaEvent_t * e) { *e = new std::chrono::steady_clock::time_point; return cudaSuccess; }
static inline cudaError_t cudaEventRecord(cudaEvent_t e, int) { *e = std::chrono::steady_clock::now(); return cudaSuccess; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float * ms, cudaEvent_t a, cudaEvent_t b) {
    *ms = std::chrono::duration<float, std::milli>(*b - *a).count();
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp * p, int) { strcpy(p->name, "fibers"); return cudaSuccess; }

#include "seed.cu"
