"""Studies: drawing many task sets, testing them by named tests, and the acceptance plot.

A task set here is plain: sporadic, preemptive, independent tasks on one processor, without jitter or costs, so that C, D and T say all
of it. Times are 64-bit whole numbers of nanoseconds. The work is done in Rust on every core, without the interpreter's lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from . import _checks, _engine
from .errors import bad_argument

TESTS: tuple[str, ...] = tuple(_engine.TESTS)
"""Tests of :func:`batch`: ``fp-preemptive`` (exact, deadline-monotonic priorities; Joseph and Pandya 1986), ``edf-qpa`` (exact; Zhang
and Burns 2009), ``rm-liu-layland`` (sufficient; Liu and Layland 1973), ``rm-hyperbolic`` (sufficient; Bini, Buttazzo and Buttazzo
2003)."""

METHODS: tuple[str, ...] = tuple(_engine.METHODS)
"""Ways to share a utilisation: ``uunifast`` (Bini and Buttazzo 2005), ``uunifast-discard`` (Davis and Burns 2009), ``randfixedsum``
(Emberson, Stafford and Davis 2010), ``convolutionalfixedsum`` (Griffin and Davis 2025), ``dirichlet-rescale`` (Griffin, Bate and Davis
2020; its authors' later work says that it is not uniform: take it to make published experiments again). The last two take bounds."""

Bound = float | Sequence[float] | Sequence[Sequence[float]] | None
"""Bounds of utilisations: one for all tasks, one a task, or one a task of each set."""

_MOST_COUNT = 2**40


@dataclass(frozen=True)
class TaskSets:
    """Sets of equally many tasks: three arrays with one row a set.

    ``wcet``, ``deadline`` and ``period`` are two-dimensional memory views of 64-bit unsigned integers in ns; ``numpy.asarray`` and
    anything else that knows the buffer protocol takes them without a copy.
    """

    wcet: memoryview
    """Worst-case execution times C in ns."""
    deadline: memoryview
    """Relative deadlines D in ns."""
    period: memoryview
    """Periods T in ns."""

    def __len__(self) -> int:
        return self.wcet.shape[0] if self.wcet.shape else 0

    def __reduce__(self) -> tuple[Any, tuple[bytes, bytes, bytes, int, int]]:
        count, tasks = self.wcet.shape or (0, 0)
        return (_sets_of, (bytes(self.wcet), bytes(self.deadline), bytes(self.period), count, tasks))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """One row a task, for what knows Arrow's PyCapsule interface (``pyarrow.table(sets)``, ``polars.DataFrame(sets)``): columns set,
        task, wcet_ns, deadline_ns and period_ns, 64-bit unsigned integers; the times without a copy where the views are of ``bytes``,
        as those of :func:`generate` are."""
        tasks = self.wcet.shape[1] if self.wcet.shape else 0
        return _engine.sets_stream(_whole(self.wcet), _whole(self.deadline), _whole(self.period), tasks)


@dataclass(frozen=True)
class Verdicts:
    """What the tests say: one row a set, one column a test."""

    tests: tuple[str, ...]
    """The tests."""
    values: memoryview
    """Two-dimensional signed bytes: 1 meets, 0 misses, -1 unknown (a sufficient test did not hold, or a search was too long)."""

    def __len__(self) -> int:
        return self.values.shape[0] if self.values.shape else 0

    def __reduce__(self) -> tuple[Any, tuple[tuple[str, ...], bytes, int]]:
        return (_verdicts_of, (self.tests, bytes(self.values), len(self)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """One row a set, for what knows Arrow's PyCapsule interface: the column set, and for each test whether it is met (true, false;
        null: unknown)."""
        return _engine.verdicts_stream(list(self.tests), _whole(self.values))

    def ratio(self, test: str) -> float:
        """The share of sets that the test proves to meet every deadline, from 0 to 1."""
        _checks.one_of("test", test, self.tests)
        column = bytes(self.values)[self.tests.index(test) :: len(self.tests)]
        return column.count(1) / len(self)


def generate(
    count: int,
    *,
    tasks: int = 10,
    utilisation: float = 0.8,
    method: str = "uunifast-discard",
    periods: str = "log-uniform",
    shortest_period_ns: int = 10_000_000,
    longest_period_ns: int = 1_000_000_000,
    granularity_ns: int = 1,
    deadlines: str = "implicit",
    least: float = 0.0,
    factor: float = 2.0,
    seed: int = 1,
    first: int = 0,
    threads: int = 0,
    lower: Bound = None,
    upper: Bound = None,
) -> TaskSets:
    """Draws ``count`` sets; set number i of a seed is the same for ever, on every machine and number of threads.

    Utilisations have the sum ``utilisation`` and are shared by ``method`` (:data:`METHODS`). ``periods``: ``log-uniform`` (Emberson,
    Stafford and Davis 2010), ``harmonic`` (shortest times a power of two) or ``automotive`` (the shares of Kramer, Ziegenbein and
    Hamann 2015, without the crankshaft). C = max(1 ns, floor(u T)). ``deadlines``: ``implicit`` (D = T), ``constrained`` (uniform
    from C + ``least`` (T - C) to T) or ``arbitrary`` (uniform from C to ``factor`` T).

    ``lower`` and ``upper`` are bounds of the utilisation of each task, for the methods ``convolutionalfixedsum`` and
    ``dirichlet-rescale``; without them 0 and 1. One number is for all tasks, a list has one a task and holds for the whole batch, and a list of
    ``count`` such lists has those of each set. Then every vector's tables are made anew, which takes about a thousand times as long.

    ``first`` is the number of the first set: a study can be drawn in parts. ``threads``: 0 takes every core.
    """
    sets, each = _checks.whole("count", count, 1, _MOST_COUNT), _checks.whole("tasks", tasks, 1, 1_000)
    recipe = SimpleNamespace(
        count=sets,
        tasks=each,
        utilisation=_checks.finite("utilisation", utilisation),
        method=_checks.text("method", method),
        periods=_checks.text("periods", periods),
        shortest_period_ns=_checks.whole("shortest_period_ns", shortest_period_ns, 1),
        longest_period_ns=_checks.whole("longest_period_ns", longest_period_ns, 1),
        granularity_ns=_checks.whole("granularity_ns", granularity_ns, 1),
        deadlines=_checks.text("deadlines", deadlines),
        least=_checks.finite("least", least),
        factor=_checks.finite("factor", factor),
        seed=_checks.whole("seed", seed),
        first=_checks.whole("first", first, 0, 2**64 - sets),
        threads=_threads(threads),
        bounds=_bounds(sets, each, lower, upper),
    )
    return _sets_of(*_engine.generate(recipe), sets, each)


def utilisations(
    count: int,
    *,
    tasks: int,
    utilisation: float,
    method: str = "uunifast-discard",
    seed: int = 1,
    lower: Bound = None,
    upper: Bound = None,
) -> memoryview:
    """``count`` vectors of ``tasks`` utilisations with the sum ``utilisation``: a two-dimensional memory view of doubles.

    ``lower`` and ``upper`` are as for :func:`generate`.
    """
    sets, each = _checks.whole("count", count, 1, _MOST_COUNT), _checks.whole("tasks", tasks, 1, 1_000)
    drawn = _engine.utilisations(
        sets,
        each,
        _checks.finite("utilisation", utilisation),
        _checks.text("method", method),
        _checks.whole("seed", seed),
        _bounds(sets, each, lower, upper),
    )
    return _view(drawn, "d", sets, each)


def batch(
    sets: TaskSets | Sequence[Any], tests: Iterable[str] = ("fp-preemptive", "edf-qpa"), *, threads: int = 0
) -> Verdicts:
    """Tests every set by every named test (:data:`TESTS`), in parallel.

    ``sets`` are :class:`TaskSets` or three arrays (C, D, T) of one shape: two-dimensional, contiguous, 64-bit whole numbers in ns,
    such as NumPy's ``int64`` and ``uint64``; or lists of lists of whole numbers.

    Raises :class:`BadInput`, which names the array, the set and the task, for a wrong shape or type and for a time that is not from 1
    to 2^60 - 1 ns.
    """
    if isinstance(tests, (str, bytes)):
        raise bad_argument("tests", "give a list of names", 'as ["edf-qpa"]')
    names = _names(tests)
    if isinstance(sets, TaskSets):
        parts: tuple[Any, ...] = (sets.wcet, sets.deadline, sets.period)
    else:
        try:
            parts = tuple(sets)
        except TypeError:
            raise bad_argument("sets", "give TaskSets or three arrays (wcet, deadline, period)") from None
    if len(parts) != 3:
        raise bad_argument("sets", f"there are {len(parts)} arrays; give three (wcet, deadline, period)")
    wcet, deadline, period = (
        _array(name, part) for name, part in zip(("wcet", "deadline", "period"), parts, strict=True)
    )
    found = _engine.batch(wcet, deadline, period, list(names), _threads(threads))
    return _verdicts_of(names, found, len(found) // len(names))


@dataclass(frozen=True)
class Acceptance:
    """Shares of accepted sets over the utilisation, with what they were drawn from."""

    utilisations: tuple[float, ...]
    """The points."""
    ratios: dict[str, tuple[float, ...]]
    """For each test the share of accepted sets at each point."""
    count: int
    """Sets at each point."""
    recipe: dict[str, Any]
    """The arguments of :func:`generate`, the seed among them."""
    version: str
    """The version of horolog that drew and tested them."""

    def plot(self, axes: Any = None) -> Any:
        """Draws the acceptance plot with matplotlib (``horolog[plot]``) and gives its axes."""
        if axes is None:
            try:
                import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]
            except ImportError as error:
                message = "matplotlib is not installed: `pip install horolog[plot]`, or draw `utilisations` and `ratios` yourself"
                raise ImportError(message) from error

            _, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
        for marker, (test, ratios) in zip("os^vDx+*", self.ratios.items(), strict=False):
            axes.plot(self.utilisations, ratios, marker=marker, markersize=4, linewidth=1.2, label=test)
        axes.set_xlabel("utilisation")
        axes.set_ylabel("share of accepted sets")
        axes.set_ylim(-0.02, 1.02)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        return axes


def acceptance(
    utilisations: Iterable[float], tests: Iterable[str] = TESTS, *, count: int = 1_000, seed: int = 1, **recipe: Any
) -> Acceptance:
    """Draws ``count`` sets at each utilisation and tests them; further arguments are those of :func:`generate`.

    The sets at point k are numbers ``k * count`` to ``(k + 1) * count - 1`` of the seed.
    """
    names = (tests,) if isinstance(tests, str) else _names(tests)
    try:
        points = tuple(_checks.finite(f"utilisations[{at}]", one) for at, one in enumerate(utilisations))
    except TypeError:
        raise bad_argument("utilisations", "give a list of numbers") from None
    each = _checks.whole("count", count, 1, _MOST_COUNT)
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for place, point in enumerate(points):
        sets = generate(each, utilisation=point, seed=seed, first=place * each, **recipe)
        verdicts = batch(sets, names)
        for name in names:
            ratios[name].append(verdicts.ratio(name))
    whole = {"seed": seed, **recipe}
    return Acceptance(points, {name: tuple(one) for name, one in ratios.items()}, each, whole, _engine.__version__)


def _bounds(count: int, tasks: int, lower: Bound, upper: Bound) -> tuple[list[float], list[float]] | None:
    if lower is None and upper is None:
        return None
    least, most = _bound("lower", count, tasks, lower, 0.0), _bound("upper", count, tasks, upper, 1.0)
    # Where one of them has rows, the other holds for each.
    longest = max(len(least), len(most))
    return least * (longest // len(least)), most * (longest // len(most))


def _bound(argument: str, count: int, tasks: int, given: object, default: float) -> list[float]:
    if given is None:
        return [default] * tasks
    if not _is_list(given):
        return [_checks.finite(argument, given)] * tasks
    parts = list(given)  # type: ignore[call-overload]
    if not parts or not _is_list(parts[0]):
        return _bound_of_tasks(argument, tasks, parts)
    if len(parts) != count:
        raise bad_argument(argument, f"there are bounds of {len(parts)} sets, and {count} are drawn")
    rows: list[float] = []
    for at, row in enumerate(parts):
        if not _is_list(row):
            raise bad_argument(f"{argument}[{at}]", "give a list of bounds, as for the other sets")
        rows.extend(_bound_of_tasks(f"{argument}[{at}]", tasks, list(row)))
    return rows


def _bound_of_tasks(argument: str, tasks: int, given: list[object]) -> list[float]:
    each = [_checks.finite(f"{argument}[{at}]", one) for at, one in enumerate(given)]
    if len(each) != tasks:
        raise bad_argument(argument, f"there are {len(each)} bounds of {tasks} tasks")
    return each


def _is_list(given: object) -> bool:
    # An array of NumPy without dimensions has the method, and is no list.
    if isinstance(given, (str, bytes)):
        return False
    try:
        iter(given)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def _names(tests: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(_checks.text(f"tests[{at}]", one) for at, one in enumerate(tests))
    except TypeError:
        raise bad_argument("tests", "give a list of names") from None


def _threads(threads: object) -> int:
    return _checks.whole("threads", threads, 0, 1_024)


def _view(data: bytes, code: str, count: int, width: int) -> memoryview:
    return memoryview(data).cast(code, (count, width))  # type: ignore[call-overload,no-any-return]


def _whole(view: memoryview) -> bytes:
    """The bytes of a view: its object where it shows all of one."""
    return view.obj if isinstance(view.obj, bytes) and len(view.obj) == view.nbytes else bytes(view)


def _sets_of(wcet: bytes, deadline: bytes, period: bytes, count: int, tasks: int) -> TaskSets:
    return TaskSets(*(_view(part, "Q", count, tasks) for part in (wcet, deadline, period)))


def _verdicts_of(tests: tuple[str, ...], values: bytes, count: int) -> Verdicts:
    return Verdicts(tests, _view(values, "b", count, len(tests)))


def _array(argument: str, part: Any) -> Any:
    """An array as it is, or rows of whole numbers as one."""
    if not isinstance(part, (list, tuple)):
        return part
    rows = []
    for at, row in enumerate(part):
        if not isinstance(row, (list, tuple)):
            raise bad_argument(argument, f"set {at} is not a list of whole numbers")
        rows.append([_checks.whole(f"{argument}[{at}][{task}]", one, 1, 2**60 - 1) for task, one in enumerate(row)])
    if len({len(row) for row in rows}) > 1:
        raise bad_argument(argument, "the sets have different numbers of tasks")
    values = array("Q", (value for row in rows for value in row))
    if not values:
        raise bad_argument(argument, "there is no task")
    return memoryview(values).cast("B").cast("Q", (len(rows), len(rows[0])))
