"""How far learning has come: a bar on a terminal, plain lines elsewhere; Ctrl-C stops early."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patternfold.cli.console import Console
from patternfold.numerics.interrupts import listening

BAR = 24


class Progress:
    """Shows what `PATS` reports, and knows whether it was interrupted."""

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
        """Remember whether Ctrl-C was pressed while learning."""
        with listening() as interrupts:
            try:
                yield
            finally:
                self.interrupted = interrupts.asked
                self.close()
