"""How many patterns a class has: as many as bring images nearer that took no part.

A further pattern always lowers the error of the images that are learned from, in the end by having
one for each. It is judged on images held out, with pictures of parts, which are averages of aligned
images, in place of patterns: they are at hand much sooner and tell the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from patternfold.learning.mixture.assign import Assigner
from patternfold.learning.mixture.parts import PartSettings, learn_parts, relative
from patternfold.learning.problem import Problem
from patternfold.learning.several import small

MOST_CHOSEN = 8
"""Most patterns that are chosen for a class."""

N_FOLDS = 3
"""Each image is held out once, by parts of all other folds."""

PER_PATTERN = 8
"""Least images for each pattern: fewer hardly say what they have in common."""

MOST_JUDGED = 240
"""Images by which the number is chosen, evenly spread where there are more."""

WORTH = 0.05
"""A pattern is worth having if it lowers the error of images held out by this share."""

PATIENCE = 2
"""Numbers in a row that bring nothing before no higher ones are tried."""


def chosen_count(problem: Problem, seed: int) -> int:
    """The number of patterns for the images of a class."""
    errors: list[float] = []
    for error in held_out_errors(problem, seed):
        errors.append(error)
        if len(errors) - best_count(errors) >= PATIENCE:
            break
    return best_count(errors) if errors else 1


def best_count(errors: list[float]) -> int:
    """The least number such that each pattern beyond it is worth less than it must be."""
    further = np.arange(len(errors))
    return int(np.argmin(np.array(errors) * (1 - WORTH) ** -further)) + 1


def held_out_errors(problem: Problem, seed: int) -> Iterator[float]:
    """Yield the error of images held out with 1, 2, ... parts."""
    images = small(problem.observations)
    rng = np.random.default_rng(seed)
    shown = rng.permutation(len(images))[:MOST_JUDGED]
    most = min(MOST_CHOSEN, (len(shown) - len(shown) // N_FOLDS) // PER_PATTERN)
    folds = np.arange(len(shown)) % N_FOLDS
    parts = [
        (images.take(shown[folds != k]), images.take(shown[folds == k])) for k in range(N_FOLDS)
    ]
    for count in range(1, most + 1):
        errors = []
        for some, held in parts:
            assigner = Assigner(some, problem.transformation)
            pictures = learn_parts(assigner, PartSettings(count, seed=seed)).pictures
            nearest = replace(assigner, observations=held).nearest(pictures, 1)
            errors.append(float((held.weights * relative(held, nearest.square)[:, 0]).sum()))
        yield sum(errors)
