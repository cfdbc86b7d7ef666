#!/usr/bin/env bash
# Watches upstream: does the series hold on its newest commit, and compile? While it
# does not, one open issue carries the newest report; it is closed when the series
# holds again.
#
#   REF      upstream ref to check
#   RUN_URL  this run, for the issue
#
# Exits 0 when the series holds, 3 when it does not, and otherwise with the code
# of what failed: a check that could not be made is not an answer and leaves the
# issue alone.
set -euo pipefail
: "${REF:?}" "${RUN_URL:?}"

label=upstream-canary
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# github runs gh and stops the step when it fails.
github() {
    gh "$@" || {
        local code=$?
        echo "::error::gh $1 $2 failed with exit code $code"
        exit "$code"
    } >&2
}

# show prints a file whose lines are not to be taken for workflow commands.
show() {
    local token
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$token"
    cat "$1"
    echo "::$token::"
}

# body writes the issue's text. The report comes from upstream's commits: in a
# code block it mentions nobody and closes nothing, and GitHub takes 65536
# characters at most.
body() {
    echo "The series does not hold on upstream's \`$REF\` any more. This issue is kept up to date by the [nightly check]($RUN_URL) and is closed by it."
    echo
    echo '```text'
    head -c 60000 "$dir/report" | sed "s/\`\`\`/'''/g"
    echo
    echo '```'
    echo
    echo "To look at it: \`dot4fa check --compile $REF\`, then \`dot4fa explain EDIT\`."
}

code=0
dot4fa check --compile "$REF" >"$dir/report" 2>"$dir/log" || code=$?
show "$dir/report"
show "$dir/log" >&2
if [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then
    echo "::error::the check could not be made: dot4fa exited with $code" >&2
    exit "$code"
fi

list=$(github issue list --state open --label "$label" --limit 100 --json number --jq 'sort_by(.number) | .[].number')
issues=()
[ -z "$list" ] || mapfile -t issues <<<"$list"

if [ "$code" -eq 0 ]; then
    for n in "${issues[@]}"; do
        github issue close "$n" --comment "The series holds on upstream's \`$REF\` again: $RUN_URL"
    done
    exit 0
fi

body >"$dir/body"
if [ "${#issues[@]}" -eq 0 ]; then
    github label create "$label" --force --color B60205 --description "the series does not hold on upstream's newest commit"
    github issue create --title "The series does not hold on upstream's $REF" --label "$label" --body-file "$dir/body"
else
    github issue edit "${issues[0]}" --body-file "$dir/body"
    for n in "${issues[@]:1}"; do
        github issue close "$n" --comment "The report is kept in #${issues[0]}."
    done
fi
echo "::error::the series does not hold on upstream's $REF"
exit 3
