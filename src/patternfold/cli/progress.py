"""How far learning has come: a bar on a terminal, plain lines elsewhere; Ctrl-C stops early."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patternfold.cli.console import Console

BAR = 24


class Progress:
    """Shows what `PATS` reports, and stops it after Ctrl-C with what it has learned so far."""

    def __init__(self, console: Console, stream: Any = None):
        self.console = console
        self.stream = sys.stderr if stream is None else stream
        self.interrupted = False
        self._on_terminal = self.stream.isatty() and not console.quiet
        self._drawn = False

    def __call__(self, line: Any) -> None:
        """Show one `patternfold.learning.state.Progress`."""
        if self._on_terminal:
            self._draw(line)
        else:
            self.console.say(f"  {line}")
        if self.interrupted:
            # Several short runs precede the long one; each must hear of it.
            raise KeyboardInterrupt

    def __deepcopy__(self, memo: Any) -> Progress:
        """Stay one: scikit-learn copies the options of estimators within estimators."""
        return self

    def _draw(self, line: Any) -> None:
        share = line.n_atoms / max(1, line.max_atoms)
        full = round(BAR * share)
        text = (
            f"{line.stage} {'█' * full}{'░' * (BAR - full)} {line.n_atoms}/{line.max_atoms} atoms, "
            f"error {line.error:.4f}, {line.seconds:.0f} s"
        )
        width = shutil.get_terminal_size().columns - 1
        self.stream.write("\r\x1b[2K" + text[:width])
        self.stream.flush()
        self._drawn = True

    def close(self) -> None:
        """Leave the bar's line."""
        if self._drawn:
            self.stream.write("\n")
            self.stream.flush()
            self._drawn = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Remember Ctrl-C while learning; the rest of the program is told as usual."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals belong to the main thread
            return

        def note(signum: int, frame: Any) -> None:
            self.interrupted = True
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.close()
