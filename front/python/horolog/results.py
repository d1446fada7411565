"""Results as dataclasses. ``data`` of a result is the JSON object of the command, whole; the fields are its most used members.

Times are whole nanoseconds and say so in their names. The schemas ``horolog.analysis/1`` and ``horolog.outcome/1`` are documented
in docs/contract.md.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .pages import Page, framed, write


@dataclass(frozen=True, slots=True)
class Closing:
    """The verdict, as the command closes with it."""

    word: str
    """``holds``, ``no``, ``undecided``, …"""
    text: str
    """The rest of the closing line."""
    exit: int
    """The exit status of the command: 0 yes, 1 no, 2 bad input, 3 not allowed, 4 undecided."""
    proof: str | None
    """``yes``, ``no`` or ``undecided``: is every deadline proved? None where that was not asked."""
    model: str | None
    """Does the run fit the model? None where that was not asked."""
    deadlines: str | None
    """Did every job meet its deadline? None where that was not asked."""
    help: str | None
    """What to do."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """What the best test says of a task.

    Under fixed priorities the bound is the least fixed point of ``R = C + B + sum of ceil((R + J_j) / T_j) C_j`` over the more
    important tasks j, and its like for the first jobs of a busy period (Joseph and Pandya 1986; Lehoczky 1990); ``source`` names the
    publication of the test that was used, and ``exact`` says whether that test is exact or sufficient.
    """

    name: str
    """The task."""
    cpu: int
    """Where it runs."""
    verdict: str
    """``meets``, ``misses`` or ``unknown``."""
    response_ns: int | None
    """The bound on the response time in ns; None where no test has one."""
    deadline_ns: int | None
    """The relative deadline in ns."""
    test: str | None
    """The test that decided."""
    exact: bool | None
    """Whether it is exact, not only sufficient."""
    source: str | None
    """A key of docs/reference/references.md."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a simulation saw of a task."""

    name: str
    """The task."""
    jobs: int
    """Released jobs."""
    completed: int
    """Completed jobs."""
    missed: int
    """Jobs that were done after their deadline, or not at all by then."""
    response_ns_max: int | None
    """The longest response time in ns; None where no job was done."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What every result has."""

    system: str
    """The name of the system."""
    closing: Closing
    """The verdict."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """What ``--format json`` prints, as Python objects."""

    @property
    def holds(self) -> bool:
        """Whether all that was asked holds: False for no and for undecided."""
        return self.closing.exit == 0

    def to_json(self, indent: int | None = 2) -> str:
        """The JSON text of the result."""
        return json.dumps(self.data, indent=indent, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Analysis(Result):
    """What is proved of a system (schema ``horolog.analysis/1``)."""

    schedulable: str
    """``yes``, ``no`` or ``unknown``."""
    tasks: tuple[TaskVerdict, ...]
    """In the order of the file."""

    def task(self, name: str) -> TaskVerdict:
        """The verdict on the task of this name."""
        return named(self.tasks, name)

    def _repr_html_(self) -> str:
        rows = [
            (t.name, t.cpu, t.verdict, t.test, t.source, duration(t.response_ns), duration(t.deadline_ns))
            for t in self.tasks
        ]
        return table(self, ("task", "cpu", "verdict", "test", "source", "bound", "deadline"), rows)


@dataclass(frozen=True, slots=True)
class Outcome(Result):
    """What a simulation saw (schema ``horolog.outcome/1``): a simulation proves no bound."""

    horizon_ns: int
    """For how long jobs were released, in ns."""
    tasks: tuple[TaskOutcome, ...]
    """In the order of the file."""
    _page: Page = field(repr=False, compare=False)

    def task(self, name: str) -> TaskOutcome:
        """What was seen of the task of this name."""
        return named(self.tasks, name)

    @property
    def page(self) -> bytes:
        """The report's page, HTML that needs nothing else, made when it is first asked for."""
        return self._page.read()

    def report(self, path: str | Path) -> Path:
        """Writes the report's page, one HTML file with timeline and distributions, and gives its path."""
        return write(path, self.page)

    def _repr_html_(self) -> str:
        rows = [(t.name, t.jobs, t.completed, t.missed, duration(t.response_ns_max)) for t in self.tasks]
        shown = table(self, ("task", "jobs", "completed", "missed", "longest response"), rows)
        return shown + distributions([(t.name, t.data) for t in self.tasks]) + framed(self.system, self._page)


def analysis_of(text: str) -> Analysis:
    """The dataclass of the engine's JSON."""
    data: dict[str, Any] = json.loads(text)
    tasks = tuple(
        TaskVerdict(
            one["name"],
            one["cpu"],
            one["verdict"],
            one.get("response_ns"),
            one.get("deadline_ns"),
            one.get("test"),
            one.get("exact"),
            one.get("source"),
            one,
        )
        for one in data["tasks"]
    )
    return Analysis(data["system"], closing_of(data["closing"]), data, data["schedulable"], tasks)


def outcome_of(data: dict[str, Any], page: Page) -> Outcome:
    """The dataclass of the engine's JSON."""
    tasks = tuple(
        TaskOutcome(one["name"], one["jobs"], one["completed"], one["missed"], one.get("response_ns_max"), one)
        for one in data["tasks"]
    )
    return Outcome(data["system"], closing_of(data["closing"]), data, data["horizon_ns"], tasks, page)


def closing_of(data: dict[str, Any]) -> Closing:
    """The verdict of a result."""
    return Closing(
        data["word"],
        data["text"],
        data["exit"],
        data.get("proof"),
        data.get("model"),
        data.get("deadlines"),
        data.get("help"),
        data,
    )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


def named(items: tuple[_T, ...], name: str) -> _T:
    """The one of this name."""
    for item in items:
        if item.name == name:
            return item
    raise KeyError(f"no task is called {name!r}; there are: {', '.join(item.name for item in items)}")


def duration(value: int | None) -> str:
    """A duration for people."""
    if value is None:
        return "-"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value} ns"


_QUANTILES = ("response_ns_min", "response_ns_p50", "response_ns_p99_9", "response_ns_max")
_ROW, _LEFT, _WIDTH = 22, 140, 420


def distributions(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """Response times of tasks as a drawing, from 0 to the longest: a line from the least to the longest, a box from the median to p99.9.
    Each row is a name and an object with the quantiles. Empty where nothing is known."""
    known: list[tuple[str, list[int]]] = []
    for name, seen in rows:
        quantiles = [seen.get(key) for key in _QUANTILES]
        if None not in quantiles:
            known.append((name, [int(value) for value in quantiles if value is not None]))
    if not known:
        return ""
    most = max(found[3] for _, found in known) or 1
    parts = []
    for place, (name, found) in enumerate(known):
        low, middle, high, top = (_LEFT + round(value * _WIDTH / most, 1) for value in found)
        y = _ROW * place + _ROW // 2
        title = ", ".join(
            f"{word} {duration(value)}" for word, value in zip(("least", "p50", "p99.9", "longest"), found, strict=True)
        )
        parts.append(
            f'<g><title>{html.escape(f"{name}: {title}")}</title>'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" font-size="12" fill="currentColor">{html.escape(name)}</text>'
            f'<path d="M{low} {y}H{max(top, low + 1)}" stroke="#5b7fb4" stroke-width="2"/>'
            f'<rect x="{middle}" y="{y - 5}" width="{max(high - middle, 2):.1f}" height="10" fill="#5b7fb4"/></g>'
        )
    height = _ROW * len(known) + 18
    scale = (
        f'<text x="{_LEFT}" y="{height - 4}" font-size="11" fill="currentColor">0</text>'
        f'<text x="{_LEFT + _WIDTH}" y="{height - 4}" text-anchor="end" font-size="11" fill="currentColor">{duration(most)}</text>'
    )
    size = f'width="{_LEFT + _WIDTH + 10}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(parts)}{scale}</svg>'


_TONES = {"meets": "#2a7d2a", "misses": "#b00020", "unknown": "#8a6d00"}


def table(result: Result, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A result as a table of a notebook."""
    def cell(value: Any) -> str:
        text = html.escape("-" if value is None else str(value))
        tone = _TONES.get(text)
        return f'<td style="color:{tone};font-weight:bold">{text}</td>' if tone else f"<td>{text}</td>"

    caption = html.escape(f"{result.system}: {result.closing.word}: {result.closing.text}")
    heads = "".join(f"<th>{one}</th>" for one in head)
    body = "".join("<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
