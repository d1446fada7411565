"""The Parquet export, read by pyarrow and by DuckDB."""

import json
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import HIGH, LOW


@pytest.fixture(scope="module")
def file(converted):
    return converted("sim.parquet")


def test_columns_have_the_documented_types(file):
    schema = pq.read_schema(file)
    fixed = ["time_ns", "kind", "cpu", "task", "job", "value", "extra"]
    assert schema.names == [
        *fixed,
        "event",
        "thread",
        "process",
        "comm",
        "prev_thread",
        "next_thread",
        "words",
        "values",
        "texts",
        "names",
    ]
    assert schema.field("time_ns").type == pa.uint64()
    assert schema.field("kind").type == pa.string()
    assert schema.field("cpu").type == pa.int32()
    assert schema.field("task").type == pa.string()
    assert schema.field("comm").type == pa.string()
    assert schema.field("prev_thread").type == schema.field("next_thread").type == pa.uint64()
    assert schema.field("texts").type.value_type == schema.field("names").type.value_type == pa.string()
    assert schema.field("job").nullable and not schema.field("value").nullable


def test_the_header_is_in_the_metadata(file):
    header = json.loads(pq.read_schema(file).metadata[b"horolog.trace"])
    assert header["schema"] == "horolog.trace/1"
    assert header["backend"] == "sim"
    assert header["tasks"] == ["high", "low"]
    assert "two loops" in header["system"]


def test_rows_are_the_records(file):
    rows = pq.read_table(file).to_pylist()
    completions = [(row["task"], row["time_ns"], row["value"]) for row in rows if row["kind"] == "completion"]
    assert completions == [
        ("high", HIGH[0][1], 2_000_000),
        ("high", HIGH[1][1], 2_000_000),
        ("low", LOW[1][1], 9_000_000),
    ]
    assert [row["time_ns"] for row in rows] == sorted(row["time_ns"] for row in rows)
    assert {row["cpu"] for row in rows} == {0}


def test_duckdb_reads_what_pyarrow_reads(file):
    query = f"select task, time_ns, value from '{file}' where kind = 'completion' order by time_ns"
    assert duckdb.sql(query).fetchall() == [
        ("high", HIGH[0][1], 2_000_000),
        ("high", HIGH[1][1], 2_000_000),
        ("low", LOW[1][1], 9_000_000),
    ]
    # A simulation has no threads.
    named = f"select count(*) from '{file}' where comm is not null or prev_thread is not null or next_thread is not null"
    assert duckdb.sql(named).fetchall() == [(0,)]


@pytest.fixture(scope="module")
def recorded(horolog, tmp_path_factory):
    """A recording of a program that sleeps a hundred times, with the kernel's switches; and its thread's number."""
    folder = tmp_path_factory.mktemp("recorded")
    trace, out = folder / "t.hrt", folder / "t.parquet"
    sleeper = """import sys, threading, time
open(sys.argv[1], "w").write(str(threading.get_native_id()))
for _ in range(100): time.sleep(0.002)"""
    number = folder / "thread"
    words = [horolog, "trace", "record", "--kernel", "-o", trace, "--", sys.executable, "-c", sleeper, number]
    recording = subprocess.run(words, capture_output=True, text=True, check=False)
    assert recording.returncode == 0, recording.stderr
    subprocess.run([horolog, "trace", "convert", trace, out], check=True, capture_output=True)
    if " 0 records of the kernel" in recording.stderr:
        pytest.skip(f"the kernel may not be recorded here: {recording.stderr}")
    return out, int(number.read_text())


def test_kernel_records_name_their_threads(recorded):
    recorded, thread = recorded

    def asked(query):
        return duckdb.sql(query.replace("FILE", f"'{recorded}'")).fetchall()

    # On a busy machine other threads are woken more often than the sleeper.
    [(comm, woken)] = asked(f"""
        select comm, count(*) from FILE where kind = 'kernel-wakeup' and thread = {thread} group by comm""")
    assert comm and woken >= 100
    [(got, lost)] = asked(f"""
        select count(*) filter (next_thread = {thread}), count(*) filter (prev_thread = {thread})
        from FILE where kind = 'kernel-switch'""")
    # Some kernels hide switches: then each is on record as a loss.
    [(hidden,)] = asked("select coalesce(sum(value), 0)::bigint from FILE where kind = 'lost'")
    assert got + hidden >= 100 and lost + hidden >= 100 and abs(got - lost) <= 4 + hidden
    # The row of a switch is about the thread that gets the processor.
    about = f"select distinct thread, comm from FILE where kind = 'kernel-switch' and next_thread = {thread}"
    assert asked(about) == ([(thread, comm)] if got else [])
    rows = pq.read_table(recorded).to_pylist()
    switches = [row for row in rows if row["kind"] == "kernel-switch"]
    assert all(row["prev_thread"] is not None and row["next_thread"] == row["thread"] for row in switches)
    assert all(row["prev_thread"] != row["next_thread"] for row in switches)
    others = [row for row in rows if row["kind"] != "kernel-switch"]
    assert all(row["prev_thread"] is None and row["next_thread"] is None for row in others)
