#!/usr/bin/env bash
# gfx.sh FILE.hip|.cuh [gfx1100] [-DX ...]: compiles one file device-only and prints what each kernel uses.
# Templates need explicit instances: template __global__ void k<256>(...);  The assembly is left in /tmp/gfx.s.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
inc=$here/../standin/include
file=$1; target=${2:-gfx1100}; shift; [ $# -gt 0 ] && shift
cxx=${CXX:-clang++-19}
"$cxx" -x hip --offload-device-only --offload-arch="$target" -nogpulib -nogpuinc -std=c++17 -O3 -DNDEBUG \
    -DGGML_USE_HIP -D__HIP_PLATFORM_AMD__ -I"$(dirname "$file")" -I"$here/../../kernels" -I"$inc/ggml" -I"$inc/hip" \
    -Wall -Wno-unused-function -Rpass-analysis=kernel-resource-usage -S "$file" -o /tmp/gfx.s "$@" 2>&1 |
    grep -vE '^ *[0-9]* \||^ *\|' | sed -E 's/.*remark: +//; s/ \[-Rpass.*//'
echo "dot4: $(grep -c 'v_dot4_i32_iu8' /tmp/gfx.s || true)  16-byte loads: $(grep -cE '(global|buffer)_load_b128' /tmp/gfx.s || true)  total loads: $(grep -cE '(global|buffer)_load' /tmp/gfx.s || true)"
