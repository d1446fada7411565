"""The job sets of tests/interchange beside np-schedulability-analysis.

Without the program (`NPTEST` names its `nptest`; no package index has it) the verdicts are those that its own tests and its README
record, and the output says so. horolog's analysis has no exact test of job sets: it may say "unknown", and must never say anything else
than the exact test of that tool. A simulation that misses proves "no".
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import horolog
from common import Tally, head

SOURCE = "https://github.com/brandenburg/np-schedulability-analysis"
RECORDED = {
    "fig1a.csv": (False, "src/tests/fig1.cpp, 2958b064"),
    "fig1c.csv": (True, "src/tests/fig1.cpp, 2958b064"),
    "prm-fig1.csv": (False, "src/tests/iip.cpp, 4c61a40d (RM)"),
    "cw-fig2.csv": (False, "src/tests/iip.cpp, 4c61a40d (EDF)"),
}
"""Is the set schedulable on one processor? With where the tool's repository says so."""


def of_the_tool(file: Path) -> tuple[bool, str] | None:
    """Runs `nptest`: the second column is 1 for schedulable; the analysis of one processor is exact."""
    program = os.environ.get("NPTEST")
    if program is None:
        return RECORDED.get(file.name)
    line = subprocess.run([program, str(file)], check=True, capture_output=True, text=True).stdout
    return line.split(",")[1].strip() == "1", "run"


def converted(file: Path) -> horolog.System:
    command = os.environ.get("HOROLOG_COMMAND", "horolog")
    words = [command, "-q", "check", "--from", file.parent.name, str(file)]
    return horolog.System.parse(subprocess.run(words, check=True, capture_output=True, text=True).stdout, file.name)


def seed_that_misses(system: horolog.System, runs: int) -> int | None:
    """The first of some drawn executions with a late job; 0 is the one in which every job takes its wcet."""
    for seed in range(runs):
        execution = "uniform" if seed else "wcet"
        outcome = system.simulate("1 s", seed=seed, execution=execution, machine="none")
        if any(task.missed for task in outcome.tasks):
            return seed
    return None


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--sets", type=int, default=300, help="drawn executions of each set")
    words = words.parse_args()
    head()
    if "NPTEST" not in os.environ:
        print(f"SKIPPED: no nptest is named by NPTEST; build it from {SOURCE}. Its recorded verdicts instead:")
    tally = Tally()
    for file in sorted(Path(__file__).parents[2].glob("tests/interchange/np-csv/*.csv")):
        theirs = of_the_tool(file)
        if theirs is None:
            print(f"SKIPPED: {file.name}: its repository records no verdict for one processor")
            continue
        system = converted(file)
        proved, seed = system.analyze(machine="none").schedulable, seed_that_misses(system, words.sets)
        found = "no late job" if seed is None else f"a late job with seed {seed}"
        print(f"{file.name}: schedulable: {theirs[0]} there ({theirs[1]}); here: proof {proved}, simulation {found}")
        wrong = proved == ("no" if theirs[0] else "yes") or (theirs[0] and seed is not None)
        missed = not theirs[0] and seed is None and proved != "no"
        if wrong or missed:
            tally.differ(file.name, f"{theirs[0]} there, {proved} and {found} here")
        elif theirs[0] and proved == "unknown":
            tally.explain("job sets", "rule 10: horolog has no exact test of job sets, and says unknown", file.name)
        else:
            tally.same("job sets")
    return tally.close()


if __name__ == "__main__":
    raise SystemExit(main())
