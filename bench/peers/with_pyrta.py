"""horolog beside pyRTA (PyPI: response-time-analysis), task by task: verdicts and bounds.

pyRTA computes in whole units of time, horolog's bounds are suprema in continuous time. Where every parameter is a multiple of
``UNIT`` of pyRTA's units, a supremum is pyRTA's bound rounded up to the next multiple, and both verdicts are the same.
"""

from __future__ import annotations

import argparse
import random
from fractions import Fraction
from math import lcm

import horolog
from common import SHAPES, Drawn, Tally, draw, head, ranks
from response_time_analysis import edf, fp
from response_time_analysis.model import (
    WCET,
    Deadline,
    FullyNonPreemptive,
    FullyPreemptive,
    IdealProcessor,
    LimitedPreemptive,
    Periodic,
    PeriodicWithJitter,
    Priority,
    Task,
    taskset,
)

UNIT = 1000
HORIZON = 40_000  # units
TWINS = "rule 6: pyRTA leaves out tasks that are equal to the analysed one"
DISTINCT = [type(f"Task{place}", (Task,), {}) for place in range(max(shape.tasks for shape in SHAPES))]
KINDS = ("preemptive", "non-preemptive", "mixed", "deferred", "jitter", "equal priorities")


def parts_of(wcet: int, dice: random.Random) -> list[int]:
    """The wcet cut into one to four segments."""
    cuts = sorted(dice.sample(range(1, wcet), min(dice.randrange(4), wcet - 1))) if wcet > 1 else []
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, wcet], strict=True)]


class Case:
    """One set with its preemption modes, jitter and priorities; times in units."""

    def __init__(self, policy: str, kind: str, tasks: list[Drawn], dice: random.Random) -> None:
        self.policy, self.kind, self.tasks = policy, kind, tasks
        self.priorities = ranks(tasks)
        if kind == "equal priorities":
            self.priorities = [(rank + 1) // 2 for rank in self.priorities]
        modes = {"non-preemptive": ["non-preemptive"], "deferred": ["deferred"], "mixed": ["preemptive", "non-preemptive"]}
        self.modes = [dice.choice(modes.get(kind, ["preemptive"])) for _ in tasks]
        self.parts = [parts_of(task.wcet, dice) for task in tasks]
        self.jitter = [dice.randrange(0, task.period) if kind == "jitter" and dice.random() < 0.5 else 0 for task in tasks]

    def system(self, unit: int) -> horolog.System:
        listed = []
        for place, task in enumerate(self.tasks):
            one = {
                "name": f"t{place}",
                "separation": f"{task.period * unit} ns",
                "deadline": f"{task.deadline * unit} ns",
                "preemption": self.modes[place],
            }
            if self.modes[place] == "deferred":
                one["segments"] = [f"{part * unit} ns" for part in self.parts[place]]
            else:
                one["wcet"] = f"{task.wcet * unit} ns"
            if self.jitter[place]:
                one["jitter"] = f"{self.jitter[place] * unit} ns"
            if self.policy == "fixed-priority":
                one["priority"] = self.priorities[place]
            listed.append(one)
        return horolog.System(system={"name": "set", "policy": self.policy}, task=listed)

    def theirs(self, place: int, unit: int, *, distinct: bool = False) -> int | None:
        """pyRTA's bound, or None where it has none below the horizon; ``distinct``: each task of a class of its own, since pyRTA
        takes tasks with equal parameters for one task."""
        listed = []
        for at, task in enumerate(self.tasks):
            cost, parts = WCET(task.wcet * unit), self.parts[at]
            execution = {
                "preemptive": FullyPreemptive(cost),
                "non-preemptive": FullyNonPreemptive(cost),
                "deferred": LimitedPreemptive(cost, max(parts) * unit, parts[-1] * unit),
            }[self.modes[at]]
            jitter = self.jitter[at] * unit
            arrivals = PeriodicWithJitter(task.period * unit, jitter) if jitter else Periodic(task.period * unit)
            form = DISTINCT[at] if distinct else Task
            listed.append(form(arrivals, execution, Deadline(task.deadline * unit), Priority(self.priorities[at])))
        analysis = fp if self.policy == "fixed-priority" else edf
        found = analysis.rta(taskset(*listed), listed[place], IdealProcessor(), horizon=HORIZON * unit)
        return found.response_time_bound

    def twins(self) -> bool:
        """Whether two tasks have all parameters in common that pyRTA looks at."""
        rows = list(zip(self.tasks, self.priorities, self.modes, self.jitter, strict=True))
        return len({*rows}) < len(rows)

    def load(self, place: int) -> Fraction:
        """The utilisation of the task and all that go before it (of all under EDF)."""
        level = self.priorities[place] if self.policy == "fixed-priority" else 0
        counted = (one for one, rank in zip(self.tasks, self.priorities, strict=True) if rank >= level)
        return sum((Fraction(one.wcet, one.period) for one in counted), Fraction(0))

    def __str__(self) -> str:
        rows = zip(self.tasks, self.priorities, self.modes, self.parts, self.jitter, strict=True)
        return "; ".join(
            f"C {task.wcet} D {task.deadline} T {task.period}"
            + (f" priority {rank}" if self.policy == "fixed-priority" else "")
            + (f" {mode}" if mode != "preemptive" else "")
            + (f" {parts}" if mode == "deferred" else "")
            + (f" J {jitter}" if jitter else "")
            for task, rank, mode, parts, jitter in rows
        )


def without_bound(case: Case, place: int, verdict: str, tally: Tally, what: str) -> bool:
    """Whether pyRTA's missing bound agrees with what horolog says; tallied where it does or a rule explains it."""
    load = case.load(place)
    if load > 1 and verdict in ("misses", "unknown"):
        tally.same(f"{what}: overload")
    elif load == 1:
        tally.explain(what, "rule 2: a utilisation of exactly 1, where pyRTA's busy window has no end", case)
    elif lcm(*(task.period for task in case.tasks)) > HORIZON:
        tally.explain(what, "rule 3: pyRTA's horizon of this script ends the search", case)
    else:
        return False
    return True


def compare(case: Case, tally: Tally) -> None:
    analysis = case.system(UNIT).analyze(machine="none")
    what = f"{case.policy}, {case.kind}"
    for place, ours in enumerate(analysis.tasks):
        theirs = case.theirs(place, UNIT)
        if case.twins():
            whole = case.theirs(place, UNIT, distinct=True)
            if whole != theirs:
                tally.explain(what, TWINS, f"{theirs} there, {whole} with every task: {case}")
                theirs = whole
        if theirs is None:
            if not without_bound(case, place, ours.verdict, tally, what):
                tally.differ(what, f"t{place}: {ours.verdict} {ours.response_ns}, pyRTA has no bound: {case}")
            continue
        rounded = -(-theirs // UNIT) * UNIT
        meets = theirs <= case.tasks[place].deadline * UNIT
        bound = ours.response_ns
        if case.jitter[place]:
            # pyRTA counts from the release, horolog from the arrival, which is up to the jitter before it.
            fits = bound is not None and rounded <= bound <= rounded + case.jitter[place] * UNIT
            if fits:
                tally.explain(what, "rule 4: a late release counts from the release there, from the arrival here", case)
            else:
                tally.differ(what, f"t{place}: {bound}, pyRTA {theirs}: {case}")
        elif bound == rounded and (ours.verdict == "meets") == meets:
            tally.same(what)
        elif case.kind == "equal priorities" and bound is not None and bound < rounded:
            tally.explain(what, "rule 5: an equal that arrives later is counted there, and waits here", case)
        else:
            tally.differ(what, f"t{place}: {ours.verdict} {bound} ({ours.test}), pyRTA {theirs}: {case}")


def finer_rule(case: Case, place: int, bound: int, theirs: int) -> str | None:
    """Why the bound is above pyRTA's in whole ticks: what pyRTA says with a thousand ticks a unit."""
    finer = case.theirs(place, UNIT, distinct=True)
    if finer is not None and -(-finer // UNIT) == bound > theirs:
        return "rule 1: continuous time here, whole ticks there"
    if finer is None and case.load(place) == 1 and bound > theirs:
        return "rule 2: a utilisation of exactly 1, where pyRTA has a bound in whole ticks alone"
    return None


def compare_ticks(case: Case, tally: Tally) -> None:
    """The same at a resolution of one unit, where a blocking segment began a whole unit earlier."""
    what = f"{case.policy}, {case.kind}, whole ticks"
    for place, ours in enumerate(case.system(1).analyze(machine="none").tasks):
        theirs = case.theirs(place, 1, distinct=True)
        if theirs is None or ours.response_ns is None:
            continue
        integer = [test for test in ours.data["tests"] if test["test"] == "edf-response-non-preemptive-integer"]
        if integer and case.policy == "edf":
            if integer[0]["response_ns"] == theirs:
                tally.same(f"{what}, the test -integer")
            else:
                tally.differ(what, f"t{place}: {integer[0]}, pyRTA {theirs}: {case}")
        elif ours.response_ns == theirs:
            tally.same(what)
        elif rule := finer_rule(case, place, ours.response_ns, theirs):
            tally.explain(what, rule, case)
        else:
            tally.differ(what, f"t{place}: {ours.response_ns}, pyRTA {theirs}: {case}")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--sets", type=int, default=400, help="sets of each shape, policy and kind")
    words.add_argument("--seed", type=int, default=1)
    words = words.parse_args()
    head("response-time-analysis")
    tally, sets = Tally(), 0
    for number, shape in enumerate(SHAPES):
        for policy in ("fixed-priority", "edf"):
            for kind in KINDS if policy == "fixed-priority" else KINDS[:3]:
                dice = random.Random(f"{words.seed} {number} {policy} {kind}")
                for tasks in draw(shape, words.sets, words.seed * 100 + number):
                    case = Case(policy, kind, tasks, dice)
                    compare(case, tally)
                    if kind == "non-preemptive":
                        compare_ticks(case, tally)
                    sets += 1
    print(f"{sets} sets")
    return tally.close()


if __name__ == "__main__":
    raise SystemExit(main())
