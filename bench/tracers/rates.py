#!/usr/bin/env python3
"""How many events a second horolog and LTTng-UST keep, and what one costs: `python3 bench/tracers/rates.py [SECONDS] [HOROLOG]`.

Both record one event with two integers of one thread on processor 1; recorder, daemons and files have processor 0. Buffers: 64 MiB in all
(horolog: rings of 1 MiB, `--memory 64M`; LTTng: 8 subbuffers of 4 MiB on each of two processors, per-user buffers, its
default discard mode). Files lie in memory (`/dev/shm`), so that no disk decides. Printed:

(a) the highest fixed rate at which nothing is lost for SECONDS (10), by bisection between 1 and 20 million a second to 5 %; a rate that the
    program itself does not reach does not count; losses as each recorder counts them;
(b) horolog with `--buffer 1G`: 20,000,000 events in one loop without a pause, and what was lost;
(c) processor time an event: the recorder's at 2 million events a second for SECONDS; the program's over 5,000,000 events without a pause, less the
    same program unrecorded; beside each what was lost.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
HOROLOG = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "target" / "release" / "horolog"
PROGRAM, RECORDER = ["taskset", "-c", "1"], ["taskset", "-c", "0"]


def told(text):
    words = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return float(words["reached"]), int(words["cpu_ns"])


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Run:
    def __init__(self, reached, lost, program_ns, recorder_ns):
        self.reached, self.lost, self.program_ns, self.recorder_ns = reached, lost, program_ns, recorder_ns


class Horolog:
    name = "horolog"

    def __init__(self, out):
        self.out, self.binary = out, out / "paced_horolog"
        subprocess.run(["gcc", "-O2", "-I", HERE / "c", "-I", ROOT / "front/tracer/include", HERE / "c/paced_horolog.c", "-o", self.binary], check=True)

    def run(self, rate, events, sizes=("--buffer", "1M", "--memory", "64M")):
        trace = self.out / "t.hrt"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*RECORDER, HOROLOG, "trace", "record", "--format", "json", *sizes, "--event", "bench/*", "--out", trace,
                               "--", *PROGRAM, self.binary, str(rate), str(events)], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The program's own words and the result share the standard output.
        text, _, result = done.stdout.partition("{")
        found = json.loads("{" + result)
        reached, program_ns = told(text)
        assert found["events"] + found["events_lost"] == events, found
        trace.unlink()
        all_ns = sum(int((getattr(after, key) - getattr(before, key)) * 1e9) for key in ("ru_utime", "ru_stime"))
        return Run(reached, found["events_lost"], program_ns, all_ns - program_ns)


class Lttng:
    name = "lttng-ust"

    def __init__(self, out):
        self.out, self.binary = out, out / "paced_lttng"
        subprocess.run(["gcc", "-O2", "-I", HERE / "c", HERE / "c/paced_lttng.c", "-o", self.binary, "-llttng-ust", "-ldl"], check=True)

    def run(self, rate, events):
        home, trace = self.out / "home", self.out / "lttng-trace"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        env = {**os.environ, "LTTNG_HOME": str(home), "LTTNG_RUNDIR": str(home / "run")}
        lttng = lambda *words: subprocess.run(["lttng", *words], env=env, capture_output=True, text=True)
        daemon = subprocess.Popen([*RECORDER, "lttng-sessiond", "--no-kernel", "--quiet"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                if lttng("create", "bench", f"--output={trace}").returncode == 0:
                    break
                time.sleep(0.1)
            for words in (["enable-channel", "-u", "ring", "--subbuf-size=4M", "--num-subbuf=8"], ["enable-event", "-u", "-c", "ring", "bench:event"], ["start"]):
                done = lttng(*words)
                assert done.returncode == 0, done.stderr
            consumers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and self.serves(path, daemon.pid)]
            before = sum(cpu_of(pid) for pid in consumers)
            done = subprocess.run([*PROGRAM, self.binary, str(rate), str(events)], env=env, capture_output=True, text=True, check=True)
            lttng("stop")
            recorder_ns = sum(cpu_of(pid) for pid in consumers) - before
            listed = xml.fromstring(lttng("--mi", "xml", "list", "bench").stdout)
            lost = sum(int(node.text) for node in listed.iter() if node.tag.endswith("discarded_events"))
            lttng("destroy", "bench")
            reached, program_ns = told(done.stdout)
            return Run(reached, lost, program_ns, recorder_ns)
        finally:
            daemon.terminate()
            daemon.wait()
            shutil.rmtree(trace, ignore_errors=True)

    @staticmethod
    def serves(path, daemon):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            return int(path.name) == daemon or "lttng-consumerd" in (path / "cmdline").read_text() or parent == daemon
        except (OSError, IndexError, ValueError):
            return False


def highest(tracer):
    low, high = 1_000_000, 20_000_000
    if tracer.run(low, int(low * SECONDS)).lost:
        return None
    while high > low * 1.05:
        rate = int((low * high) ** 0.5)
        run = tracer.run(rate, int(rate * SECONDS))
        kept = run.lost == 0 and run.reached > rate * 0.98
        print(f"  {tracer.name}: {rate / 1e6:.2f} M/s: lost {run.lost}, reached {run.reached / 1e6:.2f} M/s", file=sys.stderr)
        low, high = (rate, high) if kept else (low, rate)
    return low


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder)
        tracers = [Horolog(out)]
        if shutil.which("lttng-sessiond"):
            tracers.append(Lttng(out))
        else:
            print("SKIPPED: lttng-ust: not installed (lttng-tools, liblttng-ust-dev)")
        for tracer in tracers:
            rate = highest(tracer)
            most = "under 1" if rate is None else f"{rate / 1e6:.2f}"
            print(f"(a) {tracer.name}: {most} M events a second for {SECONDS:.0f} s, none lost", flush=True)
        run = tracers[0].run(0, 20_000_000, ("--buffer", "1G"))
        print(f"(b) horolog, --buffer 1G: 20,000,000 events at {run.reached / 1e6:.1f} M/s, lost {run.lost}", flush=True)
        rate = 2_000_000
        events = int(rate * SECONDS)
        for tracer in tracers:
            run, idle = tracer.run(rate, events), subprocess.run([*PROGRAM, tracer.binary, "0", str(events)], capture_output=True, text=True)
            fast = tracer.run(0, 5_000_000)
            plain = told(idle.stdout)[1] / events
            print(f"(c) {tracer.name}: at {rate / 1e6:.0f} M/s the recorder takes {run.recorder_ns / events:.1f} ns an event (lost {run.lost}); the program, without a pause, "
                  f"{fast.program_ns / 5_000_000 - plain:.1f} ns (lost {fast.lost})", flush=True)


if __name__ == "__main__":
    main()
