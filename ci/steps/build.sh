#!/usr/bin/env bash
# Builds one job of the matrix and packs the result.
#
#   RECIPE    recipe to build
#   TARGET    GPU target instead of the recipe's; may be empty
#   UPSTREAM  pin, latest (the newest release tag), a tag or a commit
#   OUT       where the archive goes
#
# What differs from the recipe is written to a recipe of the job's own, which
# goes with the archive: `dot4fa build --recipe` with it repeats the job.
set -euo pipefail
: "${RECIPE:?}" "${UPSTREAM:?}" "${OUT:?}"
TARGET=${TARGET:-}

fail() {
    echo "build.sh: $1" >&2
    exit 2
}
word='^[A-Za-z0-9][A-Za-z0-9._-]*$'
for value in "$RECIPE" "$UPSTREAM" "${TARGET:-none}"; do
    [[ $value =~ $word ]] || fail "impossible value: $value"
done

# resolve prints "commit tag" of UPSTREAM.
resolve() {
    local url refs ref
    if [[ $UPSTREAM =~ ^[0-9a-f]{40}$ ]]; then
        echo "$UPSTREAM b0"
        return
    fi
    url=${DOT4FA_UPSTREAM:-$(dot4fa recipe show "$RECIPE" | awk '$1 == "upstream.url" { print $2 }')}
    [ -n "$url" ] || fail "recipe $RECIPE names no upstream"
    ref="refs/tags/$UPSTREAM"
    [ "$UPSTREAM" != latest ] || ref='refs/tags/b[0-9]*'
    # An annotated tag is listed twice; the commit is the line with ^{}, which
    # comes second.
    refs=$(git ls-remote "$url" "$ref" "$ref^{}")
    refs=$(awk '{ sub("refs/tags/", "", $2); sub(/\^\{\}$/, "", $2); commit[$2] = $1 }
        END { for (tag in commit) print commit[tag], tag }' <<<"$refs" | grep -E '^[0-9a-f]{40} .' | sort -t ' ' -k 2.2n | tail -n 1) ||
        fail "upstream has no tag $UPSTREAM"
    echo "$refs"
}

mkdir -p "$OUT"
name=$RECIPE-ci
recipe=$OUT/$name.yaml
pin=
[ "$UPSTREAM" = pin ] || pin=$(resolve)
{
    echo "name: $name"
    echo "summary: $RECIPE as this job builds it"
    echo "extends: $RECIPE"
    [ -z "$TARGET" ] || echo "gpu_targets: [$TARGET]"
    [ -z "$pin" ] || printf 'upstream:\n  commit: %s\n  tag: %s\n' "${pin% *}" "${pin#* }"
} >"$recipe"
cat "$recipe"

export CCACHE_DIR=${CCACHE_DIR:-$PWD/.ccache} CCACHE_BASEDIR=$PWD CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-500M}
dot4fa build --recipe "$recipe"
dot4fa dist --recipe "$recipe" --out "$OUT/$RECIPE${TARGET:+-$TARGET}-$UPSTREAM.tar.gz"
if command -v ccache >/dev/null; then
    ccache --show-stats || true # a figure for the log, no reason to fail
fi
