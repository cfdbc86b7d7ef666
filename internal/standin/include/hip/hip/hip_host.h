// The host API as far as headers mention it: declarations only, nothing is linked here.
// Included by hip_runtime.h only.

#pragma once

#define HIP_VERSION 60100000

typedef struct ihipStream_t * hipStream_t;
typedef struct ihipEvent_t *  hipEvent_t;
typedef struct ihipGraph *    hipGraph_t;
typedef struct hipGraphExec * hipGraphExec_t;
typedef struct hipGraphNode * hipGraphNode_t;
typedef int hipError_t;
typedef int hipDevice_t;
static const hipError_t hipSuccess = 0;

#define hipEventDisableTiming 2
#define hipStreamNonBlocking  1
#define hipFuncAttributeMaxDynamicSharedMemorySize 8

hipError_t   hipGetDevice(int * device);
hipError_t   hipSetDevice(int device);
hipError_t   hipStreamCreateWithFlags(hipStream_t * stream, unsigned flags);
hipError_t   hipStreamSynchronize(hipStream_t stream);
hipError_t   hipEventCreateWithFlags(hipEvent_t * event, unsigned flags);
hipError_t   hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr);
hipError_t   hipEventDestroy(hipEvent_t event);
hipError_t   hipFuncSetAttribute(const void * kernel, int attribute, int value);
template <typename Kernel>
hipError_t   hipOccupancyMaxActiveBlocksPerMultiprocessor(int * blocks, Kernel kernel, int threads, size_t shared);
hipError_t   hipGraphExecDestroy(hipGraphExec_t exec);
hipError_t   hipGraphDestroy(hipGraph_t graph);
const char * hipGetErrorString(hipError_t error);
static inline hipError_t hipGetLastError() { return hipSuccess; }

// What the compiler makes of kernel<<<grid, block, shared, stream>>>(…).
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, hipStream_t stream = nullptr);
extern "C" hipError_t hipLaunchKernel(const void * kernel, dim3 grid, dim3 block, void ** args, size_t shared, hipStream_t stream);
