"""A simulated trace of a small system, made by the built command (HOROLOG_BIN)."""

import os
import pathlib
import subprocess

import pytest

SYSTEM = """
[system]
name = "two loops"
policy = "fixed-priority"

[platform]
cpus = 1

[[task]]
name = "high"
period = "10 ms"
wcet = "2 ms"
priority = 2

[[task]]
name = "low"
period = "20 ms"
wcet = "9 ms"
priority = 1
"""

# One hyperperiod: high at 0 and 10, low from 2 to 10 and from 12 to 13.
HIGH = [(0, 2_000_000), (10_000_000, 12_000_000)]
LOW = [(2_000_000, 10_000_000), (12_000_000, 13_000_000)]


@pytest.fixture(scope="session")
def horolog() -> pathlib.Path:
    """The built command."""
    path = os.environ.get("HOROLOG_BIN")
    if not path or not pathlib.Path(path).exists():
        pytest.skip("HOROLOG_BIN names no built horolog: run this through `cargo xtask test`")
    return pathlib.Path(path)


@pytest.fixture(scope="session")
def trace(horolog: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A trace of 20 ms of SYSTEM."""
    folder = tmp_path_factory.mktemp("trace")
    system, out = folder / "system.toml", folder / "sim.hrt"
    system.write_text(SYSTEM)
    subprocess.run([horolog, "simulate", system, "--for", "20 ms", "--trace", out], check=True, capture_output=True)
    return out


@pytest.fixture(scope="session")
def converted(horolog: pathlib.Path, trace: pathlib.Path):
    """Converts the trace to the format that the name's ending says; gives the file."""

    def convert(name: str) -> pathlib.Path:
        out = trace.parent / name
        result = subprocess.run([horolog, "trace", "convert", trace, out], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return out

    return convert
