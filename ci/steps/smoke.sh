#!/usr/bin/env bash
# Runs from the packed archive what runs without a GPU: the op's tests and the
# attention's on the CPU. An archive for a GPU is only unpacked and its hashes
# compared, since the machine has none.
set -euo pipefail
: "${OUT:?where build.sh put the archive}"

archive=$(find "$OUT" -maxdepth 1 -name '*.tar.gz' -print -quit)
[ -n "$archive" ] || {
    echo "smoke.sh: no archive in $OUT" >&2
    exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xzf "$archive" -C "$dir" --strip-components=1
(cd "$dir" && sha256sum --quiet --check SHA256SUMS)
if [ -n "${TARGET:-}" ]; then
    echo "hashes are right; nothing is run: there is no $TARGET here"
    exit 0
fi

# ops runs the tests of an op. With no test to run the program is content, and
# this is not.
ops() {
    local log=$dir/log
    "$dir/bin/test-backend-ops" test -b CPU "$@" | tee "$log"
    grep -Eq '[1-9][0-9]*/[1-9][0-9]* tests passed' "$log" || {
        echo "smoke.sh: no test was run: $*" >&2
        exit 1
    }
}
ops -o PACK_K_PACKED16
ops -o FLASH_ATTN_EXT -p packed16
