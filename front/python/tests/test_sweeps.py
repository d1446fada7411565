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
    assert 0 < estimate.processor_s_low <= estimate.processor_s <= estimate.processor_s_high
    assert estimate.wall_s_high == estimate.processor_s_high / 2 and 18 <= estimate.tried_sets <= 360
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


def test_tests_of_systems_and_rows_of_sets_and_the_systems_themselves(tmp_path: Path) -> None:
    keys = {"tasks": 4, "utilisation": 0.9, "segments": 3, "processors": 2, "longest_period": "50 ms"}
    words = ["fp-deferred", "global-edf", "fp-non-preemptive"]
    grid = {"sweep": {"name": "systems", "sets": 30, "rows": "sets", "tests": words}, "generator": keys}
    result = h.sweep(grid, tmp_path / "out")
    assert result.ratio("global-edf") > result.ratio("fp-deferred") >= 0
    assert result.page.read_text().startswith("<!doctype html>")
    one = {key: keys[key] for key in ("tasks", "utilisation", "segments", "longest_period")}
    made = h.generate_systems(one, "fp-deferred", 30, seed=7)
    assert made[3].text == h.generate_systems(one, "fp-deferred", 1, seed=7, first=3)[0].text
    drawn = h.generate(30, tasks=4, utilisation=0.9, longest_period_ns=50_000_000, seed=7)
    bounds = {task.name: task.response_ns for task in made[0].analyze(machine="none").tasks}
    assert bounds.keys() == {"t1", "t2", "t3", "t4"} and all(
        bound is None or bound >= wcet for bound, wcet in zip(bounds.values(), drawn.wcet.tolist()[0], strict=True)
    )
    arrow = pytest.importorskip("pyarrow.parquet", reason="SKIPPED: pyarrow is not installed, so no rows are read")
    rows = arrow.read_table(next(tmp_path.glob("out/rows/*/*.parquet"))).to_pylist()
    assert len(rows) == 90 and {row["segments"] for row in rows} == {3}
    again = h.generate_systems(one, "fp-deferred", 30, seed=rows[0]["block_seed"])
    for row in rows[::3]:
        holds = again[row["set"]].analyze(machine="none").holds
        assert (row["test"], row["verdict"] == "meets") == ("fp-deferred", holds)


def test_what_a_system_of_a_test_has_beside_its_tasks() -> None:
    locks = {"resources": 2, "access": 0.9, "requests": 1, "shortest_section": "1 us", "longest_section": "9 us"}
    plain = {"tasks": 6, "utilisation": 0.9}
    for keys, test, words in (
        ({"processors": 4, "cluster": 2}, "clustered-edf", ("cpus = [2, 3]", 'order = "edf"')),
        ({**locks, "processors": 2, "reads": 1}, "fp-phase-fair", ('protocol = "phase-fair"', 'access = "read"')),
        ({**locks, "nesting": 1}, "fp-ceiling", ('protocol = "ceiling"',)),
        ({"high": 0.5, "high_factor": 1.1, "low_factor": 0.5}, "fp-amc-degraded", ("[[mode.task]]",)),
    ):
        made = h.generate_systems({**plain, **keys}, test, 10, seed=3)
        assert all(any(word in system.text for system in made) for word in words), test
        assert {system.analyze(machine="none").schedulable for system in made} <= {"yes", "no", "unknown"}


@pytest.mark.parametrize(
    ("generator", "test", "words", "named"),
    [
        (7, "fp-deferred", {}, "^generator: "),
        ({"utilisation": 0.5}, "fp-deferred", {}, "needs `segments`"),
        ({"utilisation": [0.5, 0.6], "segments": 2}, "fp-deferred", {}, "^generator: give one value"),
        ({"utilisation": 0.5}, "edf-qpa", {}, "^test: `edf-qpa` makes no systems"),
        ({"utilisation": 0.5}, "edf", {}, "no test is called `edf`"),
        ({"utilisation": 0.5, "segments": 2}, "fp-deferred", {"count": 0}, "^count: "),
        ({"utilisation": 0.5, "segments": 2}, "fp-deferred", {"seed": -1}, "^seed: "),
        (
            {"utilisation": 1.9, "tasks": 2, "method": "uunifast", "processors": 2},
            "global-edf",
            {"count": 50},
            "longer than its deadline",
        ),
    ],
)
def test_bad_words_of_systems_are_named(generator: Any, test: str, words: dict[str, int], named: str) -> None:
    with pytest.raises(h.BadInput, match=named):
        h.generate_systems(generator, test, **{"count": 1, **words})


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


@contextlib.contextmanager
def little_memory(limit: int) -> Iterator[Path]:
    """A memory cgroup whose processes may take so many bytes more."""
    root, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
    if not (root / name).exists():
        root, name = Path("/sys/fs/cgroup"), "memory.max"
    group = root / f"horolog-workers-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"SKIPPED: no memory cgroup can be made here, so no worker runs out of memory: {error}")
    try:
        try:
            (group / name).write_text(str(limit))
        except OSError as error:
            pytest.skip(f"SKIPPED: no memory can be limited here, so no worker runs out of it: {error}")
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def test_a_worker_without_memory_is_killed_and_the_others_go_on(tmp_path: Path) -> None:
    # A block takes some 30 MB.
    wide = {**SMALL, "sweep": {**SMALL["sweep"], "sets": 200_000, "block": 50_000, "rows": "sets"}}
    here = h.sweep(wide, tmp_path / "here")
    with little_memory(8 << 20) as group, cluster(tmp_path, 2) as (address, processes):
        dask = pytest.importorskip("distributed", reason="SKIPPED: Dask is not installed")
        with dask.Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        group.write_text(str(processes[1].pid))
        there = h.sweep(wide, tmp_path / "there", cluster=address, patience_s=60)
        assert processes[1].wait(timeout=30) == -signal.SIGKILL
    assert there.computed == here.computed == 24
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
