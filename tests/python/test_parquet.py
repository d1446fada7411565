"""The Parquet export, read by pyarrow."""

import json

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
    assert schema.names == [*fixed, "event", "thread", "process", "words", "values"]
    assert schema.field("time_ns").type == pa.uint64()
    assert schema.field("kind").type == pa.string()
    assert schema.field("cpu").type == pa.int32()
    assert schema.field("task").type == pa.string()
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
