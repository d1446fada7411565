#!/usr/bin/env bash
# What an event of a Python program costs, and how fast a long trace is read from Python, on one core: the wheel is built as for users.
# HOROLOG_BENCH_PYTHON names an interpreter that has the package instead, and HOROLOG_COMMAND the command.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${HOROLOG_STUDY:-target/study}
python=${HOROLOG_BENCH_PYTHON:-}
mkdir -p "$folder"
if [ -z "$python" ]; then
    python=$PWD/$folder/bin/python
    if [ ! -x "$python" ]; then
        python3 -m venv "$folder"
        "$python" -m pip install -q "maturin>=1.9,<2"
    fi
    rm -rf "$folder/wheels"
    "$python" -m maturin build -q --release --manifest-path front/python/Cargo.toml --compatibility linux --out "$folder/wheels" >&2
    "$python" -m pip install -q --force-reinstall --no-deps "$folder"/wheels/*.whl
    cargo build --release --quiet -p horolog -p horolog-tracer
    export HOROLOG_COMMAND=${HOROLOG_BIN:-$PWD/target/release/horolog}
fi
(cd "$folder" && taskset -c 0 "$python" "$OLDPWD/bench/python.py" "${1:-100000000}")
