"""Systems from Python objects, bad input, signals, threads, pickles, the notebook's table."""

import math
import pickle
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

import horolog as h

ROBOT = {
    "system": {"name": "robot"},
    "platform": {"cpus": [1]},
    "task": [
        {"name": "control", "period": "10 ms", "deadline": "8 ms", "wcet": "2 ms", "priority": 90},
        {"name": "camera", "period": "40 ms", "deadline": "20 ms", "wcet": timedelta(milliseconds=17), "priority": 50},
    ],
}


def robot(**changes: object) -> h.System:
    camera = ROBOT["task"][1] | changes
    return h.System(**(ROBOT | {"task": [ROBOT["task"][0], camera]}))


def test_an_output_that_is_the_system_file_leaves_it_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(robot().text)
    before = file.read_bytes()
    with pytest.raises(h.BadInput, match="is what is read"):
        h.load(file).simulate(horizon="100 ms", trace=file)
    assert file.read_bytes() == before


def test_a_system_of_objects_is_the_one_of_its_text() -> None:
    system = robot()
    assert system == h.System.parse(system.text) == pickle.loads(pickle.dumps(system))
    assert system.tasks == ["control", "camera"] and system.name == "robot"
    result = system.analyze("none")
    assert (result.schedulable, result.holds, result.closing.proof) == ("no", False, "no")
    assert result.task("camera").response_ns == 23_000_000 and result.task("camera").exact
    better = robot(wcet="14 ms").analyze("none")
    assert better.holds and better.task("camera").response_ns == 18_000_000
    # 14 + 2 + 2 ms; at 16 ms it is 20 ms, its deadline, and one nanosecond more is too much.
    assert robot(wcet="16 ms").analyze("none").holds
    assert not robot(wcet="16000001 ns").analyze("none").holds


def test_a_notebook_shows_the_verdicts() -> None:
    shown = robot(name="a<b").analyze("none")._repr_html_()
    assert "a&lt;b" in shown and "a<b" not in shown and "misses" in shown and "23 ms" in shown
    simulated = robot(name="a<b").simulate("1 s")._repr_html_()
    assert "longest response" in simulated and simulated.count("<g>") == 2 and "a<b" not in simulated
    drawing = ElementTree.fromstring(simulated[simulated.index("<svg") : simulated.index("</svg>") + 6])
    boxes = [float(one.get("x", "")) for one in drawing.iter("{http://www.w3.org/2000/svg}rect")]
    # From 0 at 140 to the 23 ms of the camera at 560: 2 ms and 23 ms.
    assert boxes == [round(140 + 420 * 2 / 23, 1), 560.0]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"wcet": math.nan}, "system.task[1].wcet"),
        ({"wcet": math.inf}, "system.task[1].wcet"),
        ({"wcet": object()}, "system.task[1].wcet"),
        ({"priority": 10**30}, "system.task[1].priority"),
        ({"priority": 1j}, "system.task[1].priority"),
        ({"wcet": timedelta(seconds=-1)}, "system.task[1].wcet"),
        ({"name": "\ud800"}, "system.task[1].name"),
        ({"wcet": 17}, "task.camera.wcet"),
        ({"wcet": "17 parsecs"}, "task.camera.wcet"),
        ({"wcet": "-1 ms"}, "task.camera.wcet"),
        ({"wcet": "99999999999 s"}, "task.camera.wcet"),
        ({"wcett": "17 ms"}, "task.camera.wcett"),
    ],
)
def test_what_is_wrong_in_a_system_is_named(changes: dict[str, object], path: str) -> None:
    with pytest.raises(h.BadInput) as caught:
        robot(**changes)
    assert path in [one.path for one in caught.value.errors], caught.value.errors
    assert isinstance(caught.value, ValueError) and caught.value.exit == 2


def test_a_nest_without_end_is_refused() -> None:
    nest: list[object] = []
    nest.append(nest)
    with pytest.raises(h.BadInput, match="nested too deeply"):
        h.System(task=nest)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("horizon", 5),
        ("horizon", "5"),
        ("horizon", "nan s"),
        ("jobs", 0),
        ("jobs", 2.5),
        ("jobs", 2**64),
        ("jobs", True),
        ("seed", -1),
        ("seed", 2**64),
        ("execution", "fast"),
        ("jitter", None),
        ("latency", "often"),
        ("path", "shortest"),
        ("sporadic_extra", -1),
        ("trace", 7),
        ("machine", b"x"),
    ],
)
def test_what_is_wrong_in_an_argument_is_named(argument: str, value: object) -> None:
    with pytest.raises(h.BadInput, match=f"^{argument}: "):
        robot().simulate(**{argument: value})


def test_files_that_are_not_there() -> None:
    with pytest.raises(h.BadInput, match="no-such-file"):
        h.load("no-such-file.toml")
    for bad in (None, 3, b"x.toml", "a\0b"):
        with pytest.raises(h.BadInput, match="^path: "):
            h.load(bad)
    for bad in ("x=1", [1], 5):
        with pytest.raises(h.BadInput, match="^overrides"):
            h.System.parse("", overrides=bad)


def test_other_threads_go_on() -> None:
    count = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    before = count
    robot().simulate(jobs=200_000)
    after = count
    done.set()
    ticking.join()
    # A call that kept the interpreter would let none go by.
    assert after - before >= 5


LONG = """
import horolog as h, os, sys
system = h.System(system={"name": "x"}, task=[{"name": "t", "period": "1 us", "wcet": "100 ns", "priority": 1}])
print("ready", flush=True)
try:
    system.simulate("100000 s")
except KeyboardInterrupt:
    # The engine's thread has ended, too.
    threads = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    print("interrupted", threads.count("horolog"), flush=True)
    os._exit(7)
"""


def test_ctrl_c_ends_a_long_call() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            time.sleep(0.3)
            running.send_signal(signal.SIGINT)
            assert running.stdout.readline() == "interrupted 0\n"
            assert running.wait(60) == 7
        finally:
            running.kill()
