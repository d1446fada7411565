"""Checks of arguments: each names the argument that is wrong."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from datetime import timedelta

from . import _engine
from .errors import bad_argument

_MOST = 2**64 - 1
_QUESTIONS = ("proof", "model", "deadlines")


def whole(argument: str, value: object, least: int = 0, most: int = _MOST) -> int:
    """A whole number from ``least`` to ``most``; also NumPy's."""
    if isinstance(value, bool):
        raise bad_argument(argument, f"{value!r} is not a whole number")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise bad_argument(argument, f"{short(value)} is not a whole number") from None
    if not least <= number <= most:
        # Python itself writes no number of more than 4,300 digits.
        shown = str(number) if number.bit_length() < 4_096 else f"a number of {number.bit_length()} bits"
        raise bad_argument(argument, f"{shown} is not from {least} to {most}")
    return number


def finite(argument: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, (bool, str, bytes, complex)):
        raise bad_argument(argument, f"{short(value)} is not a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise bad_argument(argument, f"{short(value)} is not a number") from None
    if not math.isfinite(number):
        raise bad_argument(argument, f"{number} is not a finite number")
    return number


def text(argument: str, value: object) -> str:
    """A text that is valid Unicode."""
    if not isinstance(value, str):
        raise bad_argument(argument, f"{short(value)} is not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_argument(argument, "the text has a surrogate, which is not valid Unicode") from None
    return value


def duration(argument: str, value: object) -> str:
    """A duration as the system file writes it; a timedelta becomes microseconds."""
    if isinstance(value, timedelta):
        microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        if microseconds < 0:
            raise bad_argument(argument, f"{value} is below zero")
        return f"{microseconds} us"
    if isinstance(value, str):
        return text(argument, value)
    raise bad_argument(
        argument, f"{short(value)} has no unit", 'write the duration with its unit, as "10 ms", or give a timedelta'
    )


def truth(argument: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise bad_argument(argument, f"{short(value)} is not True or False")
    return value


def path(argument: str, value: object) -> str:
    """A path as a text."""
    try:
        found = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        raise bad_argument(argument, f"{type(value).__name__} is not a path") from None
    if not isinstance(found, str):
        raise bad_argument(argument, "give the path as a text, not as bytes")
    if not found:
        raise bad_argument(argument, "the path is empty")
    if "\0" in found:
        raise bad_argument(argument, "a path has no NUL")
    return text(argument, found)


def machine(value: object) -> str | None:
    """A profile, ``"none"`` or ``"measure"``."""
    return None if value is None else path("machine", value)


def questions(argument: str, value: object) -> str | None:
    """Questions with commas between them, as ``--gate`` has them; None where none are given."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise bad_argument(argument, "give a set of questions", 'as {"proof"}')
    try:
        asked = list(value)
    except TypeError:
        raise bad_argument(argument, "give a set of questions", 'as {"proof"}') from None
    unknown = [short(one) for one in asked if not isinstance(one, str) or one not in _QUESTIONS]
    if unknown or not asked:
        raise bad_argument(argument, f"give some of {', '.join(_QUESTIONS)}, not {', '.join(unknown) or 'none'}")
    return ",".join(one for one in _QUESTIONS if one in asked)


def permille(argument: str, value: object) -> int:
    """A percentage with at most one decimal, in thousandths."""
    percent = finite(argument, value)
    found = round(percent * 10) if 0 <= percent <= 100 else -1
    if abs(percent * 10 - found) > 1e-6:
        raise bad_argument(argument, f"{percent} is not a percentage from 0 to 100 with at most one decimal")
    return found


def one_of(argument: str, value: object, known: tuple[str, ...]) -> str:
    """One of these words."""
    if not isinstance(value, str) or value not in known:
        raise bad_argument(argument, f"{short(value)} is not one of {', '.join(known)}")
    return value


def span(argument: str, value: object) -> str:
    """A duration that the engine can read, too."""
    found = duration(argument, value)
    _engine.check_duration(argument, found)
    return found


def plain(argument: str, value: object, depth: int = 0) -> object:
    """A value of a system as JSON can hold it, without those that are None."""
    if depth > 16:
        raise bad_argument(argument, "it is nested too deeply")
    if isinstance(value, (bool, str)):
        return text(argument, value) if isinstance(value, str) else value
    if isinstance(value, timedelta):
        return duration(argument, value)
    if isinstance(value, float):
        return finite(argument, value)
    if isinstance(value, dict):
        return {
            text(f"{argument} key", key): plain(f"{argument}.{key}", one, depth + 1)
            for key, one in value.items()
            if one is not None
        }
    if isinstance(value, (list, tuple)):
        return [plain(f"{argument}[{place}]", one, depth + 1) for place, one in enumerate(value)]
    return whole(argument, value, -(2**63), 2**63 - 1)


def short(value: object) -> str:
    """How a value is shown in a message."""
    try:
        shown = repr(value)
    except Exception:  # A class of the user's may do anything here.
        shown = f"an object of {type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:57] + "..."
