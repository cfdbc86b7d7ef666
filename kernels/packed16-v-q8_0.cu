// The packed16 attention kernels for q8_0 V. One file per V type, so that they compile in parallel.

#include "packed16-instances.cuh"

template void packed16_launch<packed16_v_q8_0>(const packed16_call &, int, cudaStream_t);
