#!/usr/bin/env bash
# Makes the files of a release in OUT, which must not exist:
#
#   dot4fa-TAG-RECIPE-series.tar.gz   the series for `git am`, with release.json
#   release-RECIPE.json               what it applies to and what comes out
#   sbom-RECIPE.cdx.json              CycloneDX
#   SHA256SUMS                        of all of them
#
# The same commit gives the same bytes.
set -euo pipefail
: "${TAG:?}" "${RECIPES:?}" "${OUT:?}"

[[ $TAG =~ ^v[0-9][A-Za-z0-9._-]*$ ]] || {
    echo "release.sh: $TAG is no release tag" >&2
    exit 2
}
mkdir "$OUT"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C

for recipe in $RECIPES; do
    series=dot4fa-$TAG-$recipe-series
    dot4fa export --recipe "$recipe" --out "$dir/$series"
    dot4fa export --recipe "$recipe" --verify "$dir/$series"
    cp "$dir/$series/release.json" "$OUT/release-$recipe.json"
    tar --create --directory "$dir" --sort=name --format=ustar --mtime=@315532800 \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$series" | gzip -n -9 >"$OUT/$series.tar.gz"
    dot4fa dist --recipe "$recipe" --work "$dir/work-$recipe" --sbom "$OUT/sbom-$recipe.cdx.json"
done
(
    cd "$OUT"
    sha256sum -- * >"$dir/sums"
    mv "$dir/sums" SHA256SUMS
)
cat "$OUT/SHA256SUMS"
