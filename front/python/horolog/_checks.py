"""Checks of arguments: each names the argument that is wrong."""

from __future__ import annotations

import math
import operator
from datetime import timedelta

from .errors import bad_argument

_MOST = 2**64 - 1


def whole(argument: str, value: object, least: int = 0, most: int = _MOST) -> int:
    """A whole number from ``least`` to ``most``; also NumPy's."""
    if isinstance(value, bool):
        raise bad_argument(argument, f"{value!r} is not a whole number")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise bad_argument(argument, f"{_short(value)} is not a whole number") from None
    if not least <= number <= most:
        raise bad_argument(argument, f"{number} is not from {least} to {most}")
    return number


def finite(argument: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, (bool, str, bytes, complex)):
        raise bad_argument(argument, f"{_short(value)} is not a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise bad_argument(argument, f"{_short(value)} is not a number") from None
    if not math.isfinite(number):
        raise bad_argument(argument, f"{number} is not a finite number")
    return number


def text(argument: str, value: object) -> str:
    """A text that is valid Unicode."""
    if not isinstance(value, str):
        raise bad_argument(argument, f"{_short(value)} is not a text")
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
        argument, f"{_short(value)} has no unit", 'write the duration with its unit, as "10 ms", or give a timedelta'
    )


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


def _short(value: object) -> str:
    try:
        shown = repr(value)
    except Exception:  # A class of the user's may do anything here.
        shown = f"an object of {type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:57] + "..."
