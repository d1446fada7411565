#!/usr/bin/env python3
"""User-space tracers beside each other, in one session, interleaved: `python3 bench/tracers/run.py [REPEATS]`.

Each repeat runs every tracer once, switched off and switched on, 200,000 events a round (10 million switched off) with two
integer arguments on one processor; the tracer's drain has the other. Printed: the median and the least of all rounds in nanoseconds an event,
events lost, and ratios to horolog. A cost counts only where nothing was lost. Rivals that are not installed are named.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ROUNDS, EVENTS = 3, 200_000
PIN = ["taskset", "-c", "1"]


class Table:
    def __init__(self):
        self.rounds, self.lost, self.notes = {}, {}, {}

    def take(self, text):
        for line in text.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in ("off", "on"):
                self.rounds.setdefault((words[0], words[1]), []).append(float(words[2]))
            elif len(words) == 3 and words[1] == "lost":
                self.lost[words[0]] = self.lost.get(words[0], 0) + int(words[2])
            elif len(words) > 2 and words[1] == "ring":
                self.notes[words[0]] = " ".join(words[2:])

    def median(self, name, mode):
        values = self.rounds.get((name, mode))
        return statistics.median(values) if values else None

    def show(self):
        print(f"\n{'tracer':24}{'mode':>5}{'median':>10}{'least':>10}{'rounds':>8}{'lost':>10}   ns an event")
        for (name, mode), values in sorted(self.rounds.items()):
            lost = self.lost.get(name, 0) if mode == "on" else ""
            print(f"{name:24}{mode:>5}{statistics.median(values):10.2f}{min(values):10.2f}{len(values):8}{lost!s:>10}   "
                  f"{self.notes.get(name, '') if mode == 'on' else ''}")
        ours = self.median("horolog", "on")
        for (name, mode) in sorted(self.rounds):
            if mode == "on" and ours and name not in ("horolog", "rdtsc"):
                fair = "" if self.lost.get(name, 0) == 0 else " (lost events: does not count)"
                print(f"{name} / horolog, on: {self.median(name, 'on') / ours:.1f}{fair}")
        if ours and self.median("rdtsc", "on"):
            print(f"horolog on, less rdtsc alone: {ours - self.median('rdtsc', 'on'):+.2f} ns")
        off, empty = self.median("horolog", "off"), self.median("empty-loop-c", "off")
        if off and empty:
            print(f"horolog off, less the empty loop: {off - empty:+.2f} ns")


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()[-400:]}")
    return done.stdout


def compile_c(name, out, *more):
    source = HERE / "c" / f"{name}.c"
    binary = out / name
    run(["gcc", "-O2", "-I", HERE / "c", source, "-o", binary, *more])
    return binary


def events(binary, mode):
    return [*PIN, str(binary), str(ROUNDS), str(EVENTS), mode]


def lttng(table, binary, out):
    table.take(run(events(binary, "off")))
    trace = out / "lttng-trace"
    shutil.rmtree(trace, ignore_errors=True)
    home = {**os.environ, "LTTNG_HOME": str(out)}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=home,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            if subprocess.run(["lttng", "create", "bench", f"--output={trace}"], env=home, capture_output=True).returncode == 0:
                break
            subprocess.run(["sleep", "0.1"])
        run(["lttng", "enable-channel", "-u", "ring", "--subbuf-size=8M", "--num-subbuf=8"], env=home)
        run(["lttng", "enable-event", "-u", "-c", "ring", "bench:event"], env=home)
        run(["lttng", "start"], env=home)
        table.take(run(events(binary, "on"), env=home))
        run(["lttng", "destroy"], env=home)
        read = subprocess.run(["babeltrace2", str(trace)], capture_output=True, text=True).stdout.count("\n")
        table.take(f"lttng-ust lost {ROUNDS * EVENTS - read}\nlttng-ust ring 8 subbuffers of 8 MiB a processor")
    finally:
        daemon.terminate()
        daemon.wait()


def usdt(table, binary, out):
    table.take(run(events(binary, "off")))
    run(["perf", "buildid-cache", "--add", str(binary)])
    run(["perf", "probe", "sdt_bench:event"])
    try:
        data = out / "usdt.data"
        text = run(["perf", "record", "-q", "-m", "16M", "-e", "sdt_bench:event", "-o", str(data), *events(binary, "on")])
        report = run(["perf", "report", "-i", str(data), "--stats"])
        counts = [int(line.split()[2]) for line in report.splitlines() if "SAMPLE events" in line]
        if not counts:
            raise RuntimeError("perf recorded no event of the probe")
        seen = counts[0]
        table.take(text)
        table.take(f"usdt lost {ROUNDS * EVENTS - seen}\nusdt ring 16 MiB a processor, written by perf")
    finally:
        run(["perf", "probe", "-d", "sdt_bench:event"])


def horolog(table, binary, out):
    command = ROOT / "target" / "release" / "horolog"
    table.take(run(events(binary, "off")))
    trace = out / "horolog.hrt"
    table.take(run([command, "trace", "record", "--quiet", "--buffer", "16 MiB", "--event", "bench/*", "--out", trace,
                    "--", *events(binary, "on")]))
    seen = json.loads(run([command, "trace", "stats", "--format", "json", trace]))
    count = sum(event["count"] for event in seen["user"]["events"] if event["name"] == "bench/event")
    table.take(f"horolog lost {ROUNDS * EVENTS - count}\nhorolog ring 16 MiB a thread")


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    table, absent = Table(), []
    run(["cargo", "build", "--release", "--quiet"], cwd=ROOT)
    run(["cargo", "build", "--release", "--quiet"], cwd=HERE)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        rust = HERE / "target" / "release"
        include = ["-I", ROOT / "front" / "tracer" / "include"]
        jobs = []

        def add(name, needs, prepare):
            missing = [word for word in needs if not shutil.which(word)]
            try:
                if missing:
                    raise RuntimeError(f"not installed: {', '.join(missing)}")
                jobs.append((name, prepare()))
            except RuntimeError as error:
                absent.append(f"SKIPPED: {name}: {error}")

        def c(name, then, *more):
            binary = compile_c(name, out, *more)
            return lambda: then(table, binary, out)

        add("empty loop", [], lambda: c("empty", lambda t, b, o: t.take(run(events(b, "off")))))
        add("rdtsc", [], lambda: lambda: table.take(run([*PIN, rust / "empty", str(ROUNDS), str(EVENTS)])))
        add("horolog", [], lambda: c("horolog", horolog, *include))
        add("lttng-ust", ["lttng-sessiond", "babeltrace2"], lambda: c("lttng", lttng, "-llttng-ust", "-ldl"))
        add("usdt", ["perf"], lambda: c("usdt", usdt))
        for name, binary in (("perfetto-sdk", "perfetto"), ("tracing crate", "tracing_crate")):
            add(name, [], lambda binary=binary: lambda: table.take(run([*PIN[:-1], "0,1", rust / binary, str(ROUNDS), str(EVENTS)])))
        for repeat in range(repeats):
            for name, job in list(jobs):
                print(f"repeat {repeat + 1} of {repeats}: {name}", file=sys.stderr)
                try:
                    job()
                except RuntimeError as error:
                    absent.append(f"SKIPPED: {name}: {error}")
                    jobs = [entry for entry in jobs if entry[0] != name]
    table.show()
    for line in absent:
        print(line)


if __name__ == "__main__":
    main()
