"""Pages of results: the report's viewer with timeline and distributions, one HTML file that needs nothing else.

What ``loop`` gives has its page. Pages of simulations, of verified traces and of traces are made when they are first asked for: a
simulation is computed again, and a trace is read again. A timeline keeps the first 200,000 records, and says so where there are more;
tables and distributions count all of them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import _checks, _engine
from .errors import HorologError, Told, Undecided, bad_argument

if TYPE_CHECKING:
    from .systems import System


class Page:
    """A page that is there already, or is made when it is first asked for; empty where there is none."""

    __slots__ = ("_made",)

    def __init__(self, made: bytes | Callable[[], bytes]) -> None:
        self._made = made

    def read(self) -> bytes:
        """The page; made once."""
        if not isinstance(self._made, bytes):
            self._made = self._made()
        return self._made


def of_simulation(system: System, words: SimpleNamespace, data: dict[str, Any]) -> Page:
    """The page of a simulation with this result, which is computed again."""
    return Page(partial(_simulated, system, words, data))


def of_verification(system: System, words: SimpleNamespace, data: dict[str, Any]) -> Page:
    """The page of a verified trace with this result, which is read and verified again."""
    return Page(partial(_verified, system, words, data))


def of_trace(path: str, said: str) -> Page:
    """The page of a trace; ``said`` is its first sentence."""
    return Page(lambda: _engine.trace_page(path, said).encode())


# Functions of the module, which pickle, as results do.
def _simulated(system: System, words: SimpleNamespace, data: dict[str, Any]) -> bytes:
    text, page = _engine.simulation_page(system._native, words)
    _same(json.loads(text), data, "the simulation", "the profile of the machine")
    return page.encode()


def _verified(system: System, words: SimpleNamespace, data: dict[str, Any]) -> bytes:
    text, page = _engine.verification_page(system._native, words)
    _same(json.loads(text), data, "verifying", "the trace, or the profile of the machine,")
    if page is None:
        raise bad_argument("trace", "pages are made of horolog's own traces, not of perf.data and trace.dat")
    return page.encode()


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
