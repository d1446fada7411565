"""horolog beside SimSo (PyPI: simso): every job of a simulation, and the proof beside both.

Both simulate the same periodic tasks with offsets, every job with its wcet, on one processor or several. On one processor without
offsets and with deadlines up to the periods the simulation of a hyperperiod decides, so horolog's proof has to say the same.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from math import lcm
from pathlib import Path

import horolog
from common import SHAPES, Drawn, Tally, draw, head, ranks

warnings.simplefilter("ignore")  # SimPy 2 is older than the interpreter

from simso.configuration import Configuration  # noqa: E402
from simso.core import Model  # noqa: E402

UNIT = 1000  # ns; one cycle of SimSo is one nanosecond
CYCLES_PER_MS = 1_000_000
MOST = 400  # units that are simulated
SCHEDULERS = {
    ("fixed-priority", 1): "simso.schedulers.FP",
    ("edf", 1): "simso.schedulers.EDF_mono",
    ("fixed-priority", 2): "simso.schedulers.FP",
    ("edf", 2): "simso.schedulers.EDF",
    ("fixed-priority", 3): "simso.schedulers.FP",
    ("edf", 3): "simso.schedulers.EDF",
}
Jobs = list[list[tuple[int, int | None]]]
"""Of each task the arrival and the end of each job in ns; None where it had not ended."""


def milliseconds(nanoseconds: int) -> float:
    """SimSo takes milliseconds and cuts the cycles to whole ones: a quarter more keeps the number."""
    return (nanoseconds + 0.25) / CYCLES_PER_MS


class Case:
    """One set on some processors; times in units."""

    def __init__(self, policy: str, cpus: int, offsets: bool, tasks: list[Drawn], dice: random.Random) -> None:
        self.policy, self.cpus, self.tasks = policy, cpus, tasks
        self.priorities = ranks(tasks)
        self.offsets = [dice.randrange(task.period) if offsets else 0 for task in tasks]
        whole = lcm(*(task.period for task in tasks))
        self.whole = whole + 2 * max(self.offsets) <= MOST
        self.horizon = min(MOST, 2 * whole + max(self.offsets))

    def system(self) -> horolog.System:
        listed = [
            {
                "name": f"t{place}",
                "period": f"{task.period * UNIT} ns",
                "deadline": f"{task.deadline * UNIT} ns",
                "wcet": f"{task.wcet * UNIT} ns",
            }
            # Without offsets a simulation begins with all releases together, and the proof is exact.
            | ({"offset": f"{offset * UNIT} ns"} if any(self.offsets) else {})
            | ({"priority": rank} if self.policy == "fixed-priority" else {})
            for place, (task, rank, offset) in enumerate(zip(self.tasks, self.priorities, self.offsets, strict=True))
        ]
        if self.cpus == 1:
            return horolog.System(system={"name": "set", "policy": self.policy}, task=listed)
        cluster = {"name": "all", "cpus": list(range(self.cpus)), "order": self.policy, "tasks": [one["name"] for one in listed]}
        return horolog.System(
            system={"name": "set", "policy": self.policy}, platform={"cpus": self.cpus}, task=listed, cluster=[cluster]
        )

    def theirs(self) -> Jobs:
        configuration = Configuration()
        configuration.cycles_per_ms = CYCLES_PER_MS
        configuration.duration = self.horizon * UNIT
        for place, (task, rank, offset) in enumerate(zip(self.tasks, self.priorities, self.offsets, strict=True)):
            configuration.add_task(
                name=f"t{place}",
                identifier=place,
                period=milliseconds(task.period * UNIT),
                activation_date=milliseconds(offset * UNIT) if offset else 0,
                wcet=milliseconds(task.wcet * UNIT),
                deadline=milliseconds(task.deadline * UNIT),
                abort_on_miss=False,
                data={"priority": rank},
            )
        for cpu in range(self.cpus):
            configuration.add_processor(name=f"CPU {cpu}", identifier=cpu)
        configuration.scheduler_info.clas = SCHEDULERS[self.policy, self.cpus]
        return jobs_of(configuration)

    def __str__(self) -> str:
        rows = zip(self.tasks, self.priorities, self.offsets, strict=True)
        return f"{self.cpus} processors: " + "; ".join(
            f"C {task.wcet} D {task.deadline} T {task.period}"
            + (f" priority {rank}" if self.policy == "fixed-priority" else "")
            + (f" offset {offset}" if offset else "")
            for task, rank, offset in rows
        )


def jobs_of(configuration: Configuration) -> Jobs:
    """Runs SimSo; its global EDF prints what it does."""
    with contextlib.redirect_stdout(io.StringIO()):
        configuration.check_all()
        model = Model(configuration)
        model.run_model()
    last = configuration.duration
    ends = lambda job: int(job.end_date) if job.end_date is not None and job.end_date <= last else None  # noqa: E731
    return [
        [(round(job.activation_date * CYCLES_PER_MS), ends(job)) for job in task.jobs] for task in model.task_list
    ]


def ours(system: horolog.System, horizon: int, folder: Path) -> Jobs:
    """The jobs of horolog's simulation."""
    file = folder / "set.trace"
    system.simulate(f"{horizon} ns", machine="none", trace=file)
    trace = horolog.read_trace(file)
    found: Jobs = [[] for _ in trace.tasks]
    names = {name: place for place, name in enumerate(trace.tasks)}
    for record in trace:
        if record.kind == "release":
            found[names[record.task]].append((record.value, None))
        elif record.kind == "completion" and record.time_ns <= horizon:
            jobs = found[names[record.task]]
            jobs[record.job] = (jobs[record.job][0], record.time_ns)
    return found


def late(jobs: Jobs, deadlines: list[int], horizon: int) -> list[bool]:
    """Which tasks have a job that was late for sure."""
    return [
        any((end if end is not None else horizon) > arrival + deadline for arrival, end in listed)
        for listed, deadline in zip(jobs, deadlines, strict=True)
    ]


def ends_of(jobs: Jobs) -> list[list[int | None]]:
    return [[end for _, end in sorted(listed, key=lambda one: one[0])] for listed in jobs]


def nearly(here: Jobs, there: Jobs) -> bool:
    """Whether job number k ends at most k + 1 ns earlier there."""
    pairs = zip(ends_of(here), ends_of(there), strict=True)
    return all(
        end is not None and other is not None and 0 <= end - other <= job + 1
        for mine, listed in pairs
        for job, (end, other) in enumerate(zip(mine, listed, strict=False))
    )


def tied(case: Case) -> bool:
    """Whether two jobs of different tasks ever have one deadline."""
    seen: set[int] = set()
    for task, offset in zip(case.tasks, case.offsets, strict=True):
        dues = {due + task.deadline for due in range(offset, case.horizon, task.period)}
        if seen & dues:
            return True
        seen |= dues
    return False


def compare(case: Case, tally: Tally, folder: Path) -> None:
    system, horizon = case.system(), case.horizon * UNIT
    here, there = ours(system, horizon, folder), case.theirs()
    what = f"{case.policy}, {'one processor' if case.cpus == 1 else f'{case.cpus} processors'}"
    deadlines = [task.deadline * UNIT for task in case.tasks]
    lates = late(here, deadlines, horizon), late(there, deadlines, horizon)
    same = ends_of(here) == [listed[: len(mine)] for listed, mine in zip(ends_of(there), here, strict=True)]
    if same:
        tally.same(f"{what}: ends of jobs", sum(map(len, here)))
    elif case.policy == "edf" and tied(case):
        tally.explain(f"{what}: sets", "rule 7: jobs with one deadline in another order", case)
    else:
        tally.differ(what, f"{case}: {ends_of(here)} and {ends_of(there)}")
    if case.cpus == 1:
        prove(case, system, any(lates[0]), any(lates[1]), tally, what)


def prove(case: Case, system: horolog.System, late_here: bool, late_there: bool, tally: Tally, what: str) -> None:
    """Holds the proof against both simulations, where they decide."""
    if late_here != late_there:
        tally.differ(f"{what}: misses", f"{case}: {late_here}, {late_there}")
    analysis = system.analyze(machine="none")
    synchronous = not any(case.offsets) and all(task.deadline <= task.period for task in case.tasks)
    if synchronous and case.whole:
        if (analysis.schedulable == "no") == late_there:
            tally.same(f"{what}: verdicts of the proof")
        else:
            tally.differ(what, f"proof {analysis.schedulable}, SimSo late {late_there}: {case}")
    elif analysis.schedulable == "yes":
        if late_there:
            tally.differ(what, f"proved, but late in SimSo: {case}")
        else:
            tally.same(f"{what}: proofs that SimSo keeps")


def samples(folder: Path, tally: Tally) -> None:
    """The sample files of tests/interchange through SimSo's own reader."""
    for file in sorted(Path(__file__).parents[2].glob("tests/interchange/simso/*.xml")):
        configuration, converted = Configuration(str(file)), converted_of(file)
        horizon = int(configuration.duration)
        here, there = ours(converted, horizon, folder), jobs_of(configuration)
        deadlines = [round(task.deadline * CYCLES_PER_MS) for task in configuration.task_info_list]
        lates = [any(late(jobs, deadlines, horizon)) for jobs in (here, there)]
        dated = any(task.task_type == "Sporadic" and task.period for task in configuration.task_info_list)
        if lates[0] != lates[1]:
            tally.differ(f"sample {file.name}", f"late: {lates}")
        elif ends_of(here) == [listed[: len(mine)] for listed, mine in zip(ends_of(there), here, strict=True)]:
            tally.same(f"sample {file.name}: ends of jobs", sum(map(len, here)))
        elif nearly(here, there):
            tally.explain("samples", "rule 12: SimSo cuts each period of 33.3 ms to whole cycles", file.name)
        elif dated and not any(lates):
            tally.explain("samples", "rule 8: the dates of a sporadic task with a period are left out here", file.name)
        else:
            tally.differ(f"sample {file.name}", f"{ends_of(here)} and {ends_of(there)}")


def converted_of(file: Path) -> horolog.System:
    """What `horolog check --from simso` makes of it."""
    command = os.environ.get("HOROLOG_COMMAND", "horolog")
    words = [command, "-q", "check", "--from", "simso", str(file)]
    return horolog.System.parse(subprocess.run(words, check=True, capture_output=True, text=True).stdout, file.name)


def cases(count: int, seed: int) -> Iterator[Case]:
    for number, shape in enumerate(SHAPES):
        for policy, cpus in SCHEDULERS:
            for offsets in (False, True):
                dice = random.Random(f"{seed} {number} {policy} {cpus} {offsets}")
                for tasks in draw(shape, count, seed * 100 + number):
                    # On several processors the same set is there once for each, so that it is neither idle nor hopeless.
                    yield Case(policy, cpus, offsets, tasks * cpus if cpus > 1 else tasks, dice)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--sets", type=int, default=15, help="sets of each shape, policy and number of processors")
    words.add_argument("--seed", type=int, default=1)
    words = words.parse_args()
    head("simso")
    tally, sets = Tally(), 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(words.sets, words.seed):
            compare(case, tally, Path(folder))
            sets += 1
        samples(Path(folder), tally)
    print(f"{sets} sets")
    return tally.close()


if __name__ == "__main__":
    raise SystemExit(main())
