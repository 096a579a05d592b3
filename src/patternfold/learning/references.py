"""Reference patterns Ψ, on whose manifold the images are first projected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from patternfold.learning.mean_image import distances_to_mean
from patternfold.learning.observations import Observations
from patternfold.learning.pats import learn
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.state import INTERRUPTED, State
from patternfold.model.pattern import Pattern

REFERENCE_ATOMS, PIXELS_PER_ATOM = 8, 8
"""Most atoms of the reference pattern that stands for an image, and least pixels for each."""


def reference_in(
    problem: Problem,
    part: Problem,
    index: np.ndarray,
    reference: str | int | np.ndarray | Pattern | State,
) -> str | int | np.ndarray | Pattern | State:
    """The reference of all images, or the state to go on from, for a part of them."""
    if isinstance(reference, int):
        own = part.anchor if reference == problem.anchor else None
        return problem.observations.image(reference) if own is None else own
    if isinstance(reference, State):
        lam = reference.lam[index]
        return State(reference.pattern, lam, part.error(reference.pattern, lam))
    return reference


def reference_patterns(
    problem: Problem, settings: Settings, reference: str | int | np.ndarray | Pattern
) -> list[Pattern]:
    """Return the patterns Ψ to start from: the one asked for, and others for safety."""
    if isinstance(reference, Pattern):
        return [reference]
    if isinstance(reference, np.ndarray):
        return [pattern_from_image(reference, problem, seed=settings.seed)]
    indices = reference_images(problem, reference, settings.n_starts)
    return [pattern_from_image(i, problem, seed=settings.seed) for i in indices]


def reference_images(problem: Problem, reference: str | int, n_starts: int) -> list[int]:
    """Indices of the images to start from: the one asked for, and others spread over the set."""
    distance = distances_to_mean(problem.observations)
    order = np.argsort(distance, kind="stable")
    named = {"centroid": order[0], "farthest": order[-1]}
    first = int(named[reference] if isinstance(reference, str) else reference)
    if n_starts == 1:
        return [first]
    # Both ends of the order come first, so that it does not matter which of them was asked for.
    spread = np.linspace(0, len(order) - 1, n_starts).round().astype(int)
    others = [int(i) for i in order[[spread[0], spread[-1], *spread[1:-1]]]]
    wanted = others if isinstance(reference, str) else [first, *others]
    return list(dict.fromkeys(wanted))[:n_starts]


def pattern_from_image(image: int | np.ndarray, problem: Problem, seed: int = 0) -> Pattern:
    """Approximate an image, or that of an index, by a pattern in its own frame: the paper's Ψ."""
    identity = problem.transformation.parameters.put_inside(problem.transformation.identity)
    # In a chunk as large as the others, so that compiled code is shared.
    images = problem.observations
    size = len(images.chunks[0].images)
    if isinstance(image, np.ndarray):
        alone = Observations.of(
            "reference", image.reshape(1, -1), problem.grid, None, images.lighting
        )
        alone = alone.take(np.zeros(1, int), np.ones(1), size)
    else:
        alone = images.take(np.array([image]), np.ones(1), size)
    alone = replace(problem, observations=alone, anchor=0)
    start = State(problem.empty, identity[None].astype(images.dtype), alone.energy)
    settings = Settings(
        min(REFERENCE_ATOMS, max(1, problem.grid.n_pixels // PIXELS_PER_ATOM)),
        tangent_refinement=False,
        projection="fixed",
        settle=False,
        correct_every=4,  # the reference is only a start
        seed=seed,
    )
    learned = learn(alone, settings, start)
    if learned.reason == INTERRUPTED:
        raise KeyboardInterrupt  # a reference is nothing to end with
    return learned.state.pattern
