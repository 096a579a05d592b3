"""How far learning has come: a bar on a terminal, plain lines elsewhere; Ctrl-C stops early."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from patternfold.cli.console import Console
from patternfold.cli.stopping import saying_stop
from patternfold.numerics.interrupts import listening

SETTLING = 3
"""Steps that the last corrections count as: about as long as so many atoms take."""

_START = re.compile(r"start (\d+) of (\d+)")
_GROWING = re.compile(r"learning|start \d+ of \d+")


class Progress:
    """Shows what estimators report, and knows whether they were interrupted.

    Parameters
    ----------
    console : Console
        What speaks.
    atoms : int or "auto", optional
        Atoms of a pattern, where their number is known.
    stream : file, optional
        Where a bar is drawn if it is a terminal; by default standard error.
    """

    def __init__(self, console: Console, atoms: int | str | None = None, stream: Any = None):
        self.console = console
        self.stream = sys.stderr if stream is None else stream
        self.interrupted = False
        self.work = Work(atoms if isinstance(atoms, int) else None)
        self._bar = _Bar(self.stream) if self._may_draw() else None

    def __call__(self, line: Any) -> None:
        """Show one `patternfold.learning.state.Progress`."""
        done, total = self.work(line)
        if self._bar is not None:
            self._bar.show(line, done, total)
        elif not self.console.quiet:
            self.console.say(f"  {self._words(line)}")

    def _words(self, line: Any) -> str:
        told = line._replace(seconds=self.work.seconds)
        return f"{told}" + (
            "" if (left := self.work.left) is None else f", about {_span(left)} left"
        )

    def __deepcopy__(self, memo: Any) -> Progress:
        """Stay one: scikit-learn copies the options of estimators within estimators."""
        return self

    def _may_draw(self) -> bool:
        return self.stream.isatty() and not self.console.quiet and find_spec("rich") is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Draw the bar while learning; say at once that Ctrl-C was pressed, and remember it."""
        with listening() as interrupts, saying_stop(self._stop):
            try:
                if self._bar is not None:
                    self._bar.start()
                yield
            finally:
                self.interrupted = interrupts.asked
                if self._bar is not None:
                    self._bar.stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.say("stopping ...")
        else:
            self.console.say("stopping ...")


class Work:
    """Steps done of all steps, over the starts of a pattern and the patterns of all classes."""

    def __init__(self, atoms: int | None = None):
        self.atoms = atoms
        self.done = self.total = 0
        self._before = self._settled = self._part = self._parts = 0
        self._began = time.perf_counter()
        self._first: tuple[int, float] | None = None

    def __call__(self, line: Any) -> tuple[int, int | None]:
        """Return the number of steps done and of all, None where that is open."""
        if line.parts < self._parts:  # all classes together: nobody knows how long
            self.done = self.total
            return self.done, None
        self._parts = line.parts
        if line.part != self._part:
            self._part, self._before, self._settled = line.part, 0, 0
        start = _START.match(line.stage)
        if start is not None:
            number, count = int(start[1]), int(start[2])
            self._before = (count - 1) * line.max_atoms
            own = (number - 1) * line.max_atoms + line.n_atoms
        elif _GROWING.match(line.stage):
            own = self._before + line.n_atoms
        else:
            self._settled += 1
            own = None
        # While starts are compared, a line knows of their few atoms only.
        each = self._before + max(self.atoms or 0, line.max_atoms) + SETTLING
        if own is None:  # the pattern has grown, perhaps less than it could have
            own = each - SETTLING + self._settled
        self.total = each * line.parts
        self.done = min(each * (line.part - 1) + min(own, each), self.total)
        if start is not None and self.atoms is None:
            return self.done, None  # how many atoms there will be is not known yet
        if self._first is None:
            self._first = self.done, time.perf_counter()
        return self.done, self.total

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float | None:
        """Seconds that are left, if steps go on as they did; None before the second one.

        Most of what is compiled is compiled before the first step ends; it tells little.
        """
        if self._first is None or not self._first[0] < self.done < self.total:
            return None
        done, when = self._first
        return (time.perf_counter() - when) / (self.done - done) * (self.total - self.done)


class _Bar:
    """A bar with atoms, error, time and the time that is left."""

    def __init__(self, stream: Any):
        from rich.console import Console as Terminal
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._shown = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Terminal(file=stream),
        )
        words = "compiling on first use"
        self._task = self._shown.add_task("learning", total=None, words=words)

    def start(self) -> None:
        self._shown.start()

    def stop(self) -> None:
        self._shown.stop()

    def say(self, text: str) -> None:
        self._shown.console.print(text, markup=False, highlight=False)

    def show(self, line: Any, done: int, total: int | None) -> None:
        name = f"{line.subject}: " if line.subject else ""
        words = f"{line.n_atoms}/{line.max_atoms} atoms, error {line.error:.4f}"
        self._shown.update(
            self._task,
            description=f"{name}{line.stage}",
            completed=done,
            total=total,
            words=words,
        )


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
