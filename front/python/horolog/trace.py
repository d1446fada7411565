"""Events of Python programs for horolog's recorder, as ``horolog_probe`` has them for Rust and ``horolog/trace.h`` for C.

>>> import horolog
>>> horolog.trace.event("queue/push", item=7, length=(3, "items"), origin="camera")
>>> with horolog.trace.span("plan", request=4):
...     horolog.trace.counter("queue/length", 3, unit="items")

They are recorded while the program runs under ``horolog trace record`` (or :func:`horolog.record`), by the trigger ``python``; else a
call looks whether that is enabled, and returns. Threads, children by ``fork`` and what they start are recorded as well.
"""

from __future__ import annotations

from ._engine import counter, event, is_recorded, span

__all__ = ["counter", "event", "is_recorded", "span"]
