"""Sweeps in Python: the command's own rows, on this machine and on a cluster."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import horolog as h

SMALL: dict[str, Any] = {
    "sweep": {"name": "python", "sets": 60, "block": 20, "tests": ["edf-qpa", "rm-hyperbolic"]},
    "generator": {"tasks": [3, 6], "utilisation": [0.6, 0.75, 0.9]},
}


def rows(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("rows/*/*.parquet")}


def test_rows_are_those_of_the_command(tmp_path: Path, command: str) -> None:
    estimate = h.sweep_estimate(SMALL, tmp_path / "python", workers=2)
    assert (estimate.blocks, estimate.missing_blocks, estimate.sets) == (18, 18, 360)
    assert not (tmp_path / "python").exists()
    result = h.sweep(SMALL, tmp_path / "python", workers=2)
    assert (result.computed, result.kept, result.is_complete, result.version) == (18, 0, True, h.__version__)
    file = tmp_path / "a.toml"
    file.write_bytes((tmp_path / "python" / "sweep.toml").read_bytes())
    told = subprocess.run(
        [command, "-q", "sweep", file, "--out", tmp_path / "command", "--format", "json"],
        check=True,
        capture_output=True,
    )
    assert rows(tmp_path / "python") == rows(tmp_path / "command")
    assert len(rows(tmp_path / "python")) == 18
    same = ("cells", "weighted", "blocks", "drawings", "generator")
    assert {key: result.data[key] for key in same} == {key: json.loads(told.stdout)[key] for key in same}
    again = h.sweep(file, str(tmp_path / "python"))
    assert (again.computed, again.kept) == (0, 18)
    assert again.ratio("edf-qpa") == 1.0
    assert 0 < again.ratio("rm-hyperbolic", tasks=6) < 1
    assert again.weighted[("tasks=3", "edf-qpa")] == 1.0
    assert "<svg" in again._repr_html_() and all(path.exists() for path in again.drawings)
    with pytest.raises(h.BadInput, match="^test: "):
        again.ratio("edf-qpa", tasks=4)


def test_rows_name_the_seed_that_draws_their_sets_again(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet", reason="SKIPPED: pyarrow is not installed, so no rows are read")
    h.sweep(SMALL, tmp_path / "out")
    for path in sorted(tmp_path.glob("out/rows/*/*.parquet"))[:6]:
        row = arrow.read_table(path).to_pylist()[1]
        sets = h.generate(
            row["sets"], seed=row["block_seed"], tasks=row["tasks"], utilisation=row["utilisation"]
        )
        found = bytes(h.batch(sets, [row["test"]]).values)
        assert (row["test"], found.count(1), found.count(255)) == ("rm-hyperbolic", row["meets"], row["unknown"])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"source": 7}, "source"),
        ({"source": "none.toml"}, "source"),
        ({"source": {}}, "the file|\\[sweep\\]|error"),
        ({"source": {"sweep": {"sets": math.nan}}}, "source"),
        ({"out": 7}, "out"),
        ({"out": b"x"}, "out"),
        ({"out": "a\0b"}, "out"),
        ({"workers": -1}, "workers"),
        ({"workers": 1.5}, "workers"),
        ({"workers": True}, "workers"),
        ({"workers": 2**70}, "workers"),
        ({"drop_others": 1}, "drop_others"),
        ({"cluster": 7}, "cluster"),
        ({"patience_s": math.inf}, "patience_s"),
    ],
)
def test_bad_arguments_are_named(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    words: dict[str, Any] = {"source": SMALL, "out": tmp_path / "out", **change}
    with pytest.raises(h.BadInput, match=named):
        h.sweep(words.pop("source"), words.pop("out"), **words)


def test_ctrl_c_ends_the_work_and_the_same_call_goes_on(tmp_path: Path) -> None:
    long = {**SMALL, "sweep": {**SMALL["sweep"], "sets": 200_000, "block": 50}}
    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        h.sweep(long, tmp_path / "out", workers=1)
    timer.join()
    kept = len(rows(tmp_path / "out"))
    assert kept > 0
    time.sleep(0.2)
    assert len(rows(tmp_path / "out")) == kept, "nothing is computed any more"
    # The folder was given back.
    left = h.sweep_estimate(long, tmp_path / "out").missing_blocks
    assert left == 24_000 - kept


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers in one process group, which is gone afterwards."""
    pytest.importorskip("distributed", reason="SKIPPED: Dask is not installed, so no cluster is started")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    program = [sys.executable, "-m", "dask"]
    place = folder / "scheduler.json"
    words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place)]
    scheduler = subprocess.Popen([*program, *words], process_group=0, **quiet)
    all_processes = [scheduler]
    try:
        end = time.monotonic() + 60
        while not place.exists() or not place.read_text():
            assert time.monotonic() < end and scheduler.poll() is None, "the scheduler does not start"
            time.sleep(0.05)
        words = ["worker", "--scheduler-file", str(place), "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        words += ["--local-directory", str(folder / "dask")]
        for _ in range(workers):
            all_processes.append(
                subprocess.Popen(
                    [*program, *words, "--death-timeout", "60"], process_group=scheduler.pid, **quiet
                )
            )
        yield json.loads(place.read_text())["address"], all_processes
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(scheduler.pid, signal.SIGKILL)
        for one in all_processes:
            one.wait(timeout=30)
        with pytest.raises(ProcessLookupError):
            os.killpg(scheduler.pid, 0)


def test_a_cluster_with_a_killed_worker_gives_the_same_rows(tmp_path: Path) -> None:
    wide = {**SMALL, "sweep": {**SMALL["sweep"], "sets": 4_000}}
    here = h.sweep(wide, tmp_path / "here")
    with cluster(tmp_path, 3) as (address, processes):

        def kill() -> None:
            end = time.monotonic() + 120
            while len(rows(tmp_path / "there")) < 20 and time.monotonic() < end:
                time.sleep(0.01)
            processes[1].kill()

        killer = threading.Thread(target=kill)
        killer.start()
        there = h.sweep(wide, tmp_path / "there", cluster=address, patience_s=60)
        killer.join()
        assert processes[1].wait(timeout=10) == -signal.SIGKILL
    assert there.computed == here.computed == 1_200
    assert rows(tmp_path / "there") == rows(tmp_path / "here")


def test_the_command_uses_a_cluster_too(tmp_path: Path, command: str) -> None:
    here = h.sweep(SMALL, tmp_path / "here")
    file = here.folder / "sweep.toml"
    environment = {**os.environ, "HOROLOG_PYTHON": sys.executable}

    def told(address: str) -> "subprocess.CompletedProcess[str]":
        words = [command, "-q", "sweep", str(file), "--out", str(tmp_path / "there"), "--cluster", address]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    with cluster(tmp_path, 1) as (address, _):
        done = told(address)
        assert done.returncode == 0, done.stderr
        assert "18 blocks computed, 0 were there" in done.stderr
        assert "0 blocks computed, 18 were there" in told(address).stderr
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    environment["HOROLOG_PYTHON"] = "/bin/false"
    assert "has no package `horolog`" in told("tcp://127.0.0.1:9").stderr


def test_a_cluster_that_goes_away_is_undecided_and_what_it_did_is_kept(tmp_path: Path) -> None:
    wide = {**SMALL, "sweep": {**SMALL["sweep"], "sets": 20_000}}
    with cluster(tmp_path, 1) as (address, processes):

        def kill() -> None:
            end = time.monotonic() + 120
            while len(rows(tmp_path / "there")) < 20 and time.monotonic() < end:
                time.sleep(0.01)
            processes[0].kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(h.Undecided, match="^cluster: "):
            h.sweep(wide, tmp_path / "there", cluster=address, patience_s=5)
        killer.join()
    kept = len(rows(tmp_path / "there"))
    assert kept >= 20
    assert h.sweep_estimate(wide, tmp_path / "there").missing_blocks == 6_000 - kept
    with pytest.raises(h.BadInput, match="^cluster: no scheduler answers"):
        h.sweep(wide, tmp_path / "there", cluster="tcp://127.0.0.1:9", patience_s=1)
