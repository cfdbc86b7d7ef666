#!/usr/bin/env bash
# Builds dot4fa and puts it on the PATH of the steps that follow.
set -euo pipefail
: "${GITHUB_PATH:?}"

bin=$PWD/.dot4fa/bin # which git ignores
mkdir -p "$bin"
# In a container the checkout belongs to another user. Git has to read it all
# the same, or the program would not know its own version.
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD \
    CGO_ENABLED=0 go build -trimpath -o "$bin/dot4fa" .
echo "$bin" >>"$GITHUB_PATH"
"$bin/dot4fa" version
