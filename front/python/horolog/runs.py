"""Verifying a trace, running a system on this machine, and all of it in a row.

:func:`verify` computes in this process. :func:`run` and :func:`loop` start real-time threads, lock memory and take over signals, which
no process with threads of its own can bear: they run the installed command ``horolog`` of the same version as a child process.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import _checks, _engine, pages
from .checked import LoopResult, RunOutcome, Verification, loop_of, run_of, verification_of
from .errors import HorologError, NotAllowed, Told, Undecided, bad_argument, from_told
from .systems import Duration, System, load

_COMMAND = "HOROLOG_COMMAND"


def verify(
    system: System | str | os.PathLike[str],
    trace: str | os.PathLike[str],
    *,
    machine: str | os.PathLike[str] | None = None,
    mapping: Mapping[str, str | int] | None = None,
    gate: Iterable[str] | None = None,
    coverage: float = 90.0,
    strict: bool = False,
) -> Verification:
    """Holds a trace against the model and the proof, as ``horolog verify`` does.

    ``trace`` is horolog's own, perf.data or trace.dat; for the last two ``mapping`` says which thread is which task, by name or number.
    ``machine`` is as for :meth:`System.analyze`. ``gate`` names the questions that decide (without it ``model`` and ``deadlines``),
    ``coverage`` is the percentage of the jobs of every task that have to be judged, and ``strict`` wants every job judged and takes a
    disturbance for a no. Where a bound is violated, a release pattern that shows it goes into ``TRACE.counterexample.json``.

    Raises :class:`BadInput` for a file that is no trace, or one of another system.
    """
    rules = []
    if mapping is not None:
        if not isinstance(mapping, Mapping):
            raise bad_argument("mapping", f"{_checks.short(mapping)} is not a mapping from tasks to threads")
        for task, thread in mapping.items():
            known = _checks.text("mapping key", task)
            number = isinstance(thread, int) and not isinstance(thread, bool)
            shown = str(thread) if number else _checks.text(f"mapping[{known!r}]", thread)
            rules.append(f"{known}={shown}")
    words = SimpleNamespace(
        trace=_checks.path("trace", trace),
        machine=_checks.machine(machine),
        mapping=rules,
        gate=_checks.questions("gate", gate),
        coverage_permille=_checks.permille("coverage", coverage),
        strict=_checks.truth("strict", strict),
    )
    checked = _system(system)
    data = json.loads(_engine.verify(checked._native, words))
    return verification_of(data, pages.of_verification(checked, words, data))


def run(
    system: System | str | os.PathLike[str],
    duration: Duration = "10 s",
    *,
    trace: str | os.PathLike[str] | None = None,
    machine: str | os.PathLike[str] | None = None,
    best_effort: bool = False,
    scheduling: str = "fifo",
    sporadic_extra: Duration = "0 ns",
    coverage: float = 90.0,
    strict: bool = False,
    retries: int = 0,
    seed: int = 1,
) -> RunOutcome:
    """Runs a system on this machine with real threads, as ``horolog run`` does, in a process of the installed command.

    ``duration`` is for how long jobs are released. ``trace`` is a file for the trace; without it the trace lies in a temporary folder until
    the result's page is made. ``best_effort`` runs under normal scheduling where
    real-time scheduling is not permitted. ``scheduling`` is ``fifo`` or ``deadline``. Without the rights for a run ``closing`` says so.

    Ctrl-C asks the run to end, waits until it has put back what it changed, and is raised then; a kill of this process ends the run, too.
    """
    words = ["--class", _checks.one_of("scheduling", scheduling, ("fifo", "deadline"))]
    words += _words(duration, machine, best_effort, sporadic_extra, coverage, strict, retries, seed)
    kept = None if trace is None else os.path.abspath(_checks.path("trace", trace))
    with tempfile.TemporaryDirectory(prefix="horolog-") as temporary:
        file = kept or str(Path(temporary) / "run.trace")
        text, log = _told("run", _system(system), [*words, "--trace", file])
        data = json.loads(text)
        closing = data["closing"]
        said = f"{closing['word']}: {closing['text']}"
        page = pages.of_trace(file, said).read() if "tasks" in data else b""
        return run_of(data, page, log)


def loop(
    system: System | str | os.PathLike[str],
    duration: Duration = "10 s",
    *,
    out: str | os.PathLike[str] | None = None,
    machine: str | os.PathLike[str] | None = None,
    best_effort: bool = False,
    sporadic_extra: Duration = "0 ns",
    gate: Iterable[str] | None = None,
    coverage: float = 90.0,
    strict: bool = False,
    retries: int = 0,
    seed: int = 1,
) -> LoopResult:
    """Proves, simulates, runs, records and verifies, as ``horolog loop`` does, in a process of the installed command.

    ``duration`` is for how long the simulation and the run release jobs. ``out`` is the folder of results and traces; without it only
    the result and its report are kept. Everything else is as for :func:`run` and :func:`verify`; without ``gate`` all three questions
    decide. ``result.report("x.html")`` writes the report.
    """
    known = _system(system)
    words = _words(duration, machine, best_effort, sporadic_extra, coverage, strict, retries, seed)
    asked = _checks.questions("gate", gate)
    if asked is not None:
        words += ["--gate", asked]
    kept = None if out is None else Path(os.path.abspath(_checks.path("out", out)))
    with tempfile.TemporaryDirectory(prefix="horolog-") as temporary:
        folder = kept or Path(temporary)
        text, log = _told("loop", known, [*words, "--out", str(folder)])
        page = folder / "report.html"
        return loop_of(text, kept, page.read_bytes() if page.exists() else b"", log)


def _system(system: object) -> System:
    if isinstance(system, System):
        return system
    return load(_checks.path("system", system))


def _words(
    duration: object,
    machine: object,
    best_effort: object,
    sporadic_extra: object,
    coverage: object,
    strict: object,
    retries: object,
    seed: object,
) -> list[str]:
    words = ["--for", _checks.span("duration", duration)]
    words += ["--sporadic-extra", _checks.span("sporadic_extra", sporadic_extra)]
    words += ["--retries", str(_checks.whole("retries", retries, 0, 1_000))]
    words += ["--seed", str(_checks.whole("seed", seed))]
    words += ["--coverage", f"{_checks.permille('coverage', coverage) / 10}%"]
    words += ["--best-effort"] if _checks.truth("best_effort", best_effort) else []
    words += ["--strict"] if _checks.truth("strict", strict) else []
    profile = _checks.machine(machine)
    if profile is not None:
        words.append(f"--machine={profile}")
    return words


def _told(verb: str, system: System, words: list[str]) -> tuple[str, str]:
    """The JSON of the command and its log."""
    file, text = system._source()
    call = ["--color", "never", verb, *(f"--set={one}" for one in system._overrides), *words, "--format", "json", file]
    status, output, log_bytes = _engine.command(installed(), call, text)
    log = log_bytes.decode(errors="replace")
    try:
        told = json.loads(output)
    except ValueError:
        last = (log.strip().splitlines() or ["it wrote nothing"])[-1]
        message = f"the command ended with status {status} and no result: {last}"
        raise Undecided((Told("undecided", message),), 4, f"{message}\n{log}".strip()) from None
    error = told_error(told, log)
    if error is not None:
        raise error
    return output.decode(), log


def told_error(told: Any, log: str) -> HorologError | None:
    """The error that the command tells as JSON; None where it tells none."""
    if not isinstance(told, dict) or told.get("schema") != "horolog.error/1":
        return None
    return from_told(json.dumps(told["errors"]), told["exit"], log.strip().removeprefix("error: "))


def installed() -> str:
    """The installed command of the same version."""
    named = os.environ.get(_COMMAND)
    found = shutil.which(named or "horolog")
    if found is None:
        what = f"{_COMMAND} names {named!r}, which is no program" if named else "there is no command `horolog`"
        raise _missing(what)
    _same_version(found)
    return found


@functools.cache
def _same_version(program: str) -> None:
    status, output, _ = _engine.command(program, ["--version"], "")
    known, _, version = output.decode(errors="replace").strip().partition(" ")
    if status != 0 or known != "horolog":
        raise _missing(f"{program} is no horolog")
    if version != _engine.__version__:
        raise _missing(f"{program} is horolog {version}, and this package {_engine.__version__}")


def _missing(what: str) -> NotAllowed:
    help = f"install the command of version {_engine.__version__} (docs/install.md), or name it by {_COMMAND}"
    return NotAllowed((Told("not-allowed", what, help=help),), 3, f"{what}\n  = help: {help}")
