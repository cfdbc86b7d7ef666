#!/usr/bin/env bash
# Installs what a build needs and the machine lacks.
#
#   ROCM    version of the container's ROCm, empty outside one
#   CLANG   version of a clang to compile and run kernels with; may be empty
#   DEBIAN  not empty: the keys of Debian's archive, for toolchain bootstrap
set -euo pipefail

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
packages=(ca-certificates ccache cmake g++ git ninja-build)
if [ -n "${ROCM:-}" ]; then
    # The smaller ROCm images come without these two.
    for library in hipblas rocblas; do
        config=$(find -L /opt/rocm* -maxdepth 6 -name "$library-config.cmake" -print -quit 2>/dev/null || true)
        [ -n "$config" ] || packages+=("$library-dev")
    done
fi
if [ -n "${CLANG:-}" ]; then
    packages+=("clang-$CLANG" "clang-tools-$CLANG" "lld-$CLANG" "llvm-$CLANG" "libclang-rt-$CLANG-dev")
fi
[ -z "${DEBIAN:-}" ] || packages+=(debian-archive-keyring)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}"
