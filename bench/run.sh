#!/usr/bin/env bash
# Every bench, then the rivals that install from a registry, one after the other in the same session.
# Rivals that do not: SchedCAT (no package), pyCPA (not on PyPI), EVA (no package).
set -euo pipefail
cd "$(dirname "$0")"
for bench in fixed_priority edf scale sim rivals; do
    echo "== $bench"
    cargo bench --quiet --bench "$bench"
done

echo "== simso"
if [ ! -x .venv/bin/python ]; then
    python3 -m venv .venv || echo "SKIPPED: SimSo: python3 cannot make a virtual environment"
fi
if [ -x .venv/bin/python ] && .venv/bin/python -m pip install --quiet --disable-pip-version-check simso==0.8.5; then
    cargo bench --quiet --bench simso
else
    echo "SKIPPED: SimSo cannot be installed from PyPI here"
fi
