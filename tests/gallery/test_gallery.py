"""The notebooks of docs/gallery run as scripts, marimo accepts them, and the committed figures are those that they make.

`HOROLOG_BLESS=1` writes the figures. The figures are compared byte by byte: `xtask/src/gallery.rs` pins what draws them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs/gallery"
NOTEBOOKS = sorted(GALLERY.glob("*.py"))
NAMES = [notebook.stem for notebook in NOTEBOOKS]


def test_there_are_five_and_each_has_a_page():
    assert len(NOTEBOOKS) == 5
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    for name in NAMES:
        page = (GALLERY / f"{name}.md").read_text()
        assert f"({name}.svg)" in page and f"({name}.py)" in page, name
        assert f"(gallery/{name}.md)" in summary, name


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs_and_its_figure_is_fresh(notebook, tmp_path):
    words = {"HOROLOG_GALLERY": str(tmp_path), "MPLBACKEND": "svg", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(notebook)], cwd=tmp_path, env=os.environ | words, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made, kept = tmp_path / f"{notebook.stem}.svg", GALLERY / f"{notebook.stem}.svg"
    if os.environ.get("HOROLOG_BLESS"):
        kept.write_bytes(made.read_bytes())
    assert made.read_bytes() == kept.read_bytes(), f"{kept.name} is not what the notebook draws: HOROLOG_BLESS=1 writes it"


def test_marimo_accepts_them():
    words = [sys.executable, "-m", "marimo", "-q", "check", "--strict", *map(str, NOTEBOOKS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
