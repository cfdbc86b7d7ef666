#!/usr/bin/env bash
# Installs what a build needs and the machine lacks. ROCM is the version of the
# container's ROCm, empty outside one.
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
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}"
