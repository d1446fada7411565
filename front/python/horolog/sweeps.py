"""Sweeps: a grid of random task sets, tested block by block into a folder (docs/concepts/sweeps.md).

The rows are those of the command ``horolog sweep``, byte by byte, on any number of workers and on a Dask cluster.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _checks, _engine
from .errors import bad_argument
from .systems import System

_SCHEMA = "horolog.sweep/1"


@dataclass(frozen=True, slots=True)
class SweepEstimate:
    """What is left of a sweep, and what that will take."""

    sets: int
    """Sets of all cells."""
    blocks: int
    """Blocks of all cells."""
    missing_blocks: int
    """Blocks that are still to be computed."""
    processor_s: float
    """Their processor time in seconds, from sets that were tried on one core."""
    processor_s_low: float
    """The least that it is likely to be."""
    processor_s_high: float
    """The most that it is likely to be, unless there are sets that take longer than any that was tried."""
    wall_s: float
    """``processor_s`` by the number of workers."""
    wall_s_low: float
    """``processor_s_low`` by the number of workers."""
    wall_s_high: float
    """``processor_s_high`` by the number of workers."""
    tried_sets: int
    """Sets that were tried for this."""
    disk_bytes: int
    """What their files will take."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep came to."""

    name: str
    """Its name, which is part of every seed."""
    folder: Path
    """Where its rows are: ``folder/rows/*/*.parquet``."""
    is_complete: bool
    """Whether every block is there."""
    computed: int
    """Blocks that were computed now."""
    kept: int
    """Blocks that were there before."""
    version: str
    """The version of horolog that drew and tested the sets."""
    data: dict[str, Any] = field(repr=False, compare=False)
    """All of it: ``horolog.sweep-result/1`` of docs/contract.md."""

    def ratio(self, test: str, **where: Any) -> float:
        """The share of sets that ``test`` proves to meet every deadline, from 0 to 1, of the cells with these values, as
        ``ratio("edf-qpa", tasks=10, utilisation=0.8)``."""
        cells = [cell for cell in self.data["cells"] if all(cell.get(key) == value for key, value in where.items())]
        found = [one for cell in cells for one in cell["tests"] if one["test"] == test]
        sets = sum(one["sets"] for one in found)
        if not sets:
            raise bad_argument("test", f"there are no sets of {test!r} with {where}")
        return float(sum(one["meets"] for one in found) / sets)

    @property
    def weighted(self) -> dict[tuple[str, str], float | None]:
        """Weighted schedulability (Bastoni, Brandenburg and Anderson 2010) by group and test."""
        return {(one["group"], one["test"]): one["value"] for one in self.data["weighted"]}

    @property
    def page(self) -> Path:
        """The page: choose the axis, what is shown, tests and a filter. It needs no network."""
        return self.folder / str(self.data["page"])

    @property
    def drawings(self) -> list[Path]:
        """The drawings, as SVG."""
        return [self.folder / name for name in self.data["drawings"]]

    def _repr_html_(self) -> str:
        shown = "".join(path.read_text() for path in self.drawings[:1] if path.exists())
        rows = "".join(
            f"<tr><td>{html.escape(group or 'all')}</td><td>{html.escape(test)}</td><td>{_share(value)}</td></tr>"
            for (group, test), value in self.weighted.items()
        )
        head = "<tr><th>cells</th><th>test</th><th>weighted schedulability</th></tr>"
        return f"<div style='max-width:45em'>{shown}</div><table>{head}{rows}</table>"


def sweep(
    source: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    workers: int = 0,
    drop_others: bool = False,
    cluster: str | None = None,
    patience_s: float = 60.0,
) -> SweepResult:
    """Computes the blocks of a sweep that are not in the folder ``out`` yet.

    ``source`` is a file of a sweep, or its keys: ``{"sweep": {"name": …, "sets": …, "tests": […]}, "generator": {…}}``. ``workers``: 0
    takes every core. ``drop_others`` removes blocks that the file does not ask for. Ctrl-C ends it after the blocks that are under way,
    and the same call goes on.

    ``cluster`` is the address of a Dask scheduler, as ``"tcp://10.0.0.1:8786"``, whose workers have this version of horolog (extra
    ``dask``): one task a block; this process alone writes files. A worker that is killed loses no block. Where no worker is left, or
    nothing comes back, for ``patience_s`` seconds, :class:`Undecided` is raised, and what was computed is kept.

    Raises :class:`BadInput` with everything that is wrong with the file, for a folder of something else, and where a file cannot be
    written.
    """
    text, name = _source(source)
    count, drops = _checks.whole("workers", workers, 0, 1_024), _checks.truth("drop_others", drop_others)
    patience = _checks.finite("patience_s", patience_s)
    address = None if cluster is None else _checks.text("cluster", cluster)
    native = _engine.NativeSweep(text, name)
    folder = native.open(_checks.path("out", out), drops)
    try:
        if address is None:
            folder.run(count)
        else:
            from . import _cluster

            _cluster.run(folder, text, name, address, patience)
        data = json.loads(folder.finish())
    finally:
        folder.close()
    blocks = data["blocks"]
    return SweepResult(
        data["name"],
        Path(data["folder"]),
        data["is_complete"],
        blocks["computed"],
        blocks["kept"],
        data["version"],
        data,
    )


def sweep_estimate(
    source: str | os.PathLike[str] | Mapping[str, Any], out: str | os.PathLike[str], *, workers: int = 0
) -> SweepEstimate:
    """Tries some sets of a sweep and says what the blocks that are not in ``out`` yet will take; writes nothing."""
    text, name = _source(source)
    count = _checks.whole("workers", workers, 0, 1_024)
    found = json.loads(_engine.NativeSweep(text, name).estimate(_checks.path("out", out), count))
    return SweepEstimate(**{key: found[key] for key in SweepEstimate.__dataclass_fields__})


def generate_systems(generator: Mapping[str, Any], test: str, count: int, *, seed: int = 1, first: int = 0) -> list[System]:
    """What a test of whole systems makes of drawn sets: systems that can be analysed, simulated, printed and run.

    ``generator`` has the keys of ``[generator]`` in the file of a sweep, one value each (docs/concepts/sweeps.md), as ``{"tasks": 6,
    "utilisation": 0.7, "segments": 4}``; ``test`` is a test of systems, as ``"fp-deferred"``, ``"fp-msrp"`` or ``"edf-vd"``. Set number i of
    a seed is the same for ever: with a ``block_seed`` of a sweep's rows these are the sets of its block.

    Raises :class:`BadInput` for keys and values that are none, and for a set with a task that is longer than its deadline.
    """
    if not isinstance(generator, Mapping):
        raise bad_argument("generator", f"{type(generator).__name__} is not a mapping of keys")
    sets = _checks.whole("count", count, 1, 1_000_000)
    number, start = _checks.whole("seed", seed), _checks.whole("first", first, 0, 2**64 - sets)
    head = {"name": "systems", "sets": 1, "tests": [_checks.text("test", test)]}
    keys = _checks.plain("generator", dict(generator))
    text, name = _source({"sweep": head, "generator": keys})
    made = _engine.NativeSweep(text, name).systems(number, start, sets)
    return [System.parse(native.normalised(), native.name) for native in made]


def _source(source: object) -> tuple[str, str]:
    """The text of a sweep and what messages call it."""
    if isinstance(source, Mapping):
        plain = _checks.plain("source", dict(source))
        assert isinstance(plain, dict)
        plain.setdefault("schema", _SCHEMA)
        return _engine.toml_of_json(json.dumps(plain, ensure_ascii=False)), "<python>"
    try:
        path = Path(os.fspath(source))  # type: ignore[call-overload]
    except TypeError:
        raise bad_argument("source", f"{type(source).__name__} is neither a path nor a mapping") from None
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, ValueError) as error:
        raise bad_argument("source", f"cannot read {path}: {error}") from None


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
