"""The pytest plugin, in runs of pytest of its own."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conftest import ROOT

HEAD = """
import horolog as h

def system(wcet):
    return h.System(system={"name": "robot"}, task=[
        {"name": "control", "period": "10 ms", "wcet": "2 ms", "priority": 90},
        {"name": "camera", "period": "40 ms", "deadline": "20 ms", "wcet": wcet, "priority": 50},
    ])
"""
UNDECIDED = """
def test_undecided(horolog):
    horolog.assert_meets(system("14 ms").analyze("none"), gate={"proof", "model"})
"""


def test_yes_passes_and_no_fails_and_both_are_noted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_yes(horolog):
    result = system("16 ms").analyze("none")
    assert horolog.assert_meets(result, gate={"proof"}) is result
    horolog.assert_meets(result)
    horolog.assert_meets(lambda: system("14 ms").simulate("1 s"), gate={"deadlines"})

def test_no(horolog):
    calls = []
    def once():
        calls.append(1)
        return system("16000001 ns").analyze("none")
    try:
        horolog.assert_meets(once, gate={"proof"})
    finally:
        assert len(calls) == 1
"""
    )
    done = pytester.runpytest_subprocess("--junitxml=junit.xml")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*robot: no: *camera*"])
    written = (pytester.path / "junit.xml").read_text()
    assert 'name="horolog_verdict" value="robot: no"' in written


def test_undecided_fails_or_is_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + UNDECIDED)
    pytester.runpytest_subprocess().assert_outcomes(failed=1)
    pytester.runpytest_subprocess("--horolog-undecided=fail").assert_outcomes(failed=1)
    done = pytester.runpytest_subprocess("--horolog-undecided=skip", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*undecided: model: the result does not answer it*"])


def test_undecided_is_tried_again_so_often(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
import pytest

@pytest.mark.parametrize("retries", [0, 2])
def test_retries(horolog, retries):
    calls = []
    def run():
        calls.append(1)
        return system("14 ms").analyze("none")
    with pytest.raises(BaseException):
        horolog.assert_meets(run, gate={"model"}, retries=retries)
    assert len(calls) == retries + 1
    for bad in ("proof", set(), {"speed"}):
        with pytest.raises(h.BadInput, match="^gate"):
            horolog.assert_meets(run, gate=bad)
    with pytest.raises(h.BadInput, match="^result"):
        horolog.assert_meets(3)
    with pytest.raises(h.BadInput, match="^retries"):
        horolog.assert_meets(run, retries=-1)
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_run_a_recording_and_an_attached_program_leave_their_files(
    pytester: pytest.Pytester, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", command)
    pytester.makepyfile(
        HEAD
        + """
import os, subprocess, sys
PROGRAM = "import horolog as h\\nwith h.trace.span('job', number=4): pass"
WAITS = "import sys, horolog as h\\nprint(flush=True)\\nfor line in sys.stdin: h.trace.event('line'); print(flush=True)\\n"

def test_loop(horolog):
    result = horolog.loop(system("4 ms"), "100 ms", machine="none", best_effort=True)
    assert result.page and result.task("camera").bound_ns == 6_000_000
    horolog.assert_meets(result, gate={"proof"})

def test_run(horolog):
    result = horolog.run(h.System.parse(system("4 ms").text, overrides=["platform.cpus=[0]"]), "50 ms", machine="none", best_effort=True)
    assert result.horizon_ns == 50_000_000

def test_record(horolog):
    recording = horolog.record([sys.executable, "-c", PROGRAM], cpus={0}, events=["python"])
    assert recording.status == 0
    assert [record.event for record in recording.trace() if record.kind == "user"] == ["job/begin", "job/end"]

def test_attach(horolog):
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen([sys.executable, "-c", WAITS], env={**os.environ, "HOROLOG_TRACE": "listen"}, **pipes) as process:
        assert process.stdout.readline() == "\\n"
        with horolog.attach(process.pid, cpus=[0]) as recordings:
            process.stdin.write("a\\n"); process.stdin.flush()
            assert process.stdout.readline() == "\\n"
        process.stdin.close()
    assert [record.event for record in recordings[0].trace() if record.kind == "user"] == ["line"]
    with __import__("pytest").raises(h.BadInput, match="^cpus"):
        horolog.alone_on("1")
"""
    )
    done = pytester.runpytest_subprocess("--junitxml=junit.xml", "--horolog-reports=kept")
    done.assert_outcomes(passed=4)
    cases = ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    told = {case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")} for case in cases}
    kept = pytester.path / "kept"
    module = next(pytester.path.glob("test_*.py")).stem
    assert told["test_loop"]["horolog_report"] == str(kept / f"{module}.test_loop.html")
    assert told["test_loop"]["horolog_verdict"] == "robot: yes"
    assert "<html" in (kept / f"{module}.test_loop.html").read_text()[:200].lower()
    for name in ("test_record", "test_attach"):
        assert told[name]["horolog_trace"] == str(kept / f"{module}.{name}.trace")
        assert (kept / f"{module}.{name}.trace").stat().st_size > 0


def test_files_of_tests_with_one_name_are_kept_apart(
    command: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", command)
    for folder in ("one", "two"):
        (pytester.path / folder).mkdir()
        (pytester.path / folder / f"test_{folder}.py").write_text(
            "import pytest, sys\n"
            "def test_same(horolog): horolog.record([sys.executable, '-c', ''], cpus={0})\n"
            "class TestA:\n"
            "    def test_same(self, horolog): horolog.record([sys.executable, '-c', ''], cpus={0})\n"
            "@pytest.mark.parametrize('word', ['a/b', 'a b'])\n"
            "def test_words(horolog, word): horolog.record([sys.executable, '-c', ''], cpus={0})\n"
        )
    done = pytester.runpytest_subprocess("--horolog-reports=kept")
    done.assert_outcomes(passed=8)
    names = {file.name for file in (pytester.path / "kept").iterdir()}
    assert len(names) == 8 and {"one.test_one.test_same.trace", "two.test_two.TestA.test_same.trace"} <= names


def test_a_block_may_hold_what_an_outer_one_holds(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import threading
        import horolog as h, pytest

        def test_nested(horolog):
            with horolog.alone_on([1_002, 1_003]):
                with horolog.alone_on([1_003, 1_004]):
                    pass
                # The outer block still holds it.
                found = []
                def other():
                    try:
                        with horolog.alone_on([1_003]):
                            found.append("held")
                    except h.Undecided:
                        found.append("kept out")
                thread = threading.Thread(target=other)
                thread.start(); thread.join()
                assert found == ["kept out"]
        """
    )
    pytester.runpytest_subprocess("--horolog-patience=0.2").assert_outcomes(passed=1)


LOCKED = """
import time, pytest, horolog as h

@pytest.mark.parametrize("number", range(4))
def test_alone(horolog, number):
    with horolog.alone_on({1_000, 1_001}):
        begun = time.monotonic()
        time.sleep(0.05)
        with open("times", "a") as file: file.write(f"{begun} {time.monotonic()}\\n")
"""


def test_parallel_runs_take_turns_on_a_processor(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="SKIPPED: pytest-xdist is not installed, so no tests run beside each other")
    pytester.makepyfile(LOCKED)
    pytester.runpytest_subprocess("-n", "4").assert_outcomes(passed=4)
    times = sorted(tuple(map(float, line.split())) for line in (pytester.path / "times").read_text().splitlines())
    assert len(times) == 4 and all(first[1] <= second[0] for first, second in itertools.pairwise(times))


def test_a_processor_in_use_is_waited_for_no_longer_than_the_patience(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import threading, time, pytest, horolog as h

def test_patience(horolog):
    with horolog.alone_on([1_002]):
        begun = time.monotonic()
        def other():
            with pytest.raises(h.Undecided, match="^processor 1002 was in use by other test runs for 0.1 s"):
                with horolog.alone_on([1_003, 1_002]): pass
            found.append(time.monotonic() - begun)
        found = []
        thread = threading.Thread(target=other)
        thread.start(); thread.join()
        assert len(found) == 1 and found[0] >= 0.1
    with horolog.alone_on([1_002, 1_003]): pass
"""
    )
    pytester.runpytest_subprocess("--horolog-patience=0.1").assert_outcomes(passed=1)


def test_the_workflow_fails_for_a_missed_deadline_and_keeps_the_report(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist", reason="SKIPPED: pytest-xdist is not installed, so the workflow is not tried")
    monkeypatch.setenv("HOROLOG_COMMAND", command)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for file in (ROOT / "examples/python").iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    steps = re.findall(r"- name: (\w+)\n +run: (.*)", (tmp_path / "timing.yml").read_text())
    assert [name for name, _ in steps] == ["install", "test"]
    words = dict(steps)["test"]
    report = tmp_path / "reports" / "test_timing.test_the_loop_is_closed.html"
    for wcet, status in (("14 ms", 0), ("17 ms", 1)):
        (tmp_path / "robot.toml").write_text((tmp_path / "robot.toml").read_text().replace("14 ms", wcet))
        done = subprocess.run(words, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        told = (tmp_path / "timing.xml").read_text()
        assert f'name="horolog_report" value="{report}"' in told and report.stat().st_size > 50_000
        assert f'value="robot: {"no" if status else "yes"}"' in told
