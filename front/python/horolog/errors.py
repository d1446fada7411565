"""What goes wrong, as exceptions: one class for each exit status of the command.

Every exception holds what the command's JSON says of an error: its kind, message, place and help.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """One error: what is wrong, where, and what to do."""

    kind: str
    """``bad-input``, ``no``, ``not-allowed``, ``undecided`` or ``internal``."""
    message: str
    """What is wrong."""
    file: str | None = None
    """The file; None where the error has no place."""
    line: int | None = None
    """The line, from 1."""
    column: int | None = None
    """The column, from 1, in characters."""
    path: str | None = None
    """The value, as ``task.control.wcet``."""
    help: str | None = None
    """What to do."""


class HorologError(Exception):
    """What the command would say and end with.

    ``str()`` of it is the text for people, with carets where a file is at fault. The attributes ``kind``, ``message``, ``file``,
    ``line``, ``column``, ``path`` and ``help`` are those of the first error; ``errors`` has all of them and ``exit`` the command's
    exit status.
    """

    def __init__(self, errors: tuple[Told, ...], exit: int, text: str) -> None:
        super().__init__(errors, exit, text)
        self.errors = errors
        self.exit = exit
        self.text = text

    def __str__(self) -> str:
        return self.text

    @property
    def first(self) -> Told:
        """The first error."""
        return self.errors[0] if self.errors else Told("internal", self.text)

    @property
    def kind(self) -> str:
        """Of what kind the first error is."""
        return self.first.kind

    @property
    def message(self) -> str:
        """What is wrong."""
        return self.first.message

    @property
    def file(self) -> str | None:
        """The file of the first error."""
        return self.first.file

    @property
    def line(self) -> int | None:
        """Its line, from 1."""
        return self.first.line

    @property
    def column(self) -> int | None:
        """Its column, from 1, in characters."""
        return self.first.column

    @property
    def path(self) -> str | None:
        """The value at fault, as ``task.control.wcet``."""
        return self.first.path

    @property
    def help(self) -> str | None:
        """What to do."""
        return self.first.help


class BadInput(HorologError, ValueError):
    """A file or an argument is wrong (exit status 2)."""


class SaysNo(HorologError):
    """The answer is no where a result was asked for (exit status 1)."""


class NotAllowed(HorologError):
    """The machine does not allow it (exit status 3)."""


class Undecided(HorologError):
    """Nothing was decided (exit status 4)."""


class InternalError(HorologError, RuntimeError):
    """A fault of horolog itself."""


_CLASSES: dict[str, type[HorologError]] = {
    "usage": BadInput,
    "bad-input": BadInput,
    "no": SaysNo,
    "not-allowed": NotAllowed,
    "undecided": Undecided,
    "internal": InternalError,
}


def from_told(errors_json: str, exit: int, text: str) -> HorologError:
    """The exception for errors as the engine tells them."""
    errors = []
    for one in json.loads(errors_json):
        place = one.get("place") or {}
        errors.append(
            Told(
                one["kind"],
                one["message"],
                place.get("file"),
                place.get("line"),
                place.get("column"),
                place.get("path"),
                one.get("help"),
            )
        )
    kind = errors[0].kind if errors else "internal"
    return _CLASSES.get(kind, HorologError)(tuple(errors), exit, text)


def bad_argument(argument: str, message: str, help: str | None = None) -> BadInput:
    """The exception for an argument from Python; its name stands first."""
    text = f"{argument}: {message}" + (f"\n  = help: {help}" if help else "")
    return BadInput((Told("bad-input", f"{argument}: {message}", path=argument, help=help),), 2, text)
