"""PATS out of core: a pattern is learned from a part of a stack, and settles in passes over all.

What is learned from a thousand images is near what a million would tell. From there on each pass
reads every image once, improves its λ, and adds up the equations in which the λ_i are eliminated:
one step of all atoms for one pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.journal import current_journal
from patternfold.learning.pats import Learned
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.retune import with_terms
from patternfold.learning.start import run
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    Reporter,
    State,
)
from patternfold.learning.stream.here import Here, Place
from patternfold.learning.stream.stack import Stack
from patternfold.learning.stream.sweep import Model, Seen, SeenCodec, Sweep, added, stepped
from patternfold.learning.tidy import tidied
from patternfold.model.pattern import Pattern
from patternfold.numerics.interrupts import check_interrupts

PART, PART_BYTES, FEWEST = 1024, 2**28, 64
"""Images from which a pattern is learned before all of them are looked at; fewer where that many
would be larger than this, but not fewer than some dozens."""

PASSES, ENOUGH = 4, 1e-3
"""Most passes over all images in which the atoms move, and the share of E that the next one must be
worth."""

FIRST_DAMPING, LESS, MORE = 1e-3, 0.1, 30.0
"""Damping of the first step, and its change after a step that lowers E and one that does not."""

NOTHING = 1e-20
"""Share of the greatest weight that is as good as none."""

BLOCK = "block"
"""Name of the records of blocks in a checkpoint."""

TOLD_EVERY = 2.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Source:
    """A stack with weights, masks and the model it is compared with, and where that is done."""

    stack: Stack
    model: Model
    weights: np.ndarray
    mask: Any = None
    """(N, H, W), read as it is needed; or (H, W) for all images."""
    place: Place = field(default_factory=Here)

    @property
    def part(self) -> np.ndarray:
        """Images from which a pattern is learned first: such as have a weight."""
        index = part_of(self.stack)
        counting = index[self.weights[index] > 0]
        return counting if len(counting) else np.flatnonzero(self.weights)[:PART]

    def some(self, index: np.ndarray) -> Problem:
        """Some images, in memory; weighed so that they stand for all."""
        weights = self.weights[index]
        weights = weights * (self.weights.sum() / max(weights.sum(), 1e-300))
        mask = None if self.mask is None else _mask_rows(self.mask, index)
        model = replace(self.model, block=len(index))
        return model.put(self.stack.take(index), weights, mask)

    def all(self, sweep: Sweep, lam: np.ndarray | None, tell: Any = None) -> Iterable[Seen]:
        """Yield what is seen in each block, in their order."""
        spans, masks = self.stack.spans(), self.mask
        if masks is not None and np.ndim(masks) == 2:
            masks = Repeated(np.asarray(masks))
        known = list(_known(len(spans)))
        yield from known
        rest, journal = spans[len(known) :], current_journal()
        began, first = time.perf_counter(), rest[0][0] if rest else 0
        # Images without weight are searched for, too, but must not bear on anything.
        weights = np.maximum(self.weights, NOTHING * self.weights.max())
        found = self.place.run(sweep, self.stack, rest, weights, lam, masks)
        for (_, end), seen in zip(rest, found, strict=True):
            if journal is not None:
                journal.put(BLOCK, SeenCodec().pack(seen))
            if tell is not None:
                tell(end, (end - first) / max(1e-9, time.perf_counter() - began))
            yield seen


def _known(count: int) -> Iterator[Seen]:
    """Blocks of a pass that an earlier run has seen."""
    journal = current_journal()
    for _ in range(count if journal is not None else 0):
        assert journal is not None
        record = journal.take(BLOCK)
        if record is None:
            return
        yield SeenCodec().unpack(record)


@dataclass(frozen=True)
class Repeated:
    """One mask for all images, to be sliced like many."""

    mask: np.ndarray

    def __getitem__(self, rows: Any) -> np.ndarray:
        """The mask, whatever is asked for."""
        return self.mask


class Swept(NamedTuple):
    """What a whole pass tells."""

    lam: np.ndarray
    square: np.ndarray
    gain: np.ndarray
    offset: np.ndarray
    error: float
    energy: float
    sums: Any


class LearnedStack(NamedTuple):
    """A run, and what its last pass told."""

    learned: Learned
    last: Swept
    problem: Problem
    """The images that were learned from first, with the scales of loss and prior."""


def learn_stack(
    source: Source,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern,
    callback: Callback | None = None,
    warm: Pattern | None = None,
) -> LearnedStack:
    """Learn from a part, settle on all images, and find λ of all of them."""
    index = source.part
    if isinstance(reference, int):
        index = np.union1d(index, [reference])
    problem = source.some(index)
    if isinstance(reference, int):
        reference = int(np.searchsorted(index, reference))
        problem = replace(problem, anchor=reference)
    begin = reference if warm is None else _state(problem, settings, warm)
    learned = run(problem, settings, begin, callback)
    problem = with_terms(problem, *learned.state[:2])
    settling = Settling(source, settings, callback, learned.state.error / problem.energy)
    settling.use(problem)
    pattern, lam, reason = learned.state.pattern, None, learned.reason
    few = len(index) == len(source.stack)
    if not few and reason not in STOPPED and settings.refit == "all":
        pattern, lam, reason = settling.on_all(problem, pattern, reason)
        state = State(pattern, lam[index], problem.error(pattern, lam[index]))
        state = tidied(problem, settings, state, begin)
        learned = learned._replace(state=state, reason=reason)
        problem = with_terms(problem, *state[:2])  # the frame of λ may have moved
        settling.use(problem)
    last = settling.last(learned.state.pattern, lam)
    scale = last.error / learned.path[-1] if learned.path and learned.path[-1] else 1.0
    path = [scale * error for error in learned.path]
    state = learned.state._replace(lam=last.lam, error=last.error)
    return LearnedStack(learned._replace(state=state, path=path), last, problem)


def part_of(stack: Stack) -> np.ndarray:
    """Images from which a pattern is learned first."""
    each = stack.shape[1] * stack.shape[2] * stack.floats.itemsize
    return stack.part(max(FEWEST, min(PART, PART_BYTES // each)))


def _state(problem: Problem, settings: Settings, pattern: Pattern) -> State:
    """The state of an earlier pattern on other images."""
    seen = Sweep(_model_of(problem), pattern, equations=False).look(problem, None)
    return State(pattern, seen.lam, float((problem.weights * seen.square).sum()))


def _model_of(problem: Problem) -> Model:
    images = problem.observations
    return Model(images.grid, problem.transformation, problem.family, images.lighting)


@dataclass
class Settling:
    """Passes over all images."""

    source: Source
    settings: Settings
    callback: Callback | None
    error: float
    """The last that is known, normalised."""
    told: float = 0.0

    def use(self, problem: Problem) -> None:
        """Take the scales of loss and prior from images that were learned from."""
        model = replace(self.source.model, terms=problem.terms)
        self.source = replace(self.source, model=model)

    def on_all(
        self, problem: Problem, pattern: Pattern, reason: str
    ) -> tuple[Pattern, np.ndarray, str]:
        """Move the atoms, one step for each pass, as long as that lowers E."""
        best = self._sweep(pattern, None, "pass 1", True)
        best_pattern, damping = pattern, FIRST_DAMPING
        for k in range(1, PASSES):
            trial = stepped(best.sums, best_pattern, problem, damping)
            try:
                check_interrupts()
                found = self._sweep(trial, best.lam, f"pass {k + 1}", False)
            except KeyboardInterrupt:
                return best_pattern, best.lam, INTERRUPTED
            gained = 1 - found.error / best.error if best.error else 0.0
            if gained > 0:
                best_pattern, best, damping = trial, found, damping * LESS
            else:
                damping *= MORE
            if self._report(best_pattern, f"settled in {k + 1} passes over all images"):
                return best_pattern, best.lam, ASKED_TO_STOP
            if 0 <= gained < ENOUGH:
                break
        return best_pattern, best.lam, reason

    def last(self, pattern: Pattern, lam: np.ndarray | None) -> Swept:
        """λ of all images, searched over the whole box."""
        return self._sweep(pattern, lam, "last pass", True, equations=False)

    def _sweep(
        self,
        pattern: Pattern,
        lam: np.ndarray | None,
        name: str,
        everywhere: bool,
        equations: bool = True,
    ) -> Swept:
        sweep = Sweep(self.source.model, pattern, everywhere, equations, self.settings.effort)
        seen, sums = [], None
        for part in self.source.all(sweep, lam, self._teller(pattern, name)):
            if part.sums is not None:  # added at once: there may be very many blocks
                sums = part.sums if sums is None else added([sums, part.sums])
            seen.append(part._replace(sums=None))
        lam, square, gain, offset = (
            np.concatenate([getattr(part, field) for part in seen])
            for field in ("lam", "square", "gain", "offset")
        )
        error = float(sum(part.error[0] for part in seen))
        energy = float(sum(part.energy[0] for part in seen))
        self.error = error / energy
        return Swept(lam, square, gain, offset, error, energy, sums)

    def _teller(self, pattern: Pattern, name: str) -> Any:
        """Tell now and then how many images were seen, how fast, and how long it will take."""
        total = len(self.source.stack)

        def tell(done: int, rate: float) -> None:
            if time.perf_counter() - self.told < TOLD_EVERY or done == total:
                return
            left = (total - done) / rate
            stage = f"{name}: {done} of {total} images, {rate:.0f}/s, {left:.0f} s left"
            self._report(pattern, stage)

        return tell

    def _report(self, pattern: Pattern, stage: str) -> bool:
        self.told = time.perf_counter()
        report = Reporter(self.callback, len(self.source.stack), self.settings.n_atoms)
        return report(pattern.n_atoms, self.error, stage)


def _mask_rows(mask: Any, index: np.ndarray) -> np.ndarray:
    """Masks of some images."""
    if np.ndim(mask) == 2:
        return np.asarray(mask)
    return np.concatenate([np.asarray(mask[int(i) : int(i) + 1]) for i in index])
