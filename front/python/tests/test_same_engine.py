"""What Python says is what the command says."""

import json
import pickle
import subprocess
from pathlib import Path

import pytest

import horolog as h
from conftest import ROOT

FILES = sorted([*ROOT.glob("examples/**/*.toml"), *ROOT.glob("golden/*.toml"), *ROOT.glob("front/cli/tests/**/*.toml")])
IDS = [str(path.relative_to(ROOT)) for path in FILES]


def told(command: str, verb: list[str], path: Path) -> tuple[int, dict]:
    done = subprocess.run([command, *verb, str(path), "--format", "json"], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_the_package_is_the_installed_one() -> None:
    assert not Path(h.__file__).is_relative_to(ROOT / "front")


def test_all_examples_are_there() -> None:
    assert sum("golden" in one for one in IDS) >= 17 and sum("examples" in one for one in IDS) >= 40


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_analyze_says_the_same(command: str, path: Path) -> None:
    status, said = told(command, ["analyze", "--machine", "none"], path)
    try:
        result = h.load(path).analyze("none")
    except h.HorologError as error:
        assert said["schema"] == "horolog.error/1"
        assert error.exit == status == said["exit"]
        places = [dict.fromkeys(("file", "line", "column", "path")) | (one["place"] or {}) for one in said["errors"]]
        found = [(one.kind, one.message, one.help, one.file, one.line, one.column, one.path) for one in error.errors]
        assert found == [
            (one["kind"], one["message"], one["help"], place["file"], place["line"], place["column"], place["path"])
            for one, place in zip(said["errors"], places, strict=True)
        ]
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.errors, again.exit, str(again)) == (type(error), error.errors, error.exit, str(error))
        return
    assert result.closing.exit == status
    assert result.data == said
    assert [task.name for task in result.tasks] == [task["name"] for task in said["tasks"]]
    assert result == pickle.loads(pickle.dumps(result))


SYSTEMS = ["examples/quick-start/system.toml", "examples/edf/system.toml", "examples/links/system.toml"]


@pytest.mark.parametrize("name", [name for name in SYSTEMS if (ROOT / name).exists()])
def test_simulate_says_the_same(command: str, name: str) -> None:
    path = ROOT / name
    status, said = told(command, ["simulate", "--seed", "3", "--for", "2 s"], path)
    result = h.load(path).simulate("2 s", seed=3)
    assert result.data == said and result.closing.exit == status
    assert result.horizon_ns == 2_000_000_000


def test_overrides_are_those_of_set(command: str) -> None:
    path = ROOT / SYSTEMS[0]
    name = h.load(path).tasks[0]
    change = f'task.{name}.wcet="1.9 ms"'
    _, said = told(command, ["analyze", "--machine", "none", "--set", change], path)
    system = h.load(path, [change])
    assert system.analyze("none").data == said
    assert pickle.loads(pickle.dumps(system)).analyze("none").data == said
