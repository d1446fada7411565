#!/usr/bin/env bash
# The lies for real, so many times (10), beside a load: `bash bench/lies.sh [TIMES]`. Prints how many rounds had a wrong class or a yes,
# and how many answers of all were only "cannot be told".
set -u
cd "$(dirname "$0")/.."
times=${1:-10}
test=$(cargo test -p horolog --test lies_for_real --no-run --message-format=json 2>/dev/null |
    python3 -c 'import json,sys
for m in map(json.loads, sys.stdin):
    if m.get("executable") and m["target"]["name"] == "lies_for_real": print(m["executable"])')
if command -v stress-ng >/dev/null; then
    stress-ng --cpu 4 --vm 1 --vm-bytes 64M --timeout 3600 >/dev/null 2>&1 &
    load=$!
else
    for _ in 1 2 3 4; do (while :; do :; done) & done
    load=$(jobs -p)
fi
trap 'kill $load 2>/dev/null' EXIT
wrong=0
for round in $(seq "$times"); do
    out=$("$test" --include-ignored --nocapture 2>&1) || { wrong=$((wrong + 1)); grep -A4 'panicked' <<<"$out"; }
    echo "round $round: $(grep 'lies for real' <<<"$out")"
done
echo "$wrong of $times rounds with a wrong answer"
