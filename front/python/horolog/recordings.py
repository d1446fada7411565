"""Recording programs, by the installed command ``horolog trace record``: one that is started, or one that waits for a recorder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import _checks, _engine
from .errors import HorologError, Told, Undecided, bad_argument
from .runs import installed, told_error
from .systems import Duration
from .traces import Trace, read_trace

_SUMMARY = b'{\n  "schema": "horolog.recording/1"'
_PATIENCE_S = 10.0
"""How long a process that waits has to begin, and a recorder to end once it is asked to."""
_MOMENT_S = 1.0
"""How long its triggers have to be enabled."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of a program (schema ``horolog.recording/1``)."""

    path: str
    """The file of the trace."""
    events: int
    """Events that it holds."""
    lost: int
    """Events that were lost."""
    length_ns: int
    """For how long was recorded, in ns."""
    status: int | None
    """The exit status of the command; minus the number of the signal that ended it; None where none was started or it goes on."""
    incomplete: str | None
    """Why the file ends early; None where it is whole."""
    notes: tuple[str, ...]
    """What was not recorded, and why."""
    output: bytes = field(repr=False, compare=False)
    """What the command wrote to its standard output."""
    log: str = field(repr=False, compare=False)
    """What it wrote to its standard error."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """What ``--format json`` prints, as Python objects."""

    def trace(self) -> Trace:
        """Opens the trace: :func:`read_trace`."""
        return read_trace(self.path)


def record(
    command: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    events: Iterable[str] = (),
    duration: Duration | None = None,
    kernel: bool = False,
    locks: bool = False,
    block: bool = False,
) -> Recording:
    """Starts a program, records its events and those of what it starts, and waits for its end, as ``horolog trace record`` does.

    ``out`` is the file of the trace. ``events`` are names and patterns of triggers (all of them without it; ``python`` is that of
    :mod:`horolog.trace`). After ``duration`` the program is asked to end. ``kernel`` records the kernel's switches as well, ``locks``
    the waits for locks; with ``block`` the program waits where a buffer is full instead of losing events.

    An exit status that is not 0 is no error here: see ``status``. Raises :class:`NotAllowed` where this machine does not allow it.
    """
    words = [os.fspath(one) for one in _words(command)]
    if not words:
        raise bad_argument("command", "name the program at least")
    file = os.path.abspath(_checks.path("out", out))
    call = _call(file, events, kernel, locks) + (["--for", _checks.span("duration", duration)] if duration is not None else [])
    call += ["--block"] if _checks.truth("block", block) else []
    status, output, log = _engine.command(installed(), [*call, "--", *words], "")
    return _recording(file, status, output, log)


@contextmanager
def attach(
    pid: int,
    out: str | os.PathLike[str],
    *,
    events: Iterable[str] = (),
    limit: Duration = "600 s",
    kernel: bool = False,
) -> Iterator[list[Recording]]:
    """Records a process that waits for a recorder (``HOROLOG_TRACE=listen``) while the block runs.

    >>> with horolog.attach(pid, "a.trace") as recordings:  # doctest: +SKIP
    ...     pass
    >>> recordings[0].events  # doctest: +SKIP

    The list is empty before the end. ``limit`` ends the recording where this process does not. The other arguments are those of
    :func:`record`. Raises :class:`NotAllowed` where the process cannot be reached.
    """
    number = _checks.whole("pid", pid, 1, 2**31 - 1)
    file = os.path.abspath(_checks.path("out", out))
    words = [*_call(file, events, kernel, False), "--for", _checks.span("limit", limit)]
    call = [installed(), *words, "--pid", str(number)]
    # Whatever is there is of another recording.
    if os.path.exists(file):
        os.unlink(file)
    recorder = subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found: list[Recording] = []
    try:
        _begun(recorder, file, number)
        is_over = recorder.poll() is not None
        if not is_over:
            yield found
    finally:
        output, log = _ended(recorder)
    # Raises where it could not begin, and then the block does not run.
    found.append(_recording(file, recorder.returncode, output, log))
    if is_over:
        yield found


def _ended(recorder: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Asks the recorder to end; what it wrote."""
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
    try:
        return recorder.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        recorder.kill()
        return recorder.communicate()


def _begun(recorder: subprocess.Popen[bytes], file: str, pid: int) -> None:
    """Waits until the recorder writes its file and triggers of the process are enabled, or the recorder is gone.

    Where no trigger of the process is asked for, none is enabled: then a moment is enough.
    """
    end = time.monotonic() + _PATIENCE_S
    while recorder.poll() is None and not os.path.exists(file):
        if time.monotonic() > end:
            raise _undecided(f"pid: the recorder did not begin within {_PATIENCE_S:g} s", "")
        time.sleep(0.005)
    end = time.monotonic() + _MOMENT_S
    while recorder.poll() is None and time.monotonic() < end and not _is_enabled(pid):
        time.sleep(0.005)


def _is_enabled(pid: int) -> bool:
    call = ["--quiet", "trace", "events", str(pid), "--format", "json"]
    _, output, _ = _engine.command(installed(), call, "")
    try:
        return any(event["enabled"] for event in json.loads(output).get("events", ()))
    except ValueError:
        return False


def _call(file: str, events: object, kernel: object, locks: object) -> list[str]:
    call = ["--color", "never", "--quiet", "trace", "record", "--format", "json", "--out", file]
    if isinstance(events, (str, bytes)) or not isinstance(events, Iterable):
        raise bad_argument("events", "give a list of names and patterns", 'as ["python", "queue/*"]')
    try:
        chosen = list(events)
    except TypeError:
        raise bad_argument("events", "give a list of names and patterns", 'as ["python", "queue/*"]') from None
    for at, one in enumerate(chosen):
        pattern = _checks.text(f"events[{at}]", one)
        if "\0" in pattern:
            raise bad_argument(f"events[{at}]", "no name has NUL in a pattern")
        call.append(f"--event={pattern}")
    call += ["--kernel"] if _checks.truth("kernel", kernel) else []
    return call + (["--locks"] if _checks.truth("locks", locks) else [])


def _words(command: object) -> list[str]:
    if isinstance(command, (str, bytes)) or not isinstance(command, Sequence):
        raise bad_argument("command", "give the program and its arguments as a list", 'as ["python3", "program.py"]')
    return [_checks.path(f"command[{at}]", one) if at == 0 else _word(at, one) for at, one in enumerate(command)]


def _word(at: int, one: object) -> str:
    word = _checks.text(f"command[{at}]", os.fspath(one) if isinstance(one, os.PathLike) else one)
    if "\0" in word:
        raise bad_argument(f"command[{at}]", "an argument has no NUL")
    return word


def _recording(file: str, status: int, output: bytes, log: bytes) -> Recording:
    shown = log.decode(errors="replace")
    # The command's own output comes before.
    before, marker, summary = output.rpartition(_SUMMARY)
    if marker:
        data: dict[str, Any] = json.loads(marker + summary)
        ended = data["command"]
        left = None if ended is None else ended["status"] if ended["signal"] is None else -ended["signal"]
        return Recording(
            file,
            data["events"],
            data["events_lost"],
            data["length_ns"],
            left,
            data["incomplete"],
            tuple(data["notes"]),
            before,
            shown,
            data,
        )
    try:
        error = told_error(json.loads(output), shown)
    except ValueError:
        error = None
    raise error or _undecided(f"the recorder ended with status {status} and no summary", shown)


def _undecided(message: str, log: str) -> HorologError:
    return Undecided((Told("undecided", message),), 4, f"{message}\n{log}".strip())
