"""Forked processes: JAX's threads do not survive a fork, and computing would wait for them."""

from __future__ import annotations

import os

_used, _forked = False, False


def require_own_threads() -> None:
    """Refuse to compute in a process that was forked after its parent had computed."""
    global _used
    if _forked:
        raise RuntimeError(
            "This process was forked from one that had already computed with JAX, whose threads do "
            "not survive a fork: it would wait for them forever. Start processes afresh, with "
            "multiprocessing.get_context('spawn') or joblib's default backend, or fork before the "
            "first computation."
        )
    _used = True


def _after_fork() -> None:
    global _forked
    _forked = _used or _forked


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)
