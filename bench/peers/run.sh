#!/usr/bin/env bash
# Peers beside horolog, set by set: each in an environment of its own, pinned, with the same wheel of horolog. What each comparison says
# is on docs/about/peers.md; the output goes to bench/results/peers-NAME.txt by `bench/results.sh peers-NAME`.
#
#     bench/peers/run.sh NAME [WORD...]      NAME: pyrta, simso, generators, np, rt-app
#     HOROLOG_WHEEL=FILE                     a wheel that is there, instead of building one
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1
shift
case $name in
    pyrta) packages=(response-time-analysis==0.1.1) ;;
    simso) packages=(simso==0.8.5 numpy==2.4.6) ;;
    generators) packages=(convolutionalfixedsum==2.0.1 drs==2.0.1 simso==0.8.5 numpy==2.4.6 scipy==1.17.1) ;;
    np | rt-app) packages=() ;;
    *)
        echo "no such peer: $name (pyrta, simso, generators, np, rt-app)" >&2
        exit 2
        ;;
esac
folder=bench/target/peers
build=$folder/build
wheel=${HOROLOG_WHEEL:-}
if [ -z "$wheel" ]; then
    [ -x "$build/bin/python" ] || python3 -m venv "$build"
    "$build/bin/python" -m pip install -q "maturin>=1.9,<2"
    rm -rf "$folder/wheels"
    "$build/bin/python" -m maturin build -q --release --manifest-path front/python/Cargo.toml --compatibility linux --out "$folder/wheels" >&2
    wheel=$(echo "$folder"/wheels/*.whl)
fi
if [ -z "${HOROLOG_COMMAND:-}" ]; then
    cargo build --release --quiet -p horolog
    export HOROLOG_COMMAND=$PWD/target/release/horolog
fi
python=$folder/$name/bin/python
[ -x "$python" ] || python3 -m venv "$folder/$name"
if [ "${#packages[@]}" -gt 0 ] && ! "$python" -m pip install -q "${packages[@]}" >&2; then
    echo "SKIPPED: ${packages[*]} could not be installed"
    exit 0
fi
"$python" -m pip install -q --force-reinstall --no-deps "$wheel" >&2
exec "$python" "bench/peers/with_${name//-/_}.py" "$@"
