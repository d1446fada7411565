#!/usr/bin/env bash
# How many bytes a record takes in a trace file: 60 s of the quick start, simulated with seed 1.
set -euo pipefail
cd "$(dirname "$0")/.."
horolog=${HOROLOG_BIN:-target/release/horolog}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$horolog" -q simulate examples/quick-start/system.toml --for 60s --seed 1 --trace "$folder/t.hrt" >/dev/null
records=$("$horolog" trace show "$folder/t.hrt" | head -1 | sed 's/.*, \([0-9]*\) records.*/\1/')
bytes=$(stat -c %s "$folder/t.hrt")
echo "records $records"
echo "bytes $bytes, head and foot included"
awk -v bytes="$bytes" -v records="$records" 'BEGIN { printf "bytes/record %.2f\n", bytes / records }'
