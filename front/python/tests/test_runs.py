"""Verifying, running and closing the loop: what Python says is what the command says."""

import html
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import horolog as h
from conftest import ROOT
from test_same_engine import FILES

SIMULATED = [path for path in FILES if path.name == "system.toml" and "broken" not in path.parts]
QUICK = ROOT / "examples/quick-start/system.toml"


@pytest.fixture(autouse=True)
def named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", command)


def told(command: str, *words: object) -> tuple[int, Any]:
    line = [command, *map(str, words), "--format", "json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("path", SIMULATED, ids=[str(path.relative_to(ROOT)) for path in SIMULATED])
def test_verify_says_the_same(command: str, path: Path, tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    try:
        system = h.load(path)
        system.simulate("300 ms", seed=5, trace=trace)
    except h.HorologError:
        pytest.skip("this example is not simulated")
    status, said = told(command, "verify", path, trace)
    found = h.verify(system, trace)
    assert found.data == said and found.closing.exit == status
    assert [task.name for task in found.tasks] == [task["name"] for task in said["tasks"]]
    assert len(found.findings) == len(said["findings"]) and found.records == said["records"]
    assert pickle.loads(pickle.dumps(found)) == found and "<table>" in found._repr_html_()


def test_verify_judges_by_what_is_asked(command: str) -> None:
    path = ROOT / "tests/lies/traces/a-wcet-that-is-too-small.trace"
    system = h.System.parse(h.read_trace(path).system)
    found = h.verify(system, path, machine="none", gate={"model"}, coverage=12.5, strict=True)
    file = Path(path.name + ".toml")
    file.write_text(system.text)
    try:
        words = ("--machine", "none", "--gate", "model", "--coverage", "12.5%", "--strict")
        status, said = told(command, "verify", file, path, *words)
    finally:
        file.unlink()
    assert found.data == said and found.closing.exit == status == 1
    assert found.findings[0].kind == "model-violated" and found.closing.model == "no"
    with pytest.raises(h.BadInput, match="another system|other system|no task|tasks"):
        h.verify(ROOT / "examples/edf/system.toml", path)


def test_loop_says_the_same(command: str, tmp_path: Path) -> None:
    words = ("--for", "100 ms", "--machine", "none", "--best-effort", "--seed", "3", "--out", tmp_path / "command")
    for path in (QUICK, ROOT / "examples/edf/system.toml"):
        _, said = told(command, "loop", path, *words)
        found = h.loop(path, "100 ms", machine="none", best_effort=True, seed=3, out=tmp_path / "python")
        # What is measured differs from run to run.
        same = ("schema", "analysis", "costs", "analysis_without_costs", "simulated", "simulated_verification", "not_run")
        assert {key: found.data.get(key) for key in same} == {key: said.get(key) for key in same}
        assert found.data.keys() - {"conflicts"} == said.keys() - {"conflicts"}
        assert found.data["report"] == str(tmp_path / "python" / "report.html")
        assert found.page == (tmp_path / "python" / "report.html").read_bytes()
        assert (found.data["measured"] is None) == (said["measured"] is None)
        measured = found.data["measured"]
        for place, task in enumerate(found.tasks):
            seen = measured["tasks"][place]["response_ns_max"] if measured else None
            assert task.name == said["analysis"]["tasks"][place]["name"] and task.measured_ns_max == seen
        if measured:
            trace = h.read_trace(tmp_path / "python" / "run.trace")
            assert trace.backend.startswith("linux") and trace.count == measured["events"]
    page = found.report(tmp_path / "x.html")
    assert page.read_bytes() == found.page and b"<html" in found.page[:200].lower()
    shown = found._repr_html_()
    assert pickle.loads(pickle.dumps(found)) == found and "measured" in shown
    inside = re.search('<iframe [^>]*sandbox="allow-scripts allow-downloads"[^>]* srcdoc="([^"]*)"></iframe>$', shown)
    assert inside and html.unescape(inside[1]) == found.page.decode()


def test_run_says_the_same(command: str, tmp_path: Path) -> None:
    words = ("--for", "50 ms", "--machine", "none", "--best-effort", "--seed", "1")
    _, said = told(command, "run", QUICK, *words)
    system = h.System.parse(QUICK.read_text())
    found = h.run(system, "50 ms", machine="none", best_effort=True, trace=tmp_path / "a.trace")
    assert found.data.keys() >= said.keys() - {"conflicts"} and found.horizon_ns == 50_000_000
    assert [(task.name, task.jobs) for task in found.tasks] == [(task["name"], task["jobs"]) for task in said["tasks"]]
    assert h.read_trace(tmp_path / "a.trace").tasks == tuple(system.tasks)


def test_errors_are_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(QUICK, tmp_path / "a.toml")
    system = h.load(tmp_path / "a.toml")
    again = pickle.loads(pickle.dumps(system))
    (tmp_path / "a.toml").write_text("changed")
    for one in (system, again):
        with pytest.raises(h.BadInput, match="^system: its file .* has changed"):
            h.run(one, "1 ms")
    with pytest.raises(h.BadInput, match="^duration: .*parsec") as caught:
        h.run(h.load(QUICK), "1 parsec")
    assert caught.value.exit == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(h.BadInput, match="cannot write|cannot make"):
        h.loop(QUICK, "1 ms", machine="none", out=tmp_path / "file")
    for name, why in (("/none/such", "which is no program"), ("/bin/true", "is no horolog")):
        monkeypatch.setenv("HOROLOG_COMMAND", name)
        with pytest.raises(h.NotAllowed, match=why) as refused:
            h.run(QUICK, "1 ms")
        assert refused.value.exit == 3 and "HOROLOG_COMMAND" in (refused.value.help or "")


def children(pid: int) -> list[int]:
    return [int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()]


def test_ctrl_c_ends_the_run_and_waits_for_what_it_puts_back(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"

    def interrupt() -> None:
        end = time.monotonic() + 30
        while not trace.exists() and time.monotonic() < end:
            time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        h.run(QUICK, "60 s", machine="none", best_effort=True, trace=trace)
    killer.join()
    assert children(os.getpid()) == []
    # It ended in order: the trace has its foot.
    assert h.read_trace(trace).count is not None and time.monotonic() - begun < 50


def test_a_kill_of_python_ends_the_run(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    script = f"import horolog as h; h.run({str(QUICK)!r}, '60 s', machine='none', best_effort=True, trace={str(trace)!r})"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not trace.exists() and time.monotonic() < end:
        time.sleep(0.02)
    [run] = children(process.pid)
    process.kill()
    process.wait()
    # Each part has its time, also beside other work.
    end = time.monotonic() + 30
    while Path(f"/proc/{run}").exists() and time.monotonic() < end:
        # One that has ended may wait for an init that does not collect it.
        if Path(f"/proc/{run}/stat").read_text().rsplit(") ", 1)[1].startswith("Z"):
            break
        time.sleep(0.02)
    assert time.monotonic() < end, "the run goes on without its caller"
    # The process of the run itself writes the end.
    end = time.monotonic() + 30
    while h.read_trace(trace).count is None and time.monotonic() < end:
        time.sleep(0.02)
    assert h.read_trace(trace).count is not None
