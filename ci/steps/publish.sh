#!/usr/bin/env bash
# Publishes the files in OUT as the release of TAG. Running it again replaces
# the files.
set -euo pipefail
: "${TAG:?}" "${OUT:?}"

(cd "$OUT" && sha256sum --quiet --check SHA256SUMS)
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
cat >"$notes" <<'TEXT'
The series as patches for plain git: unpack an archive, check out the base
commit that its release.json names in a clone of llama.cpp, and run `git am` on
the patches. SHA256SUMS covers every file.
TEXT
if gh release view "$TAG" >/dev/null 2>&1; then
    gh release upload "$TAG" --clobber "$OUT"/*
else
    gh release create "$TAG" --verify-tag --title "$TAG" --notes-file "$notes" "$OUT"/*
fi
