#!/usr/bin/env bash
# Every bench, then the rivals that install from a registry, one after the other in the same session.
# Rivals that do not: SchedCAT (no package), pyCPA (not on PyPI), EVA (no package); SimSo (PyPI) is a simulator of
# 3,000 jobs/s and is compared in the table of peers, not here.
set -euo pipefail
cd "$(dirname "$0")"
for bench in fixed_priority edf sim rivals; do
    echo "== $bench"
    cargo bench --quiet --bench "$bench"
done
