"""Ctrl-C is answered at once, even while compiled code keeps Python from hearing of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def saying_stop(say: Callable[[], object]) -> Iterator[None]:
    """Call ``say`` in a thread beside the block as soon as Ctrl-C is pressed, once.

    Python runs handlers of signals between two of its own instructions, and a compiled function may
    keep it waiting for seconds; the file to which the interpreter itself writes is told at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    before = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(receiving, say), daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(sending)
        with suppress(KeyboardInterrupt):
            listener.join(1)


def _listen(receiving: int, say: Callable[[], object]) -> None:
    said = False
    while signals := os.read(receiving, 64):
        if not said and signal.SIGINT in signals:
            said = True
            say()
    os.close(receiving)
