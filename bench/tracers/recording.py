#!/usr/bin/env python3
"""What rotation, waiting and `trace diff` cost: `python3 bench/tracers/recording.py [EVENTS] [ROUNDS] [HOROLOG]`.

EVENTS (4,000,000) of one event with two integers, of one thread on processor 1; the recorder has processor 0. Files lie in memory (`/dev/shm`). A
cost counts only without losses: where any event was lost, the script ends with status 1. Rounds (5) alternate between the lines, so that a slower
minute of the machine touches all of them; median and least are printed:

(a) processor time of the recorder an event, at 1,000,000 a second, with one file and with `--rotate 1M` and `--rotate 128K`, and how many files these are;
(b) an event in a loop without a pause, in wall-clock and processor time of the program: with buffers that hold all of them, and with two rings of
    64 KiB and `--block`, where the program has the recorder's speed;
(c) wall-clock time of `trace diff` of two of these files, an event of both.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
HOROLOG = Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT / "target" / "release" / "horolog"
PROGRAM, RECORDER = ["taskset", "-c", "1"], ["taskset", "-c", "0"]
lost = 0


def record(out, binary, rate, *words):
    """Rate that was reached, processor time of the program and of the recorder in ns, the result."""
    global lost
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*RECORDER, HOROLOG, "trace", "record", "--format", "json", *words, "--event", "bench/*", "--out", out,
                           "--", *PROGRAM, binary, str(rate), str(EVENTS)], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The program's own words and the result share the standard output.
    text, _, result = done.stdout.partition("{")
    found = json.loads("{" + result)
    told = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    assert found["events"] + found["events_lost"] == EVENTS, found
    lost += found["events_lost"]
    all_ns = sum(int((getattr(after, key) - getattr(before, key)) * 1e9) for key in ("ru_utime", "ru_stime"))
    program_ns = int(told["cpu_ns"])
    return float(told["reached"]), program_ns, all_ns - program_ns, found


def line(name, values, note=""):
    print(f"{name:<60} {statistics.median(values):8.1f} ns by the median {min(values):8.1f} by the minimum  {note}")


def main():
    rotations = {"one file": [], "--rotate 1M": ["--rotate", "1M"], "--rotate 128K": ["--rotate", "128K"]}
    plenty, block = ["--buffer", "1G", "--memory", "4G"], ["--buffer", "64K", "--rings", "2", "--block"]
    costs = {name: [] for name in rotations}
    files, loops, diffs = {}, {"plenty": [], "block": []}, []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        folder = Path(folder)
        binary = folder / "paced_horolog"
        subprocess.run(["gcc", "-O2", "-I", HERE / "c", "-I", ROOT / "front/tracer/include", HERE / "c/paced_horolog.c", "-o", binary], check=True)
        for _ in range(ROUNDS):
            for name, words in rotations.items():
                _, _, recorder_ns, found = record(folder / "t.hrt", binary, 1_000_000, "--rings", "1024", *words)
                costs[name].append(recorder_ns / EVENTS)
                files[name] = len(found["files"])
                for file in found["files"]:
                    Path(file).unlink()
            for name, words in (("plenty", plenty), ("block", block)):
                reached, program_ns, _, _ = record(folder / f"{name}.hrt", binary, 0, *words)
                loops[name].append((1e9 / reached, program_ns / EVENTS))
            begun = time.monotonic_ns()
            done = subprocess.run([*RECORDER, HOROLOG, "-q", "trace", "diff", folder / "plenty.hrt", folder / "block.hrt", "--tolerance", "1000%"],
                                  capture_output=True, text=True)
            diffs.append((time.monotonic_ns() - begun) / EVENTS)
            assert done.returncode in (0, 1), done.stderr
    print(f"(a) processor time of the recorder an event, {EVENTS} events at 1,000,000 a second")
    for name in rotations:
        line(name, costs[name], f"{files[name]} files" if files[name] > 1 else "")
    print("(b) an event in a loop without a pause")
    for name, words in (("plenty", plenty), ("block", block)):
        line(f"{' '.join(words)}, wall clock", [wall for wall, _ in loops[name]])
        line(f"{' '.join(words)}, processor time", [used for _, used in loops[name]])
    print("(c) `trace diff`, an event of both files")
    line("two files", diffs)
    print(f"events lost: {lost}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
