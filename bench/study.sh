#!/usr/bin/env bash
# How fast task sets are drawn and tested, by the engine and from Python: the wheel is built as for users.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${HOROLOG_STUDY:-target/study}
if [ ! -x "$folder/bin/python" ]; then
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install -q "maturin>=1.9,<2"
fi
rm -rf "$folder/wheels"
"$folder/bin/python" -m maturin build -q --release --manifest-path front/python/Cargo.toml --compatibility linux --out "$folder/wheels" >&2
"$folder/bin/python" -m pip install -q --force-reinstall --no-deps "$folder"/wheels/*.whl
cargo run --release --quiet -p horolog-sweep --example rates
(cd "$folder" && bin/python "$OLDPWD/bench/study.py")
