"""Ctrl-C during a long computation: raised at once, and remembered until somebody has heard.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback of compiled
code or a destructor it is printed and lost; and a short run within a longer one may end with it
while the longer one goes on. So it is noted as well, and loops ask between two steps.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Whether Ctrl-C was pressed while somebody was `listening`."""

    def __init__(self) -> None:
        self._times = 0
        self._holders = 0

    @property
    def asked(self) -> bool:
        """Whether it was pressed, however the computation took it."""
        return self._times > 0

    def check(self) -> None:
        """Raise KeyboardInterrupt if it was asked for."""
        if self.asked:
            raise KeyboardInterrupt

    def forget(self) -> None:
        """Take it for heard."""
        self._times = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put Ctrl-C off to the end of a short block that must not be cut in two."""
        before = self._times
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
        if self._times > before and not self._holders:
            raise KeyboardInterrupt

    def _hear(self, before: Any, signum: int, frame: Any) -> None:
        try:
            before(signum, frame)
        except KeyboardInterrupt:
            self._times += 1
            if not self._holders:
                raise


_outermost: Interrupts | None = None
"""That of the main thread, the only one that signals come to."""


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Note Ctrl-C during the block; within another such block it is noted for both.

    A handler of the user's own is called as ever; only the KeyboardInterrupt that it raises counts.
    """
    global _outermost
    if not _in_main_thread():
        yield Interrupts()
        return
    if _outermost is not None:
        yield _outermost
        return
    interrupts, before = Interrupts(), signal.getsignal(signal.SIGINT)
    if not callable(before):  # Ctrl-C is ignored, or ends the process
        yield interrupts
        return
    try:
        _outermost = interrupts
        signal.signal(signal.SIGINT, lambda *args: interrupts._hear(before, *args))
        yield interrupts
    finally:
        with interrupts.held():
            signal.signal(signal.SIGINT, before)
            _outermost = None


def check_interrupts() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since somebody has been listening."""
    if _outermost is not None and _in_main_thread():
        _outermost.check()


def forget_interrupts() -> None:
    """Take Ctrl-C for heard: what follows is to be done all the same."""
    if _outermost is not None and _in_main_thread():
        _outermost.forget()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed since somebody has been listening."""
    return _outermost is not None and _outermost.asked


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
