"""What reading a damaged file must not do: write elsewhere, start programs, run code, hang."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FORBIDDEN = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn"),
    *("pickle.find_class", "socket.connect", "socket.bind", "ctypes.dlopen", "webbrowser.open"),
    *("os.remove", "os.rename", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate"),
    *("shutil.rmtree", "shutil.move", "shutil.copyfile", "os.mkdir", "os.putenv", "os.chdir"),
)
"""Events of the interpreter that no reader of a file has a reason for."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS = ("/dev/null",)


class Hang(BaseException):
    """A case that does not end; no ``except Exception`` can hide it."""


class Watch:
    """Notes forbidden events while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        self.scratch = tempfile.gettempdir()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, _, flags = arguments
            # Decoders may use files of their own in the folder for temporary ones.
            allowed = str(path).startswith(self.scratch) or path in HARMLESS
            if flags & WRITING and not allowed and not isinstance(path, int):
                self.seen.append(f"wrote to {path!r}")
        elif event in FORBIDDEN and not str(arguments[:1]).startswith(f"('{self.scratch}"):
            self.seen.append(f"{event} {str(arguments)[:200]}")


PATIENCE = 10
"""Times as long by the clock: a process may be kept waiting, or wait for what never comes."""


@contextmanager
def alarmed(seconds: float) -> Iterator[None]:
    """Raise `Hang` after so many seconds of this process, or ten times as many by the clock."""

    def ring(*_: Any) -> None:
        raise Hang

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds),
    )
    before = {number: signal.signal(number, ring) for number, _, _ in timers}
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
