#!/usr/bin/env bash
# Proves RECIPE on this machine: what is missing (doctor), the build, whether it
# is right (verify) and how fast (bench). OUT gets the figures and a report of
# all of it, also when something does not hold.
#
#   MODEL, TEXT  for the quality part of verify, which is left out without them
set -euo pipefail
: "${RECIPE:?}" "${OUT:?}"

quality=(--skip quality)
[ -z "${MODEL:-}" ] || quality=(--model "$MODEL" --text "${TEXT:?goes with MODEL}")
mkdir -p "$OUT"
export CCACHE_DIR=${CCACHE_DIR:-$PWD/.ccache} CCACHE_BASEDIR=$PWD CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-500M}

failed=0
# part goes on after a failure, whose exit code is kept.
part() {
    local code=0
    "$@" || code=$?
    [ "$failed" -ne 0 ] || failed=$code
}
part dot4fa doctor --recipe "$RECIPE"
if [ "$failed" -eq 0 ]; then
    part dot4fa build --recipe "$RECIPE"
fi
if [ "$failed" -eq 0 ]; then
    part dot4fa verify --recipe "$RECIPE" "${quality[@]}"
    part dot4fa bench --recipe "$RECIPE" --out "$OUT/bench"
fi
part dot4fa report --recipe "$RECIPE" --out "$OUT/report.md"
exit "$failed"
