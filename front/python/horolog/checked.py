"""Results of verifying a trace and of closing the loop, as dataclasses; ``data`` is the JSON object of the command.

Times are whole nanoseconds and say so in their names. The schemas are documented in docs/contract.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import bad_argument
from .pages import Page, framed, write
from .results import Outcome, Result, closing_of, duration, named, outcome_of, table


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that verifying has found."""

    kind: str
    """Whose fault: ``model-violated``, ``bound-violated``, ``machine-disturbed``, ``schedule-differs`` or ``cannot-tell``."""
    check: str
    """Which check found it."""
    time_ns: int
    """When, in ns since the trace's origin."""
    cpu: int
    """On which processor."""
    task: str | None
    """Which task."""
    job: int | None
    """Which of its jobs."""
    message: str
    """All of it in words."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class TaskVerification:
    """What a trace shows of a task, beside its bound."""

    name: str
    """The task."""
    jobs: int
    """Jobs whose release the trace shows."""
    missed: int
    """Jobs that finished late, or were late at the end."""
    judged: int
    """Jobs whose records are whole and were judged."""
    bound_ns: int | None
    """The bound on the response time that was checked, in ns; None where no test has one."""
    response_ns_max: int | None
    """The longest response time in ns; None where no job was done."""
    margin_ns: int | None
    """The bound minus the longest response time in ns; None where there is no bound or it was exceeded."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """What was found in a trace, held against the model and the proof (schema ``horolog.verification/1``)."""

    verdict: str
    """``holds``, ``model-violated``, ``bound-violated``, ``machine-disturbed`` or ``unknown``."""
    records: int
    """How many records were read."""
    tasks: tuple[TaskVerification, ...]
    """In the order of the file."""
    findings: tuple[Finding, ...]
    """The first ones of each sort, in the order of time; ``data["groups"]`` counts all."""
    _page: Page = field(repr=False, compare=False)

    def task(self, name: str) -> TaskVerification:
        """What was found of the task of this name."""
        return named(self.tasks, name)

    @property
    def page(self) -> bytes:
        """The report's page, HTML that needs nothing else; when it is first asked for the trace is verified once more."""
        return self._page.read()

    def report(self, path: str | Path) -> Path:
        """Writes the report's page, one HTML file with the findings and the timeline of the trace, and gives its path."""
        return write(path, self.page)

    def _repr_html_(self) -> str:
        rows = [
            (t.name, t.jobs, t.judged, t.missed, duration(t.response_ns_max), duration(t.bound_ns))
            for t in self.tasks
        ]
        head = ("task", "jobs", "judged", "missed", "longest response", "bound")
        return table(self, head, rows) + framed(self.system, self._page)


@dataclass(frozen=True, slots=True)
class RunOutcome(Outcome):
    """What a run on this machine saw (schema ``horolog.outcome/1``); no task where nothing was run, and ``closing`` says why."""

    log: str = field(repr=False, compare=False)
    """What the command and the user's code wrote to their standard error."""

    def report(self, path: str | Path) -> Path:
        """Writes the report's page, one HTML file with timeline and distributions, and gives its path."""
        if not self.page:
            raise bad_argument("path", "nothing was run, so there is no report")
        return write(path, self.page)


@dataclass(frozen=True, slots=True)
class LoopTask:
    """A task in all steps of the loop."""

    name: str
    """The task."""
    verdict: str
    """Of the proof: ``meets``, ``misses`` or ``unknown``."""
    bound_ns: int | None
    """The bound on the response time in ns; None where no test has one."""
    deadline_ns: int | None
    """The relative deadline in ns."""
    simulated_ns_max: int | None
    """The longest simulated response time in ns."""
    measured_ns_max: int | None
    """The longest measured one in ns; None where nothing was run."""
    missed: int | None
    """Jobs of the run that missed their deadline; None where nothing was run."""


@dataclass(frozen=True, slots=True)
class LoopResult(Result):
    """What the loop came to: proof, simulation, run, verified record (schema ``horolog.loop/1``)."""

    tasks: tuple[LoopTask, ...]
    """In the order of the file; empty where it was stopped before the proof."""
    not_run: str | None
    """Why nothing was run, where the machine does not allow it."""
    folder: Path | None
    """Where the results and traces are; None where they were not to be kept."""
    page: bytes = field(repr=False, compare=False)
    """The report, HTML that needs nothing else; empty where it was stopped before there was one."""
    log: str = field(repr=False, compare=False)
    """What the command and the user's code wrote to their standard error."""

    def task(self, name: str) -> LoopTask:
        """What was found of the task of this name."""
        return named(self.tasks, name)

    def report(self, path: str | Path) -> Path:
        """Writes the report, one HTML file, and gives its path."""
        if not self.page:
            raise bad_argument("path", "the loop was stopped before there was a report")
        return write(path, self.page)

    def _repr_html_(self) -> str:
        rows = [
            (
                t.name,
                t.verdict,
                duration(t.bound_ns),
                duration(t.simulated_ns_max),
                duration(t.measured_ns_max),
                duration(t.deadline_ns),
                t.missed,
            )
            for t in self.tasks
        ]
        head = ("task", "proof", "bound", "simulated", "measured", "deadline", "missed")
        return table(self, head, rows) + framed(self.system, Page(self.page))


def verification_of(data: dict[str, Any], page: Page) -> Verification:
    """The dataclass of the engine's JSON."""
    tasks = tuple(
        TaskVerification(
            one["name"],
            one["jobs"],
            one["missed"],
            one["judged"],
            one["bound_ns"],
            one["response_ns_max"],
            one["margin_ns"],
            one,
        )
        for one in data["tasks"]
    )
    findings = tuple(
        Finding(
            one["class"],
            one["check"],
            one["time_ns"],
            one["cpu"],
            one["task"],
            one["job"],
            one["message"],
            one,
        )
        for one in data["findings"]
    )
    closing = closing_of(data["closing"])
    return Verification(data["system"], closing, data, data["verdict"], data["records"], tasks, findings, page)


def run_of(data: dict[str, Any], page: bytes, log: str) -> RunOutcome:
    """The dataclass of the command's JSON."""
    if "tasks" not in data:
        return RunOutcome(data["system"], closing_of(data["closing"]), data, 0, (), Page(page), log)
    seen = outcome_of(data, Page(page))
    return RunOutcome(seen.system, seen.closing, seen.data, seen.horizon_ns, seen.tasks, seen._page, log)


def loop_of(text: str, folder: Path | None, page: bytes, log: str) -> LoopResult:
    """The dataclass of the command's JSON."""
    data: dict[str, Any] = json.loads(text)
    proved = data.get("analysis")
    simulated = data["simulated"]["tasks"] if proved else []
    run = data.get("measured")
    tasks = []
    for place, one in enumerate(proved["tasks"] if proved else ()):
        measured = run["tasks"][place] if run else None
        tasks.append(
            LoopTask(
                one["name"],
                one["verdict"],
                one.get("response_ns"),
                one.get("deadline_ns"),
                simulated[place].get("response_ns_max"),
                measured.get("response_ns_max") if measured else None,
                measured["missed"] if measured else None,
            )
        )
    system = proved["system"] if proved else data["system"]
    closing = closing_of(data["closing"])
    return LoopResult(system, closing, data, tuple(tasks), data.get("not_run"), folder, page, log)
