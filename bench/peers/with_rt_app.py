"""The workloads of tests/interchange executed by rt-app (Debian's package), beside horolog's proof.

rt-app writes of each activation how much time was left (`slack`, us). A thread that horolog proves to meet its deadlines has none
below zero, unless the machine was late; a run is no proof. Needs the right to SCHED_FIFO, and the processors that a file names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import horolog
from common import Tally, head

LATE_US = 1_000
"""What the machine and the calibration may add, in us."""


def plain(text: str) -> dict:
    """The file without comments and commas before a closing bracket."""
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))


def run(program: str, workload: dict, folder: Path) -> dict[str, list[int]]:
    """Of each thread the slack of its activations in us."""
    whole = workload.setdefault("global", {})
    whole |= {"duration": 4, "logdir": str(folder), "log_basename": "set", "calibration": "CPU0"}
    file = folder / "set.json"
    file.write_text(json.dumps(workload))
    subprocess.run([program, str(file)], check=True, capture_output=True, timeout=120)
    found = {}
    for log in sorted(folder.glob("set-*.log")):
        lines = [line.split() for line in log.read_text().splitlines()]
        heads = next(line for line in lines if "slack" in line)
        place = [word for word in heads if word != "#"].index("slack")
        name = log.stem.removeprefix("set-").rsplit("-", 1)[0]
        found[name] = [int(line[place]) for line in lines if line and line[0].isdigit()]
    return found


def converted(file: Path) -> horolog.System:
    command = os.environ.get("HOROLOG_COMMAND", "horolog")
    words = [command, "-q", "check", "--from", "rt-app", str(file)]
    return horolog.System.parse(subprocess.run(words, check=True, capture_output=True, text=True).stdout, file.name)


def main() -> int:
    head()
    program, tally = shutil.which("rt-app"), Tally()
    if program is None:
        print("SKIPPED: no rt-app; Debian has it as a package")
        return 0
    there = os.sched_getaffinity(0)
    for file in sorted(Path(__file__).parents[2].glob("tests/interchange/rt-app/*.json")):
        workload, system = plain(file.read_text()), converted(file)
        asked = {cpu for thread in workload["tasks"].values() for cpu in thread["cpus"]}
        if not asked <= there:
            print(f"SKIPPED: {file.name}: it asks for processors {sorted(asked)}, and there are {sorted(there)}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            slacks = run(program, workload, Path(folder))
        for task in system.analyze(machine="none").tasks:
            least = min(slacks[task.name])
            print(f"{file.name}, {task.name}: {task.verdict} here; {len(slacks[task.name])} activations, least slack {least} us")
            if (task.verdict == "meets") == (least > -LATE_US):
                tally.same("threads")
            else:
                tally.differ(file.name, f"{task.name}: {task.verdict} here, least slack {least} us there")
    return tally.close()


if __name__ == "__main__":
    raise SystemExit(main())
