"""Many images: a pattern grows on some that stand for all, and settles on all of them.

What the next atom should be, some dozens of images tell as well as a thousand; what its parameters
should be in the end, and where every image lies, all of them tell. Growing takes many passes over
the images and settling few: the time for a pattern hardly depends on the number of images. Where
they are very many, it settles at length on some hundreds first, and in a few passes on all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from patternfold.learning.codecs import StateCodec
from patternfold.learning.journal import recorded
from patternfold.learning.mean_image import distances_to_mean
from patternfold.learning.pats import correct_at_length, update_parameters
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.retune import retuned
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern

GROWN_ON = 64
"""Images on which a pattern grows."""

SETTLED_ON, SETTLED_BYTES = 15 * GROWN_ON, 2**28
"""Images on which it settles at length, fewer where that many would be larger than this: an odd
multiple of the others, which are then among them."""

MANY = 1.5
"""Below so many times that number all images take part at once: little would be gained."""

ROUNDS, ENOUGH = 3, 5e-3
"""Most corrections on all images, and the share of E that the next one must be worth."""


@dataclass(frozen=True)
class Part:
    """Images that stand for more: weighed so, and where they are among them."""

    problem: Problem
    index: np.ndarray


def part_of(problem: Problem, settings: Settings) -> Part | None:
    """Images on which a pattern settles before it does so on all; None if all take part at once."""
    images = problem.observations
    count = settled_on(problem.grid.n_pixels * images.dtype.itemsize)
    if not _possible(settings) or len(images) < MANY * count:
        return None
    distances = distances_to_mean(images)
    index, weights = spread(distances, problem.weights, count, problem.anchor)
    return Part(replace(problem.part(index, weights), distances=distances[index]), index)


def settled_on(bytes_per_image: int) -> int:
    """Number of images on which a pattern settles at length."""
    times = min(SETTLED_ON, SETTLED_BYTES // max(1, bytes_per_image)) // GROWN_ON
    return GROWN_ON * max(1, times - (times + 1) % 2)


def _possible(settings: Settings) -> bool:
    """Whether all images settle in the end, so that some may grow the pattern."""
    return settings.refit == "all" and settings.settle and settings.projection == "global"


def representatives(problem: Problem, settings: Settings) -> tuple[np.ndarray, np.ndarray] | None:
    """Images on which a pattern grows, as indices and weights; None if all are to take part."""
    if not _possible(settings) or len(problem.observations) < MANY * GROWN_ON:
        return None
    distances = problem.distances
    if distances is None:
        distances = distances_to_mean(problem.observations)
    return spread(distances, problem.weights, GROWN_ON, problem.anchor)


def spread(
    distances: np.ndarray, weights: np.ndarray, count: int, anchor: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Images that stand for all, as ascending indices and weights.

    They are spread evenly, by weight, over the images in the order of their distance to the mean,
    so that the choice does not depend on the order in which images are given.
    """
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(weights[order])
    share = reached[-1] / count
    places = np.searchsorted(reached, share * (np.arange(count) + 0.5))
    if anchor is not None:  # in place of the one that is most like it
        own = np.argmin(np.abs(places - np.flatnonzero(order == anchor)[0]))
        places[own] = np.flatnonzero(order == anchor)[0]
    chosen, times = np.unique(order[places], return_counts=True)
    return chosen, times * share


def settle_on_all(
    problem: Problem, settings: Settings, pattern: Pattern, lam: np.ndarray
) -> Iterator[State]:
    """Find λ of all images and correct the pattern on them, in turn, while that lowers E.

    Yields each better state. ``lam`` is where the search of λ may start: known for some images,
    anything for the others.
    """
    codec = StateCodec(problem.empty)

    def located(own: Problem, pattern: Pattern, lam: np.ndarray) -> State:
        how = (own, settings, "global", pattern, lam)
        return recorded("located", codec, update_parameters, *how)

    state = located(problem, pattern, lam)
    for _ in range(ROUNDS):
        # A search during learning takes few steps: the next one goes on where it ended.
        problem, state = retuned(problem, located(problem, *state[:2]))
        yield state
        before = state.error
        state = recorded("settled", codec, correct_at_length, problem, settings, state)
        if state.error > (1 - ENOUGH) * before:
            break
    yield located(problem, *state[:2])
