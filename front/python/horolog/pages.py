"""Pages of results: the report's viewer with timeline and distributions, one HTML file that needs nothing else.

What ``loop`` gives has its page. Pages of simulations, of verified traces and of traces are made when they are first asked for: a
simulation is computed again, and a trace is read again. A timeline keeps the first 200,000 records, and says so where there are more;
tables and distributions count all of them.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import _checks, _engine
from .errors import HorologError, Told, Undecided, bad_argument

if TYPE_CHECKING:
    from .systems import System


class Page:
    """A page that is made when it is first asked for."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: bytes | None = None

    def read(self) -> bytes:
        """The page; made once."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> bytes:
        raise NotImplementedError


class ReadyPage(Page):
    """A page that is there already; empty where there is none."""

    __slots__ = ()

    def __init__(self, page: bytes) -> None:
        self._made = page


class SimulationPage(Page):
    """The page of a simulation, which is computed again."""

    __slots__ = ("_data", "_system", "_words")

    def __init__(self, system: System, words: SimpleNamespace, data: dict[str, Any]) -> None:
        super().__init__()
        self._system, self._words, self._data = system, words, data

    def _make(self) -> bytes:
        text, page = _engine.simulation_page(self._system._native, self._words)
        _same(json.loads(text), self._data, "the simulation", "the profile of the machine")
        return page.encode()


class VerificationPage(Page):
    """The page of a verified trace, which is read and verified again."""

    __slots__ = ("_data", "_system", "_words")

    def __init__(self, system: System, words: SimpleNamespace, data: dict[str, Any]) -> None:
        super().__init__()
        self._system, self._words, self._data = system, words, data

    def _make(self) -> bytes:
        text, page = _engine.verification_page(self._system._native, self._words)
        _same(json.loads(text), self._data, "verifying", "the trace, or the profile of the machine,")
        if page is None:
            raise bad_argument("trace", "pages are made of horolog's own traces, not of perf.data and trace.dat")
        return page.encode()


class TracePage(Page):
    """The page of a trace."""

    __slots__ = ("_path", "_said")

    def __init__(self, path: str, said: str) -> None:
        super().__init__()
        self._path, self._said = path, said

    def _make(self) -> bytes:
        return _engine.trace_page(self._path, self._said).encode()


def write(path: object, page: bytes) -> Path:
    """Writes a page, and gives its path."""
    place = Path(_checks.path("path", path))
    try:
        place.write_bytes(page)
    except OSError as error:
        raise bad_argument("path", f"cannot write {place}: {error.strerror}") from None
    return place


def framed(title: str, page: Page) -> str:
    """A page in a frame of a notebook: it needs no network, and its scripts reach nothing of the notebook. Where it cannot be made, why."""
    try:
        inside = page.read()
    except HorologError as error:
        return f"<p>no timeline: {html.escape(error.message)}</p>"
    if not inside:
        return ""
    return (
        f'<iframe title="report of {html.escape(title)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:720px;border:1px solid #8884" srcdoc="{html.escape(inside.decode(errors="replace"), quote=True)}"></iframe>'
    )


def _same(found: dict[str, Any], known: dict[str, Any], what: str, cause: str) -> None:
    if found != known:
        message = f"{what} came to another result than before: {cause} has changed since then"
        raise Undecided((Told("undecided", message),), 4, message)
