"""Blocks of a sweep on a Dask cluster: workers compute, and this process alone keeps what they send."""

from __future__ import annotations

import functools
import importlib
import sys
import time
from concurrent.futures import CancelledError
from typing import Any

from . import _engine
from .errors import HorologError, Told, Undecided, bad_argument

_WINDOW = 1_000
"""Tasks that the scheduler holds at a time."""


@functools.lru_cache(maxsize=4)
def _sweep(text: str, name: str) -> _engine.NativeSweep:
    return _engine.NativeSweep(text, name)


def block(text: str, name: str, cell: int, number: int) -> bytes:
    """The file of a block; runs on a worker."""
    return _sweep(text, name).compute(cell, number)


def version() -> str:
    """The version of a worker."""
    return _engine.__version__


def run(folder: _engine.NativeFolder, text: str, name: str, address: str, patience_s: float) -> None:
    """Computes what is missing in the folder on the cluster at this address."""
    try:
        dask: Any = importlib.import_module("distributed")
    except ImportError:
        raise bad_argument("cluster", "Dask is not installed", "pip install 'horolog[dask]'") from None
    missing = folder.missing()
    try:
        client = dask.Client(address, timeout=patience_s, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise bad_argument("cluster", f"no scheduler answers at {address}: {error}") from None
    try:
        _same_version(client)
        with client.as_current():
            _run(dask, client, folder, text, name, missing, patience_s)
    finally:
        client.close(timeout=5)


def _same_version(client: Any) -> None:
    for worker, found in client.run(version, on_error="return").items():
        if found != _engine.__version__:
            raise bad_argument(
                "cluster",
                f"worker {worker} has horolog {found}, and this process {_engine.__version__}",
                "install the same version on every worker",
            )


def _run(
    dask: Any,
    client: Any,
    folder: _engine.NativeFolder,
    text: str,
    name: str,
    missing: list[tuple[int, int]],
    patience_s: float,
) -> None:
    waiting = iter(missing)
    futures: dict[Any, tuple[int, int]] = {}
    done, heard = 0, time.monotonic()
    try:
        while True:
            for cell, number in waiting:
                # A worker that dies takes no block along: the scheduler gives it to another one, and any of them gives the same bytes.
                future = client.submit(block, text, name, cell, number, pure=False, retries=3)
                futures[future] = (cell, number)
                if len(futures) >= _WINDOW:
                    break
            if not futures:
                return
            ended = []
            try:
                ended = list(dask.wait(list(futures), timeout=1, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                pass
            except (CancelledError, dask.CancelledError):
                raise _gone("the scheduler is gone", done, len(missing)) from None
            for future in ended:
                cell, number = futures.pop(future)
                if future.status in ("error", "cancelled"):
                    raise _gone(f"block {number} of cell {cell} {_why(dask, future)}", done, len(missing))
                try:
                    file = future.result(timeout=patience_s) if future.status == "finished" else None
                except (OSError, TimeoutError, CancelledError, dask.CancelledError):
                    file = None
                if file is None:
                    # Its worker died with what it had found: once more, until the patience is over.
                    again = client.submit(block, text, name, cell, number, pure=False, retries=3)
                    futures[again] = (cell, number)
                    continue
                folder.commit(cell, number, file)
                done += 1
                heard = time.monotonic()
            if client.status != "running" or time.monotonic() - heard > patience_s:
                raise _gone(f"nothing came back for {patience_s:g} s ({client.status})", done, len(missing))
    finally:
        for future in futures:
            future.release()


def _why(dask: Any, future: Any) -> str:
    if future.status == "cancelled":
        return "was cancelled"
    fault = future.exception()
    if isinstance(fault, dask.KilledWorker):
        return "lost its worker each time it was tried, as for a lack of memory: give workers more, or blocks fewer sets"
    return f"failed: {fault}"


def _gone(reason: str, done: int, all_blocks: int) -> Undecided:
    text = f"cluster: {reason}; {done} of {all_blocks} blocks were computed and are kept"
    help_text = "give the same call again once workers are there"
    return Undecided((Told("undecided", text, path="cluster", help=help_text),), 4, f"{text}\n  = help: {help_text}")


def main(name: str, address: str, out: str, drops_others: bool) -> int:
    """What ``horolog sweep --cluster`` starts, with the text of the file on standard input."""
    try:
        text = sys.stdin.read()
        folder = _engine.NativeSweep(text, name).open(out, drops_others)
        try:
            run(folder, text, name, address, 60.0)
        finally:
            folder.close()
    except HorologError as error:
        print(error, file=sys.stderr)
        return error.exit
    return 0


if __name__ == "__main__":
    # The module by its name: workers have no `__main__` of this process.
    from horolog._cluster import main as named_main

    sys.exit(named_main(sys.argv[1], sys.argv[2], sys.argv[3], "--drop-others" in sys.argv[4:]))
