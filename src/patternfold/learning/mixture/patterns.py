"""Pictures of parts as patterns of atoms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from patternfold.learning.observations import Observations
from patternfold.learning.pats import learn
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.state import INTERRUPTED, State
from patternfold.model.pattern import Pattern
from patternfold.numerics.threads import one_blas_thread

PIXELS_PER_ATOM = 8
"""Least pixels for each atom: with fewer, atoms tell nothing that the pixels do."""


def as_patterns(
    problem: Problem, pictures: np.ndarray, n_atoms: int, seed: int = 0
) -> tuple[Pattern, ...]:
    """Approximate each picture by atoms, in its own frame."""
    images = problem.observations
    n_atoms = min(n_atoms, max(1, problem.grid.n_pixels // PIXELS_PER_ATOM))
    settings = Settings(
        n_atoms,
        tangent_refinement=False,
        projection="fixed",
        settle=False,
        correct_every=4,
        seed=seed,
    )
    identity = problem.transformation.parameters.put_inside(problem.transformation.identity)
    lam = identity[None].astype(images.dtype)
    patterns = []
    with one_blas_thread():
        for picture in pictures.astype(images.dtype):
            alone = Observations.put(picture[None], images.grid)
            own = replace(problem, observations=alone, anchor=0)
            learned = learn(own, settings, State(problem.empty, lam, own.energy))
            if learned.reason == INTERRUPTED:
                raise KeyboardInterrupt
            patterns.append(learned.state.pattern)
    return tuple(patterns)
