#!/usr/bin/env bash
# What benches print, with how and where: bench/results/NAME.txt, which docs/about/figures.md and its test read.
# ./results.sh              every result that has a file here
# ./results.sh sim trace    these ones; a name that is none of those below is a bench
set -euo pipefail
cd "$(dirname "$0")/.."
horolog=${HOROLOG_BIN:-target/release/horolog}
# The commit in the head is that of the command.
[ -n "${HOROLOG_BIN:-}" ] || cargo build --release --quiet -p horolog

# The command of a result, as a reader types it.
command_of() {
    case $1 in
        aperiodic-1) echo "horolog experiment run aperiodic-1 --seeds 1" ;;
        trace-size) echo "bench/trace-size.sh" ;;
        recording) echo "python3 bench/tracers/recording.py" ;;
        rates) echo "python3 bench/tracers/rates.py" ;;
        process-cost) echo "python3 bench/process_cost.py" ;;
        first-command) echo "bench/first-command.sh" ;;
        study) echo "bench/study.sh" ;;
        vectors) echo "cargo run --release -p horolog-draw --example vectors" ;;
        python) echo "bench/python.sh" ;;
        peers-*) echo "bench/peers/run.sh ${1#peers-}" ;;
        sweeps) echo "bench/sweeps.sh" ;;
        tracers) echo "python3 tracers/run.py 3" ;;
        budget_enforcement) echo "cargo bench --bench budget_enforcement -- 3 1" ;;
        *) echo "cargo bench --bench $1" ;;
    esac
}

# What it prints.
output_of() {
    case $1 in
        aperiodic-1) "$horolog" -q experiment run aperiodic-1 --seeds 1 2>&1 || [ $? -eq 1 ] ;;
        trace-size) HOROLOG_BIN=$horolog bench/trace-size.sh ;;
        recording) python3 bench/tracers/recording.py 4000000 5 "$horolog" ;;
        rates) python3 bench/tracers/rates.py 10 "$horolog" ;;
        process-cost) python3 bench/process_cost.py 11 "$horolog" ;;
        first-command) bench/first-command.sh ;;
        study) bench/study.sh ;;
        vectors) cargo run --release --quiet -p horolog-draw --example vectors ;;
        python) bench/python.sh ;;
        peers-*) bench/peers/run.sh "${1#peers-}" ;;
        sweeps) bench/sweeps.sh ;;
        tracers) (cd bench && python3 tracers/run.py 3) ;;
        budget_enforcement) (cd bench && cargo bench --quiet --bench budget_enforcement -- 3 1) ;;
        *) (cd bench && cargo bench --quiet --bench "$1") ;;
    esac
}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in bench/results/*.txt; do
        names+=("$(basename "$file" .txt)")
    done
fi
mkdir -p bench/results
# Before the first result changes the tree.
commit=$(git describe --always --dirty --exclude '*')
for name in "${names[@]}"; do
    echo "== $name"
    output=$(output_of "$name")
    processor=$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs)
    {
        echo "command: $(command_of "$name")"
        echo "commit: $commit"
        echo "date: $(date -u +%Y-%m-%d)"
        echo "machine: $processor, $(nproc) CPUs, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg)"
        echo "---"
        echo "$output"
    } > "bench/results/$name.txt.part"
    mv "bench/results/$name.txt.part" "bench/results/$name.txt"
done
