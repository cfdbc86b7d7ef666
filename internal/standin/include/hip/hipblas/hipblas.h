// The part of hipBLAS's interface that upstream's headers mention; nothing behind it.

#pragma once

#include "../hip/hip_runtime.h"

typedef struct hipblas_handle * hipblasHandle_t;
typedef int hipblasOperation_t;
typedef int hipblasDatatype_t;
typedef int hipblasComputeType_t;
typedef int hipDataType;

enum hipblasStatus_t {
    HIPBLAS_STATUS_SUCCESS,
    HIPBLAS_STATUS_NOT_INITIALIZED,
    HIPBLAS_STATUS_ALLOC_FAILED,
    HIPBLAS_STATUS_INVALID_VALUE,
    HIPBLAS_STATUS_MAPPING_ERROR,
    HIPBLAS_STATUS_EXECUTION_FAILED,
    HIPBLAS_STATUS_INTERNAL_ERROR,
    HIPBLAS_STATUS_NOT_SUPPORTED,
    HIPBLAS_STATUS_ARCH_MISMATCH,
};

hipblasStatus_t hipblasCreate(hipblasHandle_t * handle);
hipblasStatus_t hipblasSetStream(hipblasHandle_t handle, hipStream_t stream);
