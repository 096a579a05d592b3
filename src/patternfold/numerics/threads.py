"""Threads of NumPy's linear algebra: one while patterns are learned, then as many as before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_users = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's small systems be solved by one thread: more would only wait beside JAX's.

    The number of threads belongs to the whole process. The first of several blocks at a time lowers
    it, and the last one sets it back to what the first one found.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _limits
    with _lock:
        if _users == 0:
            _limits = threadpool_limits(limits=1, user_api="blas")
        _users += 1


def _leave() -> None:
    global _users, _limits
    with _lock:
        _users -= 1
        if _users == 0 and _limits is not None:
            _limits.restore_original_limits()
            _limits = None
