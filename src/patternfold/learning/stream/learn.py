"""PATS out of core: what `learning.run` does with images in memory, on those of a stack.

The images that a pattern grows on, and settles on at length, are chosen from all and read at once.
From there on each pass reads every image once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from patternfold.learning.journal import Record, current_journal, recorded
from patternfold.learning.many import MANY, Part, settled_on, spread
from patternfold.learning.passes import Look, Seen, SeenCodec, Told, Whole, added, joined
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.settling import Settled, settle_in_passes, settled_alone
from patternfold.learning.start import run_at_length
from patternfold.learning.state import Callback, State
from patternfold.learning.stream.here import Here, Place, Task
from patternfold.learning.stream.stack import Stack
from patternfold.learning.stream.sweep import Distances, Model, PixelSums, Sweep
from patternfold.learning.terms import Terms
from patternfold.model.pattern import Pattern
from patternfold.numerics.threads import one_blas_thread

NOTHING = 1e-20
"""Share of the greatest weight that is as good as none."""

BLOCK = "block"
"""Name of the records of blocks in a checkpoint."""


@dataclass(frozen=True)
class Source(Whole):
    """A stack with weights, masks and the model it is compared with, and where that is done."""

    stack: Stack
    model: Model
    weights: np.ndarray
    mask: Any = None
    """(N, H, W), read as it is needed; or (H, W) for all images."""
    place: Place = field(default_factory=Here)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.stack)

    def with_terms(self, terms: Terms | None) -> Source:
        """The same images with loss and prior at the scales of some residuals."""
        return replace(self, model=replace(self.model, terms=terms))

    def part(self, anchor: int | None = None) -> Part:
        """Images to learn from at length; all that have a weight where they are not many."""
        index = np.flatnonzero(self.weights)
        count = part_size(self.stack)
        if len(index) < MANY * count:
            return self._some(index, self.weights[index], anchor)
        index, weights, distances = recorded("part", _Arrays(), self._spread, count, anchor)
        part = self._some(index, weights, anchor)
        return replace(part, problem=replace(part.problem, distances=distances))

    def _spread(self, count: int, anchor: int | None) -> tuple[np.ndarray, ...]:
        """Images that stand for all, their weights, and their distances to the mean of all."""
        sums = self.results(PixelSums(self.model))
        mean = sum(sums, np.zeros(self.model.grid.n_pixels)) / np.count_nonzero(self.weights)
        distances = np.concatenate(list(self.results(Distances(self.model, mean))))
        index, weights = spread(distances, self.weights, count, anchor)
        return index, weights, distances[index]

    def results(self, task: Task, *per_image: Any) -> Iterator[Any]:
        """Yield what a task of images, weights, rows and masks returns for each block."""
        rows = (self._sent(self.weights), *per_image, self._masks)
        return self.place.run(task, self.stack, self.stack.spans(), *rows)

    def _some(self, index: np.ndarray, weights: np.ndarray, anchor: int | None) -> Part:
        """Some images, in memory."""
        mask = None if self.mask is None else _mask_rows(self.mask, index)
        model = replace(self.model, block=len(index))
        problem = model.put(self.stack.take(index), weights, mask)
        place = None if anchor is None else np.flatnonzero(index == anchor)
        own = int(place[0]) if place is not None and len(place) else None
        return Part(replace(problem, anchor=own), index)

    def image(self, i: int) -> np.ndarray:
        """An image in the unit that is computed in."""
        row = self.stack.images(i, i + 1).reshape(-1).astype(self.stack.floats)
        return self.model.amplitude.lowered(row)

    def seen(self, look: Look, lam: np.ndarray | None, tell: Told) -> Seen:
        """Look at every image once, block by block."""
        seen, sums = [], None
        for part in self._blocks(Sweep(self.model, look), lam, tell):
            if part.sums is not None:  # added at once: there may be very many blocks
                sums = part.sums if sums is None else added([sums, part.sums])
            seen.append(part._replace(sums=None))
        return joined(seen, sums)

    def _blocks(self, sweep: Sweep, lam: np.ndarray | None, tell: Told) -> Iterator[Seen]:
        """Yield what is seen in each block, in their order."""
        spans = self.stack.spans()
        known = list(_known(len(spans)))
        yield from known
        rest, journal = spans[len(known) :], current_journal()
        began, first = time.perf_counter(), rest[0][0] if rest else 0
        # Images without weight are searched for, too, but must not bear on anything.
        weights = self._sent(np.maximum(self.weights, NOTHING * self.weights.max()))
        found = self.place.run(sweep, self.stack, rest, weights, lam, self._masks)
        for (_, end), seen in zip(rest, found, strict=True):
            if journal is not None:
                journal.put(BLOCK, SeenCodec().pack(seen))
            tell(end, (end - first) / max(1e-9, time.perf_counter() - began))
            yield seen

    def _sent(self, weights: np.ndarray) -> np.ndarray | None:
        """Weights as they go to where the work is done: not at all where all are 1."""
        return None if (weights == 1).all() else weights

    @property
    def _masks(self) -> Any:
        """Masks of all images, to be sliced as these are."""
        if self.mask is None or np.ndim(self.mask) != 2:
            return self.mask
        return Repeated(np.asarray(self.mask))


def _known(count: int) -> Iterator[Seen]:
    """Blocks of a pass that an earlier run has seen."""
    journal = current_journal()
    for _ in range(count if journal is not None else 0):
        assert journal is not None
        record = journal.take(BLOCK)
        if record is None:
            return
        yield SeenCodec().unpack(record)


class _Arrays:
    """Arrays as they are, for checkpoints."""

    def pack(self, value: tuple[np.ndarray, ...]) -> Record:
        """Return them by their number."""
        return {str(k): part for k, part in enumerate(value)}

    def unpack(self, record: Record) -> tuple[np.ndarray, ...]:
        """Return them in their order."""
        return tuple(record[str(k)] for k in range(len(record)))


@dataclass(frozen=True)
class Repeated:
    """One mask for all images, to be sliced like many."""

    mask: np.ndarray

    def __getitem__(self, rows: Any) -> np.ndarray:
        """The mask, whatever is asked for."""
        return self.mask


def learn_stack(
    source: Source,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern,
    callback: Callback | None = None,
    warm: Pattern | None = None,
) -> Settled:
    """Learn from a part, settle on all images, and find λ of all of them."""
    part = source.part(reference if isinstance(reference, int) else None)
    begin: Any = reference
    if isinstance(reference, int):
        begin = part.problem.anchor
        if begin is None:  # it has no weight
            begin = source.image(reference)
    if warm is not None:
        begin = _state(part.problem, warm)
    learned = run_at_length(part.problem, settings, begin, callback)
    if len(part.index) == len(source):
        return settled_alone(part.problem, learned)
    with one_blas_thread():
        return settle_in_passes(part, source, settings, learned, begin, callback)


def part_size(stack: Stack) -> int:
    """Number of images from which a pattern is learned at length."""
    return settled_on(stack.shape[1] * stack.shape[2] * stack.floats.itemsize)


def _state(problem: Problem, pattern: Pattern) -> State:
    """The state of an earlier pattern on other images."""
    seen = Look(pattern, equations=False)(problem, None)
    return State(pattern, seen.lam, float((problem.weights * seen.square).sum()))


def _mask_rows(mask: Any, index: np.ndarray) -> np.ndarray:
    """Masks of some images."""
    if np.ndim(mask) == 2:
        return np.asarray(mask)
    return np.concatenate([np.asarray(mask[int(i) : int(i) + 1]) for i in index])
