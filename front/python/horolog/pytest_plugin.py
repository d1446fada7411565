"""The fixture ``horolog`` of pytest: a test run fails where a deadline does not hold.

``def test_timing(horolog): horolog.assert_meets(horolog.load("robot.toml").analyze())``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from . import _checks
from .errors import bad_argument
from .results import Result
from .systems import System, load



class Assertions:
    """What the fixture gives."""

    def __init__(self, undecided: str, note: Callable[[str, object], None]) -> None:
        self._undecided = undecided
        self._note = note

    @staticmethod
    def load(path: str, overrides: Iterable[str] = ()) -> System:
        """:func:`horolog.load`."""
        return load(path, overrides)

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for what an undecided answer is."""
    parser.getgroup("horolog").addoption(
        "--horolog-undecided",
        choices=("fail", "skip"),
        default="fail",
        help="what an undecided answer of horolog does to a test (default: fail)",
    )


@pytest.fixture
def horolog(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Any:
    """``assert_meets`` and ``load``; each verdict stands in the properties of JUnit."""
    return Assertions(request.config.getoption("--horolog-undecided"), record_property)
