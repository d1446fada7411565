"""Every public function with wrong arguments: an exception that names the argument, never a panic or an abort.

``HOROLOG_FUZZ`` says how many calls of each function are made; ``HOROLOG_FUZZ_SEED`` the seed.
"""

import inspect
import math
import os
import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import horolog as h
from conftest import ROOT

CALLS = int(os.environ.get("HOROLOG_FUZZ", "150"))
SEED = int(os.environ.get("HOROLOG_FUZZ_SEED", "7"))
QUICK = ROOT / "examples/quick-start/system.toml"
TRACE = ROOT / "front/python/tests/user-events.trace"
ARRAY = np.full((3, 2), 10)


class Hostile:
    """An object whose every conversion fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __index__(self) -> int:
        raise TypeError("no index")

    def __float__(self) -> float:
        raise ValueError("no float")


WRONG: list[Any] = [
    None, True, -1, 0, 2**63, 2**64, -(2**63) - 1, 10**30, 10**5000, 1.5, -0.5, math.nan, math.inf, -math.inf, 1e300, 1e308, np.array(3), 5e-324, 1j,
    "", "x", "1", "nan", "10 ms", "-1 ms", "1e99 s", "99999999999 s", "5 parsec", "a\0b", "\ud800", "x" * 5_000, b"", b"10 ms",
    [], [1, 2], [[1, 2], [3]], [math.nan], ["x"], [None], [[]], (), (1, 2, 3), {}, {"x": 1}, {1: 2}, {"a": {"b": [math.nan]}}, set(), {1},
    object(), Hostile(), len, int, range(3), Decimal("NaN"), timedelta(-1), timedelta.max, Path("/none/such"), Path("."),
    np.float64("nan"), np.int8(-1), np.uint64(2**64 - 1), np.zeros((0, 2), np.int64), np.zeros((2, 0), np.int64), np.zeros(3, np.int64),
    np.full((3, 2), -1), np.full((3, 2), 2**62), np.full((3, 2), 1.5), np.full((3, 2), "x"), ARRAY.T, ARRAY[::2], memoryview(b"abcdefgh"),
    bytearray(16), iter([1]), (one for one in [1.0]),
]  # fmt: skip


def functions() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every public function, with arguments that are good and quick."""
    system = h.load(QUICK)
    sets, verdicts, trace = h.generate(3, tasks=2), h.batch((ARRAY, ARRAY, ARRAY)), h.read_trace(TRACE)
    recipe: dict[str, Any] = {
        "count": 3, "tasks": 3, "utilisation": 0.8, "method": "convolutionalfixedsum", "periods": "log-uniform",
        "shortest_period_ns": 10_000_000, "longest_period_ns": 1_000_000_000, "granularity_ns": 1, "deadlines": "constrained",
        "least": 0.0, "factor": 2.0, "seed": 1, "first": 0, "threads": 1, "lower": 0.0, "upper": [1.0, 0.5, 1.0],
    }  # fmt: skip
    return {
        "load": (h.load, {"path": QUICK, "overrides": []}),
        "System.parse": (h.System.parse, {"text": system.text, "name": "a", "overrides": []}),
        "System.analyze": (system.analyze, {"machine": "none"}),
        "System.simulate": (
            system.simulate,
            {
                "horizon": "10 ms", "jobs": None, "execution": "wcet", "jitter": "none", "latency": "none", "sporadic_extra": "0 ns",
                "path": "longest", "seed": 1, "machine": None, "trace": None,
            },
        ),
        "analyze": (h.analyze, {"path": QUICK, "machine": "none"}),
        "simulate": (h.simulate, {"path": QUICK, "horizon": "10 ms", "seed": 1}),
        "verify": (
            h.verify,
            {
                "system": system, "trace": TRACE, "machine": "none", "mapping": {"control": 71}, "gate": {"model"}, "coverage": 90,
                "strict": False,
            },
        ),
        "generate": (h.generate, recipe),
        "utilisations": (
            h.utilisations,
            {key: recipe[key] for key in ("count", "tasks", "utilisation", "method", "seed", "lower", "upper")},
        ),
        "batch": (h.batch, {"sets": (ARRAY, ARRAY, ARRAY), "tests": ["edf-qpa"], "threads": 1}),
        "batch of parts": (
            lambda wcet, deadline, period: h.batch((wcet, deadline, period)),
            {"wcet": ARRAY, "deadline": ARRAY, "period": ARRAY},
        ),
        "acceptance": (h.acceptance, {"utilisations": [0.5], "tests": ["edf-qpa"], "count": 3, "seed": 1, "tasks": 2}),
        "Verdicts.ratio": (verdicts.ratio, {"test": "edf-qpa"}),
        "read_trace": (h.read_trace, {"path": TRACE, "damaged": "keep"}),
        "Trace.batches": (lambda rows: list(trace.batches(rows)), {"rows": 10}),
        "generate_systems": (
            h.generate_systems,
            {"generator": {"tasks": 2, "utilisation": 0.5, "segments": 2}, "test": "fp-deferred", "count": 2, "seed": 1, "first": 0},
        ),
        "sweep_estimate": (
            h.sweep_estimate,
            {"source": {"sweep": {"name": "x", "sets": 4, "tests": ["edf-qpa"]}, "generator": {"utilisation": 0.5}}, "out": "none-such",
             "workers": 1},
        ),
    }  # fmt: skip


ALL = functions()


def attached(**words: Any) -> None:
    with h.attach(**words):
        raise AssertionError("nothing is recorded")


# These begin a process of the command, or write: only what is refused before that may be tried.
REFUSED: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "run": (h.run, ["duration", "scheduling", "sporadic_extra", "best_effort", "strict", "coverage", "retries"]),
    "loop": (h.loop, ["duration", "sporadic_extra", "best_effort", "strict", "coverage", "retries", "gate"]),
    "sweep": (h.sweep, ["source", "workers", "drop_others", "patience_s"]),
    "record": (h.record, ["command", "out", "events", "duration", "kernel", "locks", "block"]),
    "attach": (attached, ["pid", "out", "events", "limit", "kernel"]),
}
RECORDED: dict[str, dict[str, Any]] = {"record": {"command": ["true"]}, "attach": {"pid": 1}}
# What the engine calls the parts of an argument.
PARTS = {"batch": ("wcet", "deadline", "period")}
# Wrong in no place of an argument: what the engine says of the whole.
OF_THE_WHOLE = ("no ", "cannot ", "the ", "trace", "error", "`", "task", "system", "not a", "this ", "a ", "an ", "opening ", "[")


def test_every_public_function_is_tried() -> None:
    tried = {name.split(".")[0].split(" ")[0] for name in [*ALL, *REFUSED]}
    public = {name for name in h.__all__ if inspect.isfunction(getattr(h, name))}
    assert public <= tried, public - tried


@pytest.mark.parametrize("name", ALL)
def test_wrong_arguments_are_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, good = ALL[name]
    function(**good) if name != "verify" else None
    drawn = random.Random(f"{SEED} {name}")
    refused = 0
    for _ in range(CALLS):
        argument = drawn.choice(list(good))
        bad = drawn.choice(WRONG)
        try:
            function(**{**good, argument: bad})
        except h.BadInput as error:
            refused += 1
            base = argument.removesuffix("_ns")
            # Where a good argument does not go with the wrong one, that is named.
            named = any(str(error).startswith(one.removesuffix("_ns").removesuffix("s")) for one in [*good, *PARTS.get(name, ())])
            # What is wrong with a file is told with its name.
            named = named or isinstance(bad, (str, Path)) and bool(str(bad)) and str(bad) in str(error)
            assert named or str(error).startswith((base, *OF_THE_WHOLE)), (argument, type(bad), str(error)[:200])
        except (h.SaysNo, h.NotAllowed, h.Undecided):
            pass
    assert refused >= CALLS // 4, refused


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_begin_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", "/none/such")
    function, arguments = REFUSED[name]
    drawn = random.Random(f"{SEED} {name}")
    for _ in range(CALLS):
        argument, bad = drawn.choice(arguments), drawn.choice(WRONG)
        words: dict[str, Any] = {"out": tmp_path / "out", "source": {"sweep": {}}} if name == "sweep" else {"system": QUICK}
        words = {"out": tmp_path / "a.trace", **RECORDED[name]} if name in RECORDED else words
        with pytest.raises((h.BadInput, h.NotAllowed)):
            function(**{**words, argument: bad})
    assert list(tmp_path.iterdir()) == []


def test_keys_of_a_system_are_named() -> None:
    drawn = random.Random(SEED)
    task = {"name": "control", "period": "10 ms", "deadline": "8 ms", "wcet": "2 ms", "priority": 90}
    for _ in range(CALLS):
        key, bad = drawn.choice(list(task)), drawn.choice(WRONG)
        if bad is None and key == "deadline":
            continue
        try:
            h.System(system={"name": "robot"}, task=[{**task, key: bad}])
        except h.BadInput as error:
            named = any(key in (one.path or "") or "task" in (one.path or "") for one in error.errors)
            assert named, (key, type(bad), error.errors)
