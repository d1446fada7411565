#!/usr/bin/env python3
"""What recording costs a process that emits nothing: time of 100 times /bin/true, memory of a process that sleeps.

process_cost.py [ROUNDS] [HOROLOG]

The libraries are those that are shipped (profile `dist`; others where HOROLOG_LIBRARY_PATH names their folder), the command that of
the release build. The ways take turns.
"""
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 100
# Measured inside, so that start and end of the recorder do not count.
LOOP = f"""
TIMEFORMAT='%R %U %S'
{{ time for ((i = 0; i < {PROCESSES}; i++)); do /bin/true; done; }} 2> "$0"
"""


def ways(horolog, folder):
    record = [horolog, "-q", "trace", "record", "--out", f"{folder}/t.hrt"]
    return {
        "alone": [],
        "trace record": [*record, "--"],
        "trace record --locks": [*record, "--locks", "--"],
        "trace locks": [horolog, "-q", "trace", "locks", "--"],
    }


def run(words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def loop_ms(way, folder):
    """Milliseconds of one process, its fork and its exec included: of the clock, and of processors."""
    out = f"{folder}/times"
    run([*way, "bash", "-c", LOOP, out])
    real, user, system = (float(word) * 1000 / PROCESSES for word in Path(out).read_text().split())
    return real, user + system


def memory_kib(way, folder):
    """What belongs to a sleeping process alone: its anonymous pages, and those of its session."""
    sleeper = f"{folder}/sleeper"
    if not os.path.exists(sleeper):
        os.symlink("/bin/sleep", sleeper)
    pid_file = f"{folder}/pid"
    running = subprocess.Popen(
        [*way, "sh", "-c", f"echo $$ > {pid_file}; exec {sleeper} 1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.7)
    pid = Path(pid_file).read_text().strip()
    total, is_session = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-", line):
            is_session = "/memfd:horolog-trace" in line
        elif line.startswith("Anonymous:") or (is_session and line.startswith("Rss:")):
            total += int(line.split()[1])
    running.wait()
    return total


def whole_ms(way):
    """Milliseconds of a whole command, and how often its processes waited for something."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw, time.monotonic()
    run([*way, "/bin/true"])
    took = time.monotonic() - begin
    return took * 1000, resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    horolog = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else str(ROOT / "target/release/horolog")
    if "HOROLOG_LIBRARY_PATH" not in os.environ:
        packages = ["-p", "horolog-tracer", "-p", "horolog-locks"]
        subprocess.run(["cargo", "build", "--quiet", "--profile", "dist", *packages], cwd=ROOT, check=True)
        os.environ["HOROLOG_LIBRARY_PATH"] = str(ROOT / "target/dist")
    with tempfile.TemporaryDirectory() as folder:
        all_ways = ways(horolog, folder)
        loops = {name: [] for name in all_ways}
        memory = {name: [] for name in all_ways}
        wholes = {name: [] for name in all_ways}
        for _ in range(rounds):
            for name, way in all_ways.items():
                loops[name].append(loop_ms(way, folder))
                wholes[name].append(whole_ms(way))
        for _ in range(min(rounds, 5)):
            for name, way in all_ways.items():
                memory[name].append(memory_kib(way, folder))
    base = min(memory["alone"])
    print(f"(a) a process, {PROCESSES} times /bin/true from bash, by the median of {rounds} rounds")
    middle = {name: [statistics.median(each) for each in zip(*pairs)] for name, pairs in loops.items()}
    for name, (real, used) in middle.items():
        more = ""
        if name != "alone":
            more = f"; more: {real - middle['alone'][0]:.2f} ms, {used - middle['alone'][1]:.2f} ms"
        print(f"{name}: {real:.2f} ms by the clock, {used:.2f} ms of processors{more}")
    print("(b) memory of a process of its own that sleeps, before its first event or lock, by the minimum")
    for name, sizes in memory.items():
        more = "" if name == "alone" else f", {min(sizes) - base} KiB more"
        print(f"{name}: {min(sizes)} KiB{more}")
    print("(c) the whole command with /bin/true, and how often its processes waited")
    for name, pairs in wholes.items():
        took, waits = statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)
        print(f"{name}: {took:.1f} ms, {waits:.0f} waits")


main()
