"""The Python of the documents runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

BLOCKS = re.findall(r"^```python file=(\S+)\n(.*?)^```", (ROOT / "docs/concepts/python.md").read_text(), re.M | re.S)


NAMES = ["robot.py", "verified.py", "trace.py", "program.py", "study.py", "grid.py", "systems.py", "test_timing.py"]


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    assert [name for name, _ in BLOCKS] == NAMES
    for name, text in BLOCKS:
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, "robot.py"], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "grid.py"], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "systems.py"], cwd=tmp_path, check=True)
    # Without its last line, which needs matplotlib.
    subprocess.run([sys.executable, "-c", "import study"], cwd=tmp_path, check=True)
    # The robot of the README.
    robot = re.search(r"^```toml file=robot.toml\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert robot
    (tmp_path / "robot.toml").write_text(robot[1])
    subprocess.run([sys.executable, "verified.py"], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "trace.py"], cwd=tmp_path, check=True)
    for wcet, status in (("17 ms", 1), ("14 ms", 0)):
        (tmp_path / "robot.toml").write_text(robot[1].replace("17 ms", wcet))
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "test_timing.py"], cwd=tmp_path, check=False, capture_output=True
        )
        assert found.returncode == status, found.stdout.decode()


def test_the_plot_is_drawn(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="SKIPPED: matplotlib is not installed, so no plot is drawn")
    matplotlib.use("Agg")
    import horolog as h

    axes = h.acceptance([0.5, 0.9], count=20, tasks=3).plot()
    assert len(axes.lines) == len(h.TESTS)
    axes.figure.savefig(tmp_path / "plot.pdf")
