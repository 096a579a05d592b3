"""What a learning run carries from step to step, and what it reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from patternfold.learning.journal import end_journal
from patternfold.model.pattern import Pattern
from patternfold.numerics.interrupts import check_interrupts

INTERRUPTED = "interrupted"
ASKED_TO_STOP = "the callback asked to stop"
STOPPED = (INTERRUPTED, ASKED_TO_STOP)
"""Reasons to stop that come from people: whatever a run is part of ends with it."""


class State(NamedTuple):
    """The pattern p, the parameters λ_i and E = Σ w_i‖u_i − U_λi(p)‖²."""

    pattern: Pattern
    lam: np.ndarray
    error: float


class Progress(NamedTuple):
    """One line of progress, handed to the callback after each atom."""

    n_images: int
    n_atoms: int
    max_atoms: int
    error: float
    seconds: float
    stage: str
    subject: str = ""
    """What the pattern stands for, where there are several: its class."""
    part: int = 1
    """Which of the patterns that are learned one after the other, from 1."""
    parts: int = 1
    """How many there are."""

    def __str__(self) -> str:
        """Say it in a line."""
        subject = f"{self.subject}, " if self.subject else ""
        return (
            f"{subject}{self.stage}: atom {self.n_atoms}/{self.max_atoms}, {self.n_images} images, "
            f"error {self.error:.4f}, {self.seconds:.1f} s"
        )


Callback = Callable[[Progress], object]


def telling_part(callback: Callback | None, part: int, names: Sequence[str]) -> Callback | None:
    """Return a callback whose lines tell which of several patterns they are about."""
    if callback is None:
        return None
    tags = {"subject": names[part], "part": part + 1, "parts": len(names)}
    return lambda line: callback(line._replace(**tags))


@dataclass
class Reporter:
    """Tells the callback, if there is one, how far a run has come."""

    callback: Callback | None
    n_images: int
    max_atoms: int
    started: float = field(default_factory=time.perf_counter)

    def __call__(self, n_atoms: int, error: float, stage: str = "learning") -> bool:
        """Report; a callback that returns True asks to stop. Ctrl-C is raised if it was missed."""
        check_interrupts()
        if self.callback is None:
            return False
        seconds = time.perf_counter() - self.started
        line = Progress(self.n_images, n_atoms, self.max_atoms, error, seconds, stage)
        asked = self.callback(line) is True
        if asked:
            end_journal()
        return asked
