"""Events of Python programs and a long trace as record batches: bench/python.sh."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import horolog as h

RECORDS = int(sys.argv[1])

EVENTS = """
import statistics, sys, time
import horolog
event, span = horolog.trace.event, horolog.trace.span
COUNT = 200_000
def empty():
    for number in range(COUNT): pass
def one():
    for number in range(COUNT): event("bench/one", number=number)
def texts():
    for number in range(COUNT): event("bench/texts", number=number, length=(3, "items"), origin="camera")
def spans():
    for number in range(COUNT):
        with span("bench/span"): pass
def ns(work):
    taken = []
    for _ in range(5):
        begun = time.thread_time_ns(); work(); taken.append(time.thread_time_ns() - begun)
    return statistics.median(taken) / COUNT
base = ns(empty)
print(*(round(ns(work) - base) for work in (one, texts, spans)))
"""

READ = """
import resource, sys, time
import horolog
begun, batches = time.perf_counter(), 0
for batch in horolog.read_trace(sys.argv[1]).batches(): batches += len(batch)
print(batches, time.perf_counter() - begun, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

with tempfile.TemporaryDirectory(dir=".") as name:
    folder = Path(name)
    alone = subprocess.run([sys.executable, "-c", EVENTS], capture_output=True, text=True, check=True).stdout
    recording = h.record([sys.executable, "-c", EVENTS], folder / "events.trace", block=True)
    assert recording.lost == 0 and recording.status == 0
    for what, costs in (("not recorded", alone), ("recorded", recording.output.decode())):
        one, texts, spans = costs.split()
        print(f"an event of Python, {what}: {one} ns with a number, {texts} ns with a number, a unit and a text; a span {spans} ns")

    # 575 records a second of the quick start; a simulation writes until there are enough.
    trace = folder / "long.trace"
    system = h.load(Path(__file__).parent.parent / "examples/quick-start/system.toml")
    system.simulate("100 s", trace=trace)
    each = h.read_trace(trace).count or 1
    system.simulate(f"{RECORDS * 100 // each + 1} s", trace=trace)
    subprocess.run(["cat", trace], stdout=subprocess.DEVNULL, check=True)
    read = subprocess.run([sys.executable, "-c", READ, trace], capture_output=True, text=True, check=True).stdout
    count, wall, seconds, resident = read.split()
    assert int(count) == h.read_trace(trace).count
    size = os.path.getsize(trace) / 1e6
    print(f"record batches of a trace of {count} records ({size:.0f} MB, from page cache), one core: {int(count) / float(seconds):.0f} records a second of processor time, {int(count) / float(wall):.0f} a second")
    print(f"memory of the process that reads it: {int(resident) / 1024:.0f} MiB resident at most")
