"""Many images: a pattern grows on some that stand for all, and settles on all of them.

What the next atom should be, some dozens of images tell as well as a thousand; what its parameters
should be in the end, and where every image lies, all of them tell. Growing takes many passes over
the images and settling few: the time for a pattern hardly depends on the number of images.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from patternfold.learning.codecs import StateCodec
from patternfold.learning.journal import recorded
from patternfold.learning.observations import distances_to_mean
from patternfold.learning.pats import correct_at_length, update_parameters
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.retune import retuned
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern

GROWN_ON = 64
"""Images on which a pattern grows."""

MANY = 1.5
"""Below so many times that number all images take part at once: little would be gained."""

ROUNDS, ENOUGH = 3, 5e-3
"""Most corrections on all images, and the share of E that the next one must be worth."""


def representatives(problem: Problem, settings: Settings) -> tuple[np.ndarray, np.ndarray] | None:
    """Images that stand for all, as indices and weights; None if all are to take part.

    They are spread evenly, by weight, over the images in the order of their distance to the mean,
    so that the choice does not depend on the order in which images are given.
    """
    possible = settings.refit == "all" and settings.settle and settings.projection == "global"
    if not possible or len(problem.observations) < MANY * GROWN_ON:
        return None
    order = np.argsort(distances_to_mean(problem.observations), kind="stable")
    reached = np.cumsum(problem.weights[order])
    share = reached[-1] / GROWN_ON
    places = np.searchsorted(reached, share * (np.arange(GROWN_ON) + 0.5))
    if problem.anchor is not None:  # in place of the one that is most like it
        own = np.argmin(np.abs(places - np.flatnonzero(order == problem.anchor)[0]))
        places[own] = np.flatnonzero(order == problem.anchor)[0]
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
