"""Systems: loaded from a file, read from text, or built from Python objects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import _checks, _engine
from .errors import bad_argument
from .pages import of_simulation
from .results import Analysis, Outcome, analysis_of, outcome_of

Duration = str | timedelta
"""A duration with its unit, as ``"1.5 ms"``, or a timedelta."""


class System:
    """A checked system, from which everything else starts.

    Make one with :func:`load`, :meth:`parse` or from the keys of the system file::

        System(
            system={"name": "robot"},
            platform={"cpus": [1]},
            task=[{"name": "control", "period": "10 ms", "wcet": "2 ms", "priority": 90}],
        )

    The keys are those of the system file (docs/system-file.md). Durations are texts with a unit or timedeltas, so that no number
    is taken for another unit; a key whose value is None counts as left out.
    """

    __slots__ = ("_file", "_native", "_overrides", "_path", "_text")

    def __init__(self, **keys: Any) -> None:
        plain = _checks.plain("system", keys)
        text = _engine.toml_of_json(json.dumps(plain, ensure_ascii=False))
        self._set(_engine.parse(text, "<python>", []), text, "<python>", ())

    def _set(self, native: _engine.NativeSystem, text: str, file: str, overrides: tuple[str, ...]) -> None:
        self._native = native
        self._text = text
        self._file = file
        self._overrides = overrides
        self._path: str | None = None

    def _source(self) -> tuple[str, str]:
        """The file for a command and its standard input: where the file is the system's, the libraries beside it count."""
        if self._path is None:
            return "-", self._text
        try:
            same = Path(self._path).read_text(encoding="utf-8") == self._text
        except (OSError, ValueError) as error:
            raise bad_argument("system", f"its file {self._path} cannot be read any more: {error}") from None
        if not same:
            raise bad_argument("system", f"its file {self._path} has changed since it was loaded", "load it again")
        return self._path, ""

    @classmethod
    def parse(cls, text: str, name: str = "<python>", overrides: Iterable[str] = ()) -> System:
        """Reads the text of a system file; ``name`` is what messages call it.

        ``overrides`` are those of ``--set``, as ``task.camera.wcet="14 ms"``.

        Raises :class:`BadInput` with the place and the remedy of everything that is wrong.
        """
        given = _overrides(overrides)
        system = cls.__new__(cls)
        text, name = _checks.text("text", text), _checks.text("name", name)
        system._set(_engine.parse(text, name, list(given)), text, name, given)
        return system

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def tasks(self) -> list[str]:
        """The names of its tasks, in the order of the file."""
        return self._native.tasks

    @property
    def digest(self) -> str:
        """A digest of everything in it: 16 hexadecimal digits."""
        return self._native.digest

    @property
    def text(self) -> str:
        """The text that it was read from."""
        return self._text

    @property
    def cpus(self) -> tuple[int, ...]:
        """The processors that its tasks run on."""
        return tuple(self._native.cpus)

    def normalised(self) -> str:
        """The normalised system file, every value with its default."""
        return self._native.normalised()

    def analyze(self, machine: str | os.PathLike[str] | None = None) -> Analysis:
        """Proves what can be proved, as ``horolog analyze`` does.

        ``machine`` is the command's: a profile, ``"none"`` or ``"measure"``; without it the user's profile counts.
        Other Python threads go on meanwhile. Ctrl-C ends the wait; what the engine is doing then is dropped when it is done.

        Raises :class:`BadInput` where the system lies outside the assumptions of every test. A deadline that is missed or not
        proved is a result.
        """
        return analysis_of(_engine.analyze(self._native, _checks.machine(machine)))

    def simulate(
        self,
        horizon: Duration | None = None,
        *,
        jobs: int | None = None,
        execution: str = "modelled",
        jitter: str = "uniform",
        latency: str = "uniform",
        sporadic_extra: Duration = "0 ns",
        path: str = "longest",
        seed: int = 1,
        machine: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> Outcome:
        """Simulates, as ``horolog simulate`` does; the same seed gives the same outcome.

        ``horizon`` is for how long jobs are released, or ``jobs`` how many of every task. ``execution`` is ``modelled``, ``wcet``,
        ``bcet`` or ``uniform``; ``jitter`` and ``latency`` are ``uniform``, ``none`` or ``max``; ``path`` is ``longest`` or
        ``random``. ``trace`` is a file for the trace. ``outcome.report("x.html")`` and a notebook simulate once more, for the timeline.
        """
        words = SimpleNamespace(
            horizon=None if horizon is None else _checks.duration("horizon", horizon),
            jobs=None if jobs is None else _checks.whole("jobs", jobs, 1),
            execution=_checks.text("execution", execution),
            jitter=_checks.text("jitter", jitter),
            latency=_checks.text("latency", latency),
            sporadic_extra=_checks.duration("sporadic_extra", sporadic_extra),
            path=_checks.text("path", path),
            seed=_checks.whole("seed", seed),
            machine=_checks.machine(machine),
            trace=None if trace is None else _checks.path("trace", trace),
            file=self._path,
        )
        data = json.loads(_engine.simulate(self._native, words))
        return outcome_of(data, of_simulation(self, words, data))

    def __reduce__(self) -> tuple[Any, tuple[str, str, tuple[str, ...], str | None]]:
        return (_restored, (self._text, self._file, self._overrides, self._path))

    def __eq__(self, other: object) -> bool:
        return self.normalised() == other.normalised() if isinstance(other, System) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<horolog.System {self.name!r}: {len(self.tasks)} tasks>"


def load(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> System:
    """Loads a system file; ``overrides`` are those of ``--set``.

    Raises :class:`BadInput` with the place and the remedy of everything that is wrong.
    """
    given, file = _overrides(overrides), _checks.path("path", path)
    native, text = _engine.load(file, list(given))
    system = System.__new__(System)
    system._set(native, text, file, given)
    system._path = os.path.abspath(file)
    return system


def _restored(text: str, file: str, overrides: tuple[str, ...], path: str | None) -> System:
    """A system that was pickled."""
    system = System.parse(text, file, overrides)
    system._path = path
    return system


def _overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    if isinstance(overrides, (str, bytes, Mapping)):
        raise bad_argument("overrides", "give a list of texts", """as ['task.camera.wcet="14 ms"']""")
    try:
        return tuple(_checks.text(f"overrides[{at}]", one) for at, one in enumerate(overrides))
    except TypeError:
        raise bad_argument("overrides", "give a list of texts") from None
