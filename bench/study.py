"""How fast Python's batch calls are, beside the engine's own time: bench/study.sh."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import horolog as h


def median(work: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


sets = h.generate(200_000, utilisation=0.9)
for threads, cores in ((1, "one core"), (0, "all cores")):
    taken = median(lambda threads=threads: h.batch(sets, ["edf-qpa", "fp-preemptive"], threads=threads))
    print(f"python: 200000 sets of 10 tasks, U = 0.9, by two tests, {cores}: {taken:.3f} s")

points = [0.60 + 0.02 * step for step in range(20)]
begun = time.perf_counter()
found = h.acceptance(points, ["edf-qpa", "fp-preemptive", "rm-hyperbolic"], count=50_000, seed=1)
taken = time.perf_counter() - begun
assert found.ratios["edf-qpa"] == (1.0,) * 20
print(f"python: acceptance plot of 1000000 sets of 10 tasks, 20 utilisations, three tests, all cores: {taken:.1f} s")

with tempfile.TemporaryDirectory() as folder:
    trace = Path(folder) / "a.trace"
    horizon = f"{sys.argv[1] if len(sys.argv) > 1 else 4000} s"
    h.load(Path(__file__).parent.parent / "examples/quick-start/system.toml").simulate(horizon, trace=trace)
    records = h.read_trace(trace).count or 0
    taken = median(lambda: sum(len(batch) for batch in h.read_trace(trace).batches()), 3)
    print(f"python: record batches of a trace of {records} records, one core: {records / taken:.0f} records/s")
