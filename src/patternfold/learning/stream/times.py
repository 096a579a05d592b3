"""Where the time of a pass over a stack goes: reading, transfer, work."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_seconds: defaultdict[str, float] = defaultdict(float)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Add the time that the block takes; blocks of several threads overlap."""
    began = time.perf_counter()
    try:
        yield
    finally:
        with _lock:
            _seconds[what] += time.perf_counter() - began


def seconds_spent(reset: bool = False) -> dict[str, float]:
    """Return the seconds by name, of all threads of this process together."""
    with _lock:
        found = dict(_seconds)
        if reset:
            _seconds.clear()
    return found
