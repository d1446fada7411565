"""Pages of simulations, runs, verified traces and traces: the report's viewer with what the engine found."""

import html
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import horolog as h
from conftest import ROOT

QUICK = ROOT / "examples/quick-start/system.toml"
KERNEL = ROOT / "tests/lies/traces/a-program-that-ends.trace"


@pytest.fixture(autouse=True)
def named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROLOG_COMMAND", command)


def document(page: bytes) -> dict[str, Any]:
    """What the page's viewer reads."""
    inside = re.search('<script type="application/json" id="horolog-data">(.*?)</script>', page.decode(), re.DOTALL)
    assert inside
    found: dict[str, Any] = json.loads(inside[1])
    return found


def inside(shown: str) -> bytes:
    """The page in a notebook's frame."""
    found = re.findall('<iframe [^>]*sandbox="allow-scripts allow-downloads"[^>]* srcdoc="([^"]*)"></iframe>', shown)
    assert len(found) == 1
    return html.unescape(found[0]).encode()


def test_a_simulation_has_its_timeline_and_its_bounds(tmp_path: Path) -> None:
    system = h.load(QUICK)
    found = system.simulate("1 s", seed=4)
    page = found.page
    assert inside(found._repr_html_()) == page == found.page
    assert found.report(tmp_path / "x.html").read_bytes() == page
    told = document(page)
    (run,) = told["runs"]
    proof = system.analyze("none")
    assert run["kind"] == "simulated" and run["seed"] == 4 and run["horizon_ns"] == 1_000_000_000
    lanes = [lane["name"] for lane in run["timeline"]["lanes"]]
    assert lanes[: len(system.tasks)] == system.tasks and run["timeline"]["events_dropped"] == 0
    for place, task in enumerate(found.tasks):
        row, seen = told["tasks"][place], run["tasks"][place]
        assert (row["name"], row["bound_ns"], row["verdict"]) == (task.name, proof.task(task.name).response_ns, "meets")
        assert (seen["jobs"], seen["missed"], seen["response_ns_max"]) == (task.jobs, task.missed, task.response_ns_max)
        assert sum(count for _, count in seen["histogram"]) == task.completed
    assert told["closing"]["text"] == found.closing.text and told["verdict"]["proof"] == "proved"
    again = pickle.loads(pickle.dumps(system.simulate("1 s", seed=4)))
    assert again == found and document(again.page)["runs"] == told["runs"]


def test_a_page_keeps_so_many_records_and_counts_all(tmp_path: Path) -> None:
    system = h.System(
        system={"name": "quick"},
        platform={"cpus": [1]},
        task=[{"name": "a", "period": "10 us", "wcet": "1 us", "priority": 2}],
    )
    found = system.simulate("1 s", trace=tmp_path / "a.trace")
    count = h.read_trace(tmp_path / "a.trace").count
    assert count is not None and count > 200_000
    for page in (found.page, h.read_trace(tmp_path / "a.trace").page):
        (run,) = document(page)["runs"]
        line = run["timeline"]
        assert (line["events_kept"], line["events_dropped"]) == (200_000, count - 200_000)
        assert run["tasks"][0]["completed"] == found.task("a").completed == 100_000
        assert len(page) < 3_000_000


def test_a_simulation_that_has_become_another_is_not_shown(tmp_path: Path) -> None:
    found = h.load(QUICK).simulate("100 ms")
    found.data["seed"] = 99
    with pytest.raises(h.Undecided, match="another result than before"):
        found.report(tmp_path / "x.html")
    shown = found._repr_html_()
    assert "no timeline: the simulation came to another result" in shown and "<iframe" not in shown
    assert not (tmp_path / "x.html").exists()


def test_a_verified_trace_has_its_findings(tmp_path: Path) -> None:
    path = ROOT / "tests/lies/traces/a-wcet-that-is-too-small.trace"
    trace = tmp_path / "a.trace"
    trace.write_bytes(path.read_bytes())
    system = h.System.parse(h.read_trace(trace).system)
    found = h.verify(system, trace, machine="none")
    told = document(inside(found._repr_html_()))
    assert found.report(tmp_path / "x.html").read_bytes() == found.page
    assert [one["text"] for one in told["findings"]] == [one.message for one in found.findings]
    assert told["verdict"]["run"] == "model-violated" and told["closing"]["word"] == found.closing.word == "no"
    (run,) = told["runs"]
    assert run["kind"] == "measured" and [task["completed"] for task in run["tasks"]] == [one.data["completed"] for one in found.tasks]
    assert run["tasks"][0]["judged"]["judged"] == found.tasks[0].judged
    late = h.verify(system, trace, machine="none")
    trace.write_bytes(trace.read_bytes()[:-40])
    assert pickle.loads(pickle.dumps(found)).page == found.page
    with pytest.raises(h.Undecided, match="another result than before: the trace"):
        late.report(tmp_path / "y.html")


def test_a_trace_is_shown_with_the_bounds_of_its_system(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    found = h.load(QUICK).simulate("1 s", seed=2, trace=trace)
    read = h.read_trace(trace)
    told, simulated = document(inside(read._repr_html_())), document(found.page)
    assert read.report(tmp_path / "x.html").stat().st_size == len(read.page)
    assert told["tasks"] == simulated["tasks"] and told["runs"][0]["timeline"] == simulated["runs"][0]["timeline"]
    assert told["plain_words"] == f"A trace made by sim; records: {read.count:,}."
    # One without a system, of user events; and a kernel's with foreign threads.
    for path in (ROOT / "front/python/tests/user-events.trace", KERNEL):
        page = document(h.read_trace(path).page)
        assert page["runs"][0]["kind"] == "measured" and page["verdict"]["run"] == "undecided"
    cut = tmp_path / "cut.trace"
    cut.write_bytes(trace.read_bytes()[:-200])
    page = document(h.read_trace(cut, damaged="keep").page)
    assert any("damaged" in note for note in page["notes"]) and "cut off" in page["plain_words"]


def test_a_run_has_its_timeline(tmp_path: Path) -> None:
    found = h.run(QUICK, "50 ms", machine="none", best_effort=True, trace=tmp_path / "a.trace")
    told = document(inside(found._repr_html_()))
    assert found.report(tmp_path / "x.html").read_bytes() == found.page
    (run,) = told["runs"]
    assert run["kind"] == "measured" and told["verdict"]["best_effort"]
    assert [task["jobs"] for task in run["tasks"]] == [task.jobs for task in found.tasks]
    assert run["timeline"]["events_kept"] == h.read_trace(tmp_path / "a.trace").count
    kept = h.run(QUICK, "20 ms", machine="none", best_effort=True)
    assert document(kept.page)["runs"][0]["timeline"]["events_kept"] > 0
    assert pickle.loads(pickle.dumps(kept)).page == kept.page
