"""Locks on processors, for test runs beside each other on one machine."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from .errors import Told, Undecided

_LOOK_S = 0.02

_held = threading.local()


@contextmanager
def alone_on(cpus: Iterable[int], patience_s: float) -> Iterator[None]:
    """Holds the locks of these processors, in their order; the kernel gives them back where the process dies.

    What this thread holds already stays with it. Raises :class:`Undecided` where others hold one of them longer than the patience lasts.
    """
    end = time.monotonic() + patience_s
    before: frozenset[int] = getattr(_held, "cpus", frozenset())
    wanted = frozenset(cpus) - before
    with ExitStack() as stack:
        for cpu in sorted(wanted):
            file = _opened(os.path.join(tempfile.gettempdir(), f"horolog-cpu-{cpu}.lock"))
            stack.callback(os.close, file)
            while not _is_locked(file):
                if time.monotonic() > end:
                    message = f"processor {cpu} was in use by other test runs for {patience_s:g} s"
                    raise Undecided((Told("undecided", message),), 4, message)
                time.sleep(_LOOK_S)
        _held.cpus = before | wanted
        stack.callback(setattr, _held, "cpus", before)
        yield


def _opened(path: str) -> int:
    """The file, which another user may have made: a lock needs no right to write."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
