#!/usr/bin/env bash
# Compiles for AMD GPUs on a machine without ROCm: makes a compile-only HIP
# prefix, compiles the edited units of the pin and of upstream's REF with it, and
# builds the whole HIP backend at the pin.
set -euo pipefail
: "${REF:?}"

prefix=$PWD/.dot4fa/rocm # which git ignores
dot4fa toolchain bootstrap "$prefix"
export DOT4FA_ROCM=$prefix
dot4fa check --compile
dot4fa check --compile "$REF"
export CCACHE_DIR=${CCACHE_DIR:-$PWD/.ccache} CCACHE_BASEDIR=$PWD CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-500M}
dot4fa build --recipe rdna3
