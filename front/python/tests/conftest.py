"""Where the repository and the command are; the package itself is the installed wheel."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytest_plugins = ["pytester"]

# A shell that starts something behind itself has it ignore Ctrl-C, and Python leaves that as it is.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def command() -> str:
    """The command that was built beside the package."""
    return os.environ.get("HOROLOG_BIN", str(ROOT / "target/debug/horolog"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
