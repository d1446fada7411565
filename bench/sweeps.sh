#!/usr/bin/env bash
# How well sweeps use their cores, how long tests of whole systems take, and how much memory 10^7 sets take.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --release --quiet -p horolog-sweep --example sweeps -- "$@"
