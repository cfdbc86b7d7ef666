// Package rdna3 executes gfx1100 machine code: kernels as package code reads them, in
// waves of 32, many waves and barriers in a workgroup, with LDS and global memory.
// It is there to see that compiled kernels compute the right numbers where no AMD
// GPU is at hand; nothing it says is a measurement on AMD hardware.
//
// Each line of the disassembly is decoded once (Load); Kernel.Run executes a launch.
// Registers and LDS hold poison at the start, each access of each lane is checked
// against the buffers of the launch, and an instruction that is not known is an
// error with its kernel and address. Beyond the values of registers it models:
//
//   - loads under way: a result arrives at the first s_waitcnt that covers it;
//   - waves in any order: Options.Seed draws it, and how long one runs at a time;
//   - races in LDS: two waves at one byte without a barrier between them;
//   - functions promised to 1 ulp: Options.Approximate takes that literally.
//
// It does not model time, caches, races in global memory, hazards other than loads
// (s_delay_alu and its like do nothing), how hardware rounds the sums of v_wmma_f32 and
// v_dot2_f32_f16, or which NaN comes out of two. Without Approximate, exp, log,
// rcp, rsq and sqrt are correctly rounded. Float modes are the compiler's
// default or f32 flush to zero; others are refused.
package rdna3
