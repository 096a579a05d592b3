"""A pattern that was learned from a part of the images settles on all of them, in passes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.many import Part
from patternfold.learning.passes import Look, Seen, Told, Whole, seen_in_part, spread_over, stepped
from patternfold.learning.pats import Learned
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.retune import with_terms
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    Reporter,
    State,
)
from patternfold.learning.tidy import tidied
from patternfold.model.pattern import Pattern
from patternfold.numerics.interrupts import check_interrupts

PASSES, ENOUGH = 4, 1e-3
"""Most passes over all images in which the atoms move, and the share of E that the next one must be
worth."""

FIRST_DAMPING, LESS, MORE = 1e-3, 0.1, 30.0
"""Damping of the first step, and its change after a step that lowers E and one that does not."""

TOLD_EVERY = 2.0
"""Seconds between two lines of progress."""


class Settled(NamedTuple):
    """A run on all images, what its last pass told, and the part that was learned from first."""

    learned: Learned
    last: Seen
    part: Problem
    """With the scales of loss and prior."""


def settle_in_passes(
    part: Part,
    whole: Whole,
    settings: Settings,
    learned: Learned,
    reference: Any,
    callback: Callback | None,
) -> Settled:
    """Move the atoms on all images, fix the frame, and find λ of all of them."""
    problem = with_terms(part.problem, *learned.state[:2])
    settling = Settling(part, whole.with_terms(problem.terms), settings, learned, callback)
    if learned.reason in STOPPED or settings.refit != "all":
        settling.last(learned.state)
    elif settling.on_all(problem):
        state = tidied(problem, settings, settling.on_part(problem), reference)
        problem = with_terms(problem, *state[:2])  # the frame of λ may have moved
        settling.whole = whole.with_terms(problem.terms)
        settling.last(state)
    last, path = settling.best, learned.path
    scale = float(last.error[0]) / path[-1] if path and path[-1] else 1.0
    state = State(settling.pattern, last.lam, float(last.error[0]))
    learned = Learned(state, [scale * error for error in path], settling.reason)
    return Settled(learned, last, problem)


def settled_alone(problem: Problem, learned: Learned) -> Settled:
    """A run that has seen all images at length."""
    problem = with_terms(problem, *learned.state[:2])
    return Settled(learned, seen_in_part(problem, *learned.state[:2]), problem)


@dataclass
class Settling:
    """Passes over all images, the best pattern so far, and what was seen with it."""

    part: Part
    whole: Whole
    settings: Settings
    learned: Learned
    callback: Callback | None
    pattern: Pattern = field(init=False)
    best: Seen = field(init=False)
    reason: str = field(init=False)
    told: float = 0.0

    def __post_init__(self) -> None:
        """Begin with what the part tells."""
        self.pattern, lam, _ = self.learned.state
        self.reason = self.learned.reason
        problem = self.part.problem
        known, family = seen_in_part(problem, self.pattern, lam), problem.transformation
        identity = family.parameters.put_inside(family.identity)
        self.best = spread_over(known, self.part.index, len(self.whole), identity)

    @property
    def error(self) -> float:
        """The last that is known, normalised."""
        return float(self.best.error[0] / self.best.energy[0])

    def on_part(self, problem: Problem) -> State:
        """The state of the part with the best pattern."""
        lam = self.best.lam[self.part.index]
        return State(self.pattern, lam, problem.error(self.pattern, lam))

    def on_all(self, problem: Problem) -> bool:
        """Move the atoms, one step for each pass, as long as that lowers E.

        False if somebody asked to stop; the best λ are those of the best pattern even so.
        """
        try:
            self.best = self._pass(self.pattern, None, "pass 1", True)
            self._move(problem)
        except KeyboardInterrupt:
            self.reason = INTERRUPTED
        return self.reason not in STOPPED

    def _move(self, problem: Problem) -> None:
        damping = FIRST_DAMPING
        for k in range(1, PASSES):
            check_interrupts()
            if self.reason in STOPPED:
                return
            assert self.best.sums is not None
            trial = stepped(self.best.sums, self.pattern, problem, damping)
            found = self._pass(trial, self.best.lam, f"pass {k + 1}", False)
            before = float(self.best.error[0])
            gained = 1 - float(found.error[0]) / before if before else 0.0
            if gained > 0:
                self.pattern, self.best, damping = trial, found, damping * LESS
            else:
                damping *= MORE
            self._report(f"settled in {k + 1} passes over all images")
            if 0 <= gained < ENOUGH:
                return

    def last(self, state: State) -> None:
        """λ of all images, searched over the whole box; the anchor keeps its own."""
        lam = None if self.best.sums is None else self.best.lam
        try:
            found = self._pass(state.pattern, lam, "last pass", True, equations=False)
        except KeyboardInterrupt:
            self.reason = INTERRUPTED
            return
        anchor = self.part.problem.anchor
        if anchor is not None:
            lam = np.array(found.lam)
            lam[self.part.index[anchor]] = state.lam[anchor]
            found = found._replace(lam=lam)
        self.pattern, self.best = state.pattern, found

    def _pass(
        self,
        pattern: Pattern,
        lam: np.ndarray | None,
        name: str,
        everywhere: bool,
        equations: bool = True,
    ) -> Seen:
        look = Look(pattern, everywhere, equations, self.settings.effort)
        return self.whole.seen(look, lam, self._teller(name))

    def _teller(self, name: str) -> Told:
        """Tell now and then how many images were seen, how fast, and how long it will take."""
        total = len(self.whole)

        def tell(done: int, rate: float) -> None:
            if time.perf_counter() - self.told < TOLD_EVERY or done == total:
                return
            left = (total - done) / rate
            self._report(f"{name}: {done} of {total} images, {rate:.0f}/s, {left:.0f} s left")

        return tell

    def _report(self, stage: str) -> None:
        """Report, unless somebody has asked to stop: λ of all images is needed even then."""
        self.told = time.perf_counter()
        if self.reason in STOPPED:
            return
        report = Reporter(self.callback, len(self.whole), self.settings.n_atoms)
        if report(self.pattern.n_atoms, self.error, stage):
            self.reason = ASKED_TO_STOP
