"""Events of Python programs: recorded and read back, and without effect where nothing is recorded."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import horolog as h
from conftest import ROOT

KINDS = """
import horolog as h, numpy
class Broken:
    def __repr__(self): raise RuntimeError("no repr")
h.trace.event("all/kinds", on=True, count=(3, "items"), delta=-7, load=(0.25, "%"), name="gr\\u00f6\\u00dfe", big=2**63, huge=2**64,
              none=None, small=numpy.int8(-3), single=numpy.float32(1.5), eleventh=1)
h.trace.event("odd/values", pair=(1, 2), broken=Broken(), half="\\ud800", long="x" * 300)
h.trace.event("no/arguments")
h.trace.event("same", value=1); h.trace.event("same", value=1.0); h.trace.event("same", value=(1, "ms"))
h.trace.counter("queue/length", 3, unit="items")
h.trace.counter("queue/length", 2.5, unit=None)
span = h.trace.span("job", number=4)
try:
    with span: raise ValueError
except ValueError: pass
print(h.trace.is_recorded())
"""


@pytest.fixture(autouse=True)
def _command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", command)


def recorded(tmp_path: Path, program: str, *words: str, **options: Any) -> h.Recording:
    file = tmp_path / "program.py"
    file.write_text(program)
    return h.record([sys.executable, file, *words], tmp_path / "a.trace", **options)


def user(recording: h.Recording) -> list[h.Record]:
    assert (recording.lost, recording.incomplete, recording.status) == (0, None, 0), (recording.data, recording.log)
    found = [record for record in recording.trace() if record.kind == "user"]
    assert len(found) == recording.events
    return found


def test_every_kind_of_value_comes_back(tmp_path: Path) -> None:
    recording = recorded(tmp_path, KINDS)
    assert recording.output == b"True\n"
    records = user(recording)
    assert [(record.event, record.arguments) for record in records] == [
        (
            "all/kinds",
            (
                ("on", True), ("count [items]", 3), ("delta", -7), ("load [%]", 0.25), ("name", "größe"), ("big", 2**63),
                ("huge", "18446744073709551616"), ("none", "None"), ("small", -3), ("single", 1.5),
            ),
        ),
        ("odd/values", (("pair", "(1, 2)"), ("broken", "?"), ("half", "\ufffd\ufffd\ufffd"), ("long", "x" * 256 + "…"))),
        ("no/arguments", ()),
        ("same", (("value", 1),)),
        ("same", (("value", 1.0),)),
        ("same", (("value [ms]", 1),)),
        ("queue/length/counter", (("value [items]", 3),)),
        ("queue/length/counter", (("value", 2.5),)),
        ("job/begin", (("number", 4),)),
        ("job/end", ()),
    ]  # fmt: skip
    times = [record.time_ns for record in records]
    assert times == sorted(times) and len({record.thread for record in records}) == 1


def test_nothing_happens_where_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(KINDS)
    alone = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (alone.stdout, alone.stderr) == ("False\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]
    # The recorder runs, but asks for others.
    recording = recorded(tmp_path, KINDS, events=["queue/*"])
    assert (recording.output, recording.events) == (b"False\n", 0)


def test_threads_and_forked_children_are_recorded(tmp_path: Path) -> None:
    program = """
import os, sys, threading, horolog as h
def work(thread):
    for number in range(1_000): h.trace.event("work", thread=thread, number=number)
threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
for thread in threads: thread.start()
child = os.fork()
if child == 0:
    with h.trace.span("child"): pass
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for thread in threads: thread.join()
h.trace.event("parent", child=child)
"""
    records = user(recorded(tmp_path, program))
    work = [dict(record.arguments or ()) | {"tid": record.thread} for record in records if record.event == "work"]
    for thread in range(4):
        numbers = [one["number"] for one in work if one["thread"] == thread]
        assert numbers == list(range(1_000))
        assert len({one["tid"] for one in work if one["thread"] == thread}) == 1
    by_name = {record.event: record for record in records}
    child = dict(by_name["parent"].arguments or ())["child"]
    assert by_name["child/begin"].process == by_name["child/end"].process == child != by_name["parent"].process


def test_the_example_is_recorded(tmp_path: Path, command: str) -> None:
    example = ROOT / "examples/python/camera.py"
    alone = subprocess.run([sys.executable, example, "3"], capture_output=True, text=True, check=True)
    assert alone.stdout == "3 frames planned, not recorded\n"
    recording = h.record([sys.executable, example, "7"], tmp_path / "a.trace")
    assert recording.output == b"7 frames planned, recorded\n"
    records = user(recording)
    for frame in range(7):
        about = [record for record in records if ("frame", frame) in (record.arguments or ())]
        assert [record.event for record in about] == ["camera/frame", "plan/begin"]
        assert about[0].thread != about[1].thread and about[0].time_ns <= about[1].time_ns
    told = subprocess.run([command, "trace", "stats", recording.path], capture_output=True, text=True, check=True)
    assert "plan" in told.stdout and "camera/waiting/counter" in told.stdout


def test_names_that_are_made_anew_do_not_fill_the_memory(tmp_path: Path) -> None:
    program = "import horolog as h\nfor number in range(4_100): h.trace.event(f'name/{number}')\n"
    recording = recorded(tmp_path, program)
    names = [record.event for record in recording.trace()]
    assert names[:2] == ["name/0", "name/1"] and "name/4099" not in names
    assert names.count("python/too-many-names") + recording.lost >= 100


def test_a_process_that_waits_is_attached_to(tmp_path: Path) -> None:
    program = """
import sys, horolog as h
print("ready", h.trace.is_recorded(), flush=True)
for line in sys.stdin:
    h.trace.event("line", text=line.strip())
    print(h.trace.is_recorded(), flush=True)
"""
    words = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "HOROLOG_TRACE": "listen"}, **words
    ) as process:  # type: subprocess.Popen[str]
        assert process.stdin is not None and process.stdout is not None

        def said(line: str) -> str:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return process.stdout.readline()

        assert process.stdout.readline() == "ready False\n"
        assert said("before") == "False\n"
        with h.attach(process.pid, tmp_path / "a.trace") as recordings:
            assert recordings == []
            assert said("during") == "True\n"
        # The process notices by itself that its recorder is gone.
        end = time.monotonic() + 20
        while said("after") == "True\n":
            assert time.monotonic() < end, "the trigger stays enabled"
            time.sleep(0.02)
        process.stdin.close()
        assert process.wait() == 0
    (recording,) = recordings
    assert recording.status is None and recording.data["stopped"]
    assert [record.arguments for record in recording.trace() if record.kind == "user"] == [(("text", "during"),)]
    with pytest.raises((h.NotAllowed, h.BadInput)), h.attach(process.pid, tmp_path / "b.trace"):
        raise AssertionError("nothing is recorded")


def test_how_a_program_ends_is_told(tmp_path: Path) -> None:
    for text, status in (("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 15)", -15)):
        assert recorded(tmp_path, text).status == status
    with pytest.raises(h.BadInput, match="none/such"):
        h.record(["/none/such"], tmp_path / "a.trace")


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    for bad in (7, None, b"x", ["x"]):
        with pytest.raises(h.BadInput, match="^name: "):
            h.trace.event(bad)  # type: ignore[arg-type]
        with pytest.raises(h.BadInput, match="^name: "):
            h.trace.span(bad)  # type: ignore[arg-type]
        with pytest.raises(h.BadInput, match="^name: "):
            h.trace.counter(bad, 1)  # type: ignore[arg-type]
    for bad in ("program", b"program", [], [7], ["a\0b"], ["x", 7], ["x", "a\0b"], 7, None):
        with pytest.raises(h.BadInput, match="^command"):
            h.record(bad, tmp_path / "a.trace")  # type: ignore[arg-type]
    for argument, bad in [("events", "x"), ("events", [7]), ("duration", 7), ("kernel", 1), ("block", None)]:
        with pytest.raises(h.BadInput, match=f"^{argument}"):
            h.record(["true"], tmp_path / "a.trace", **{argument: bad})
    for bad in (0, -1, 1.5, True, 2**40, "x", np.array([1, 2])):
        with pytest.raises(h.BadInput, match="^pid"), h.attach(bad, tmp_path / "a.trace"):  # type: ignore[arg-type]
            pass


ENDED = """
import horolog as h, sys
class Ended:
    def __repr__(self): raise KeyboardInterrupt
class Left:
    def __index__(self): raise SystemExit(7)
try:
    h.trace.event("ended", value=Ended())
    print("alone")
except KeyboardInterrupt:
    print("interrupted")
with h.trace.span("left", value=Left()):
    print("went on")
"""


def test_what_ends_a_program_in_a_value_goes_on(tmp_path: Path) -> None:
    recording = recorded(tmp_path, ENDED)
    # Only where it is recorded is the value asked for its text.
    assert (recording.output, recording.status) == (b"interrupted\n", 7)
    alone = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, check=True)
    assert alone.stdout == b"alone\nwent on\n"
