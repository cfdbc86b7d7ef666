// The packed16 attention kernels for f16 V. One file per V type, so that they compile in parallel.

#include "packed16-instances.cuh"

template void packed16_launch<packed16_v_f16>(const packed16_call &, int, cudaStream_t);
