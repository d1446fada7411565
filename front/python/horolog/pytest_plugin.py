"""The fixture ``horolog`` of pytest: it runs systems and records programs, and a test fails where a deadline does not hold.

``def test_timing(horolog): horolog.assert_meets(horolog.loop("robot.toml", "5 s"))``
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from . import _checks, recordings, runs
from ._processors import alone_on
from .checked import LoopResult, RunOutcome, Verification
from .errors import bad_argument
from .recordings import Recording
from .results import Result
from .systems import Duration, System, load


class Horolog:
    """What the fixture gives.

    Whatever runs on this machine takes a lock on its processors first, so that tests beside each other (``pytest -n 4``) take turns;
    ``--horolog-patience`` says for how long one waits.
    """

    def __init__(self, config: pytest.Config, properties: list[tuple[str, object]], test: str, folder: Path) -> None:
        self._undecided: str = config.getoption("--horolog-undecided")
        self._patience_s: float = config.getoption("--horolog-patience")
        if not 0 <= self._patience_s < float("inf"):
            raise pytest.UsageError("--horolog-patience: give seconds from 0 on")
        reports: str | None = config.getoption("--horolog-reports")
        self._folder = folder if reports is None else Path(reports)
        self._properties = properties
        self._test = _file_name(test.partition("::")[2] if reports is None else test)
        self._files = 0

    @staticmethod
    def load(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> System:
        """:func:`horolog.load`."""
        return load(path, overrides)

    def run(self, system: System | str | os.PathLike[str], duration: Duration = "10 s", **options: Any) -> RunOutcome:
        """:func:`horolog.run`, alone on the processors of the system."""
        known = _system(system)
        with self.alone_on(known.cpus):
            return runs.run(known, duration, **options)

    def loop(self, system: System | str | os.PathLike[str], duration: Duration = "10 s", **options: Any) -> LoopResult:
        """:func:`horolog.loop`, alone on the processors of the system; its report is kept."""
        known = _system(system)
        with self.alone_on(known.cpus):
            found = runs.loop(known, duration, **options)
        if found.page:
            self._note("horolog_report", str(found.report(self._file("html"))))
        return found

    def record(
        self, command: Sequence[str | os.PathLike[str]], *, cpus: Iterable[int] | None = None, **options: Any
    ) -> Recording:
        """:func:`horolog.record`, alone on ``cpus`` (without it all that this process may use); its trace is kept."""
        with self.alone_on(cpus):
            found = recordings.record(command, self._trace(options), **options)
        return found

    @contextmanager
    def attach(self, pid: int, *, cpus: Iterable[int] | None = None, **options: Any) -> Iterator[list[Recording]]:
        """:func:`horolog.attach`, alone on ``cpus`` (without it all that this process may use); its trace is kept."""
        with self.alone_on(cpus), recordings.attach(pid, self._trace(options), **options) as found:
            yield found

    @staticmethod
    def verify(system: System | str | os.PathLike[str], trace: str | os.PathLike[str], **options: Any) -> Verification:
        """:func:`horolog.verify`."""
        return runs.verify(system, trace, **options)

    def alone_on(self, cpus: Iterable[int] | None = None) -> AbstractContextManager[None]:
        """Holds the locks of these processors while the block runs; without ``cpus`` of all that this process may use."""
        if cpus is None:
            return alone_on(os.sched_getaffinity(0), self._patience_s)
        if isinstance(cpus, (str, bytes)) or not isinstance(cpus, Iterable):
            raise bad_argument("cpus", "give numbers of processors", "as {1}")
        return alone_on([_checks.whole("cpus", cpu, 0, 2**16) for cpu in cpus], self._patience_s)

    def _note(self, name: str, value: object) -> None:
        """Notes a property of the test, which JUnit's file and the reports of pytest-xdist have."""
        self._properties.append((name, value))

    def _file(self, end: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        number = "" if self._files == 1 else f"-{self._files}"
        return self._folder.absolute() / f"{self._test}{number}.{end}"

    def _trace(self, options: dict[str, Any]) -> Path:
        out = options.pop("out", None)
        file = self._file("trace") if out is None else Path(_checks.path("out", out))
        self._note("horolog_trace", str(file))
        return file

    def assert_meets(
        self,
        result: Result | Callable[[], Result],
        gate: Iterable[str] | None = None,
        retries: int = 3,
    ) -> Result:
        """Fails the test unless every question of ``gate`` is answered with yes; gives the result that did.

        ``gate`` are some of ``proof``, ``model`` and ``deadlines``; without it all that the result answers. A question that the result
        does not answer is undecided. Undecided fails the test, too, or skips it under ``--horolog-undecided=skip``.

        A no ends it at once. Where ``result`` is a function, an undecided answer is asked for again, at most ``retries`` times: a
        result that is there already would not change.
        """
        chosen = _checks.questions("gate", gate)
        asked = None if chosen is None else set(chosen.split(","))
        again = _checks.whole("retries", retries, 0, 1_000)
        for attempt in range(again + 1):
            found = result() if callable(result) else result
            if not isinstance(found, Result):
                raise bad_argument("result", f"{type(found).__name__} is not a result of horolog")
            answer, why = _answer(found, asked)
            self._note("horolog_verdict", f"{found.system}: {answer}")
            if answer == "yes":
                return found
            if answer == "no":
                pytest.fail(f"{found.system}: no: {why}", pytrace=False)
            if not callable(result) or attempt == again:
                break
        if self._undecided == "skip":
            pytest.skip(f"{found.system}: undecided: {why}")
        pytest.fail(f"{found.system}: undecided: {why}", pytrace=False)


def _answer(result: Result, asked: set[str] | None) -> tuple[str, str]:
    """The worst answer, and why."""
    if asked is None:
        answer = {0: "yes", 1: "no"}.get(result.closing.exit, "undecided")
        return answer, result.closing.text
    answers = {question: getattr(result.closing, question) for question in sorted(asked)}
    for worst in ("no", "undecided", None):
        at_fault = [question for question, answer in answers.items() if answer == worst]
        if at_fault:
            # A question that was not asked has no answer, and silence is not a yes.
            why = result.closing.text if worst else "the result does not answer it"
            return worst or "undecided", f"{', '.join(at_fault)}: {why}"
    return "yes", ""


def _system(system: object) -> System:
    return system if isinstance(system, System) else load(_checks.path("system", system))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the fixture."""
    group = parser.getgroup("horolog")
    group.addoption(
        "--horolog-undecided",
        choices=("fail", "skip"),
        default="fail",
        help="what an undecided answer of horolog does to a test (default: fail)",
    )
    group.addoption(
        "--horolog-reports",
        metavar="DIR",
        help="where reports and traces of horolog are kept (default: the test's temporary folder)",
    )
    group.addoption(
        "--horolog-patience",
        metavar="SECONDS",
        type=float,
        default=600.0,
        help="for how long a test waits for processors that other runs use (default: 600)",
    )


def _file_name(test: str) -> str:
    """The name of the files of a test, by its place and name in the run; each test has its own."""
    plain = re.sub(r"\.py(?=::)", "", test)
    name = re.sub(r"[^\w.-]+", "-", re.sub(r"::|/", ".", plain)).strip("-")
    # What the name does not keep, two tests may differ by.
    is_kept = re.fullmatch(r"[\w/-]+(::\w+)*(\[[\w-]*\])?", plain)
    return name if is_kept else f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"


@pytest.fixture
def horolog(request: pytest.FixtureRequest, tmp_path: Path) -> Horolog:
    """``load``, ``run``, ``loop``, ``record``, ``attach``, ``verify`` and ``assert_meets``; verdicts and the places of reports and
    traces are properties of JUnit."""
    return Horolog(request.config, request.node.user_properties, request.node.nodeid, tmp_path)
