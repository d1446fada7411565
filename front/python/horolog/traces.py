"""Reading traces: record batches for NumPy and Arrow, records one by one, tasks and threads (docs/trace-format.md).

Times are whole nanoseconds since the trace's origin.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from . import _checks, _engine
from .pages import Page, framed, of_trace, write

KINDS: tuple[str, ...] = tuple(_engine.KINDS)
"""Kinds of records: ``KINDS[code]`` is the kind of a code in the column ``kind`` (docs/trace-format.md says what each means)."""

NO_JOB = 2**64 - 1
"""In the column ``job``: no job is concerned."""

_MOST_ROWS = 1 << 24
_CODES = {"time_ns": "Q", "kind": "b", "cpu": "i", "task": "i", "job": "Q", "value": "Q", "extra": "Q"}


class Record(NamedTuple):
    """One thing that happened."""

    time_ns: int
    """When, in ns since the trace's origin."""
    kind: str
    """What, one of :data:`KINDS`."""
    cpu: int
    """On which processor."""
    task: str | None
    """Which task."""
    job: int | None
    """Which of its jobs, from 0."""
    value: int
    """What the kind says; of many kinds ns."""
    extra: int
    """What the kind says."""
    thread: int | None
    """The kernel's number of the thread that it is about; of a switch the one that got the processor."""
    process: int | None
    """The process of that thread, where known."""
    comm: str | None
    """The kernel's name of that thread."""
    prev_thread: int | None
    """Of a switch, the thread that left the processor."""
    next_thread: int | None
    """Of a switch, the thread that got it."""
    event: str | None
    """The name of a user event."""
    arguments: tuple[tuple[str, bool | int | float | str], ...] | None
    """Its arguments, each with its name and unit, as ``("length [B]", 3)``."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread that a trace names."""

    tid: int
    """The kernel's number."""
    comm: str
    """The kernel's name of it."""
    task: str | None
    """The task that it serves."""
    process: int | None
    """Its process, where known."""


class RecordBatch:
    """Some records as columns.

    ``time_ns``, ``job``, ``value`` and ``extra`` are memory views of 64-bit unsigned integers, ``kind`` (a place in :data:`KINDS`) of
    signed bytes, ``cpu`` and ``task`` (a place in ``Trace.tasks``; -1: none) of 32-bit integers: ``numpy.asarray`` takes them without
    a copy. What knows Arrow's PyCapsule interface (``pyarrow.record_batch(batch)``, ``polars.DataFrame(batch)``) takes all columns of
    docs/trace-format.md, with texts.
    """

    __slots__ = ("_native", "_tasks")

    def __init__(self, native: _engine.NativeBatch, tasks: tuple[str, ...]) -> None:
        self._native = native
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._native)

    @property
    def time_ns(self) -> memoryview:
        """Times in ns since the trace's origin."""
        return self._column("time_ns")

    @property
    def kind(self) -> memoryview:
        """Places in :data:`KINDS`."""
        return self._column("kind")

    @property
    def cpu(self) -> memoryview:
        """Processors."""
        return self._column("cpu")

    @property
    def task(self) -> memoryview:
        """Places in ``Trace.tasks``; -1: none."""
        return self._column("task")

    @property
    def job(self) -> memoryview:
        """Jobs; :data:`NO_JOB`: none."""
        return self._column("job")

    @property
    def value(self) -> memoryview:
        """What the kinds say."""
        return self._column("value")

    @property
    def extra(self) -> memoryview:
        """What the kinds say."""
        return self._column("extra")

    def _column(self, name: str) -> memoryview:
        return memoryview(self._native.column(name)).cast(_CODES[name])  # type: ignore[call-overload,no-any-return]

    def __iter__(self) -> Iterator[Record]:
        beside = {row: (*threads, event, arguments) for row, threads, event, arguments in self._native.contexts()}
        nothing = (None,) * 7
        columns = [self._column(name).tolist() for name in _CODES]
        for row, (time, kind, cpu, task, job, value, extra) in enumerate(zip(*columns, strict=True)):
            name = None if task < 0 else self._tasks[task]
            number = None if job == NO_JOB else job
            yield Record(time, KINDS[kind], cpu, name, number, value, extra, *beside.get(row, nothing))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        """The records as a struct array, for libraries that know Arrow's PyCapsule interface."""
        return self._native.arrow()


@dataclass(frozen=True)
class Trace:
    """A trace on disk, which is read anew by each iteration.

    It is an Arrow stream, too: ``pyarrow.table(trace)``, ``polars.DataFrame(trace)``, ``pyarrow.table(trace).to_pandas()`` and, with
    ``table = pyarrow.table(trace)``, ``duckdb.sql("select kind, count(*) from table group by all")``.
    """

    path: str
    """The file."""
    tasks: tuple[str, ...]
    """The names of tasks, in the order of their numbers."""
    backend: str
    """``sim``, ``linux``, ``linux-best-effort``, ``session`` or ``foreign``."""
    system: str
    """The normalised system file, which :meth:`System.parse` reads; empty where there is none."""
    threads: tuple[Thread, ...]
    """The threads that it names; empty where it was cut off."""
    count: int | None
    """How many records it has; None where it was cut off."""
    end_ns: int | None
    """When recording ended, in ns since the origin; None where it was cut off."""
    lost: int | None
    """How many records were lost; None where it was cut off."""
    keeps_damaged: bool
    """Whether reading ends quietly where the trace is damaged."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """Its head, as docs/trace-format.md has it."""

    def batches(self, rows: int = 65_536) -> Iterator[RecordBatch]:
        """Record batches of at most ``rows`` records, read one at a time.

        Raises :class:`BadInput` behind the last whole record of a damaged trace, unless it was opened with ``damaged="keep"``.
        """
        records = self._records(_checks.whole("rows", rows, 1, _MOST_ROWS))
        while (batch := records.batch()) is not None:
            yield RecordBatch(batch, self.tasks)

    def __iter__(self) -> Iterator[Record]:
        for batch in self.batches():
            yield from batch

    @property
    def page(self) -> bytes:
        """The report's page, HTML that needs nothing else; the trace is read for it each time."""
        return self._page().read()

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Reads the trace, writes the report's page, one HTML file with timeline and distributions, and gives its path."""
        return write(path, self.page)

    def _repr_html_(self) -> str:
        rows = (("file", self.path), ("made by", self.backend), ("tasks", ", ".join(self.tasks)), ("records", self._counted()))
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
        return f"<table><tbody>{cells}</tbody></table>" + framed(self.path, self._page())

    def _page(self) -> Page:
        return of_trace(self.path, f"A trace made by {self.backend}; records: {self._counted()}.")

    def _counted(self) -> str:
        if self.count is None:
            return "not known, since it was cut off"
        return f"{self.count:,}" + (f", and {self.lost:,} lost" if self.lost else "")

    def damage(self) -> str | None:
        """Reads all of it and says where it stops being readable, and why; None where it is whole."""
        records = _engine.NativeRecords(self.path, 65_536, True)
        while records.batch() is not None:
            pass
        return records.damage()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The records as a stream of batches, for libraries that know Arrow's PyCapsule interface."""
        return self._records(65_536).stream()

    def _records(self, rows: int) -> _engine.NativeRecords:
        return _engine.NativeRecords(self.path, rows, self.keeps_damaged)


def read_trace(path: str | os.PathLike[str], *, damaged: str = "refuse") -> Trace:
    """Opens one of horolog's traces.

    A trace that was cut off or is damaged is read up to that place, where :class:`BadInput` is raised; with ``damaged="keep"`` reading
    ends there quietly, and :meth:`Trace.damage` says where.

    Raises :class:`BadInput` for a file that is no trace of this version. perf.data and trace.dat are read by :func:`verify` alone.
    """
    keeps = _checks.one_of("damaged", damaged, ("refuse", "keep")) == "keep"
    file = _checks.path("path", path)
    head_json, foot_json = _engine.open_trace(file)
    head, foot = json.loads(head_json), json.loads(foot_json) if foot_json else None
    tasks = tuple(head["tasks"])
    threads = tuple(
        Thread(
            one["tid"],
            one["comm"],
            tasks[one["task"]] if one["task"] is not None and one["task"] < len(tasks) else None,
            one.get("process"),
        )
        for one in (foot["threads"] if foot else ())
    )
    lost = sum(value for value in foot["losses"].values()) if foot else None
    return Trace(
        file,
        tasks,
        head["backend"],
        head["system"],
        threads,
        foot["records"] if foot else None,
        foot["end_ns"] if foot else None,
        lost,
        keeps,
        head,
    )
