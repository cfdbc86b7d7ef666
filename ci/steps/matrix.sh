#!/usr/bin/env bash
# Chooses the jobs of the build matrix. A push or a pull request builds the pin
# for the main target and for the CPU; a night, or a start by hand, builds all.
set -euo pipefail
: "${GITHUB_OUTPUT:?}" "${EVENT:?}"

only=()
case $EVENT in
    push | pull_request) only=(--only upstream=pin --only target=gfx1100 --only target=) ;;
esac
# An assignment of its own: a failure inside echo would be lost.
jobs=$(dot4fa ci matrix "${only[@]}")
echo "jobs=$jobs" >>"$GITHUB_OUTPUT"
echo "$jobs"
