"""Prove, simulate and study the timing of real-time tasks.

Every result is that of the ``horolog`` command: the same engine, the same JSON (``Result.data``). Times are whole nanoseconds and say so
in their names; durations that go in are texts with a unit (``"1.5 ms"``) or timedeltas.

>>> import horolog
>>> system = horolog.System(
...     system={"name": "robot"},
...     task=[{"name": "control", "period": "10 ms", "wcet": "2 ms", "priority": 90}],
... )
>>> system.analyze().task("control").response_ns
2000000
"""

from __future__ import annotations

import os

from . import trace
from ._engine import __version__
from .checked import Finding, LoopResult, LoopTask, RunOutcome, TaskVerification, Verification
from .errors import BadInput, HorologError, InternalError, NotAllowed, SaysNo, Told, Undecided
from .recordings import Recording, attach, record
from .results import Analysis, Closing, Outcome, Result, TaskOutcome, TaskVerdict
from .runs import loop, run, verify
from .sets import METHODS, TESTS, Acceptance, TaskSets, Verdicts, acceptance, batch, generate, utilisations
from .sweeps import SweepEstimate, SweepResult, generate_systems, sweep, sweep_estimate
from .systems import Duration, System, load
from .traces import KINDS, NO_JOB, Record, RecordBatch, Thread, Trace, read_trace

__all__ = [
    "KINDS",
    "METHODS",
    "NO_JOB",
    "TESTS",
    "Acceptance",
    "Analysis",
    "BadInput",
    "Closing",
    "Duration",
    "Finding",
    "HorologError",
    "InternalError",
    "LoopResult",
    "LoopTask",
    "NotAllowed",
    "Outcome",
    "Record",
    "RecordBatch",
    "Recording",
    "Result",
    "RunOutcome",
    "SaysNo",
    "SweepEstimate",
    "SweepResult",
    "System",
    "TaskOutcome",
    "TaskSets",
    "TaskVerdict",
    "TaskVerification",
    "Thread",
    "Told",
    "Trace",
    "Undecided",
    "Verdicts",
    "Verification",
    "__version__",
    "acceptance",
    "analyze",
    "attach",
    "batch",
    "generate",
    "generate_systems",
    "load",
    "loop",
    "read_trace",
    "record",
    "run",
    "simulate",
    "sweep",
    "sweep_estimate",
    "trace",
    "utilisations",
    "verify",
]


def analyze(path: str | os.PathLike[str], machine: str | os.PathLike[str] | None = None) -> Analysis:
    """Loads a system file and proves what can be proved: ``load(path).analyze(machine)``."""
    return load(path).analyze(machine)


def simulate(path: str | os.PathLike[str], horizon: Duration | None = None, *, seed: int = 1) -> Outcome:
    """Loads a system file and simulates it: ``load(path).simulate(horizon, seed=seed)``."""
    return load(path).simulate(horizon, seed=seed)
