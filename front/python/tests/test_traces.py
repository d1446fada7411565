"""Reading traces: NumPy and Arrow against what the command converts, records one by one, and damage."""

import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import horolog as h
from conftest import ROOT

USER = ROOT / "front/python/tests/user-events.trace"
KERNEL = ROOT / "tests/lies/traces/a-program-that-ends.trace"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "a.trace"
    h.load(ROOT / "examples/quick-start/system.toml").simulate("2 s", seed=3, trace=path)
    return path


def rows(table: Any) -> list[dict[str, Any]]:
    return [{key: None if value != value else value for key, value in row.items()} for row in table.to_pylist()]


@pytest.mark.parametrize("which", ["simulated", "kernel", "user"])
def test_arrow_is_what_the_command_converts(which: str, simulated: Path, command: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed, so no tables are read")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = {"simulated": simulated, "kernel": KERNEL, "user": USER}[which]
    subprocess.run([command, "-q", "trace", "convert", path, tmp_path / "a.parquet"], check=True)
    wanted = parquet.read_table(tmp_path / "a.parquet")
    trace = h.read_trace(path)
    found = pa.table(trace)
    assert found.column_names == wanted.column_names and found.num_rows == wanted.num_rows == trace.count
    # NaN of a text argument is equal to itself here.
    shown = [str(row) for row in rows(found)]
    assert shown == [str(row) for row in rows(wanted)]
    for name in ("time_ns", "cpu", "job", "value", "extra", "thread", "words"):
        assert found.schema.field(name).type == wanted.schema.field(name).type, name
    assert found.schema.metadata[b"horolog.trace"] == parquet.read_schema(tmp_path / "a.parquet").metadata[b"horolog.trace"]
    # Whatever the size of batches.
    parts = [pa.record_batch(batch) for batch in trace.batches(rows=17)]
    assert {part.num_rows for part in parts[:-1]} == {17}
    assert [str(row) for part in parts for row in rows(part)] == shown


@pytest.mark.parametrize("path", [KERNEL, USER], ids=["kernel", "user"])
def test_records_and_columns_are_the_same(path: Path) -> None:
    trace = h.read_trace(path)
    records = list(trace)
    assert len(records) == trace.count
    batches = list(trace.batches(rows=1_000))
    assert sum(map(len, batches)) == trace.count
    for name in ("time_ns", "cpu", "value", "extra"):
        column = np.concatenate([np.asarray(getattr(batch, name)) for batch in batches])
        assert column.tolist() == [getattr(record, name) for record in records]
    kind = np.concatenate([np.asarray(batch.kind) for batch in batches])
    task = np.concatenate([np.asarray(batch.task) for batch in batches])
    job = np.concatenate([np.asarray(batch.job) for batch in batches])
    assert (kind.dtype, task.dtype, job.dtype) == (np.int8, np.int32, np.uint64)
    assert [h.KINDS[code] for code in kind] == [record.kind for record in records]
    assert [None if code < 0 else trace.tasks[code] for code in task] == [record.task for record in records]
    assert [None if one == h.NO_JOB else one for one in job.tolist()] == [record.job for record in records]
    with pytest.raises(TypeError):
        batches[0].time_ns[0] = 1


def test_user_events_carry_their_arguments() -> None:
    trace = h.read_trace(USER)
    assert trace.backend == "session" and trace.tasks == () and trace.lost == 0 and trace.end_ns == 2_000
    assert trace.threads == (h.Thread(71, "producer", None, 70), h.Thread(72, "consumer", None, 70))
    first, _, second, _, third = list(trace)[:5]
    assert (first.event, first.kind, first.thread, first.process, first.comm) == ("all/kinds", "user", 71, 70, "producer")
    assert first.arguments == (
        ("on", False),
        ("count [B]", 0),
        ("delta", -7),
        ("load [%]", 0.0),
        ("at", 4096),
        ("name", "größe 0"),
    )
    assert (second.event, second.arguments) == ("no/arguments", ())
    assert third.arguments is not None
    assert dict(third.arguments) == {
        "on": True, "count [B]": 2 << 57, "delta": -9, "load [%]": 0.25, "at": 4098, "name": "größe 2",
    }  # fmt: skip
    switch = [record for record in trace if record.kind == "kernel-switch"][0]
    assert (switch.prev_thread, switch.next_thread, switch.thread, switch.event) == (71, 72, 72, None)


@pytest.mark.parametrize("name", ["polars", "pandas", "duckdb"])
def test_data_frames_take_a_trace(name: str) -> None:
    module: Any = pytest.importorskip(name, reason=f"SKIPPED: {name} is not installed, so it reads no trace")
    trace = h.read_trace(KERNEL)
    wanted = sum(record.kind == "kernel-switch" for record in trace)
    if name == "polars":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert int((module.DataFrame(trace)["kind"] == "kernel-switch").sum()) == wanted
        return
    table = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed").table(trace)
    if name == "pandas":
        assert int((table.to_pandas()["kind"] == "kernel-switch").sum()) == wanted
    else:
        records = table
        found = module.sql("select count(*) from records where kind = 'kernel-switch'")
        assert records is table
        assert found.fetchall() == [(wanted,)]


def test_a_trace_that_was_cut_off_is_refused_behind_its_last_record(tmp_path: Path) -> None:
    long = ROOT / "tests/lies/traces/a-job-that-waits-for-ever.trace"
    whole, path = long.read_bytes(), tmp_path / "cut.trace"
    path.write_bytes(whole[: len(whole) * 7 // 10])
    trace = h.read_trace(path)
    assert (trace.count, trace.lost, trace.end_ns, trace.threads) == (None, None, None, ())
    seen = []
    with pytest.raises(h.BadInput, match="(?s)^the trace is damaged: the trace was cut off.*keep") as caught:
        for record in trace:
            seen.append(record)
    assert caught.value.help is not None and len(seen) > 0
    kept = h.read_trace(path, damaged="keep")
    assert list(kept) == seen == list(h.read_trace(long))[: len(seen)]
    assert "cut off" in (kept.damage() or "") and h.read_trace(long).damage() is None
    pa = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed")
    with pytest.raises(pa.ArrowException, match="cut off"):
        pa.table(trace)
    assert pa.table(kept).num_rows == len(seen)


def test_what_is_no_trace_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.trace").write_bytes(b"HOROLOG?" * 9)
    for path, why in ((tmp_path / "no.trace", "not a horolog trace"), (tmp_path / "none", "none")):
        with pytest.raises(h.BadInput, match=why):
            h.read_trace(path)
    for path in (7, b"x", "a\0b", "", None):
        with pytest.raises(h.BadInput, match="^path: "):
            h.read_trace(path)  # type: ignore[arg-type]
    with pytest.raises(h.BadInput, match="^damaged: "):
        h.read_trace(KERNEL, damaged="drop")
    for bad in (0, -1, 1.5, True, 2**40):
        with pytest.raises(h.BadInput, match="^rows: "):
            list(h.read_trace(KERNEL).batches(bad))  # type: ignore[arg-type]
