"""What is done to a pattern once it is learned: nothing that changes the images."""

from __future__ import annotations

import numpy as np

from patternfold.learning.axes import final_frame, framed_as
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern


def tidied(
    problem: Problem,
    settings: Settings,
    state: State,
    reference: str | int | np.ndarray | Pattern | State,
) -> State:
    """The same images from fewer atoms, if some are idle, in a frame and a light that are fixed."""
    state = state._replace(pattern=drop_idle_atoms(problem, state.pattern, state.lam))
    state = final_frame(problem, settings, state)
    if problem.anchor is None and not isinstance(reference, str | int | State):
        if isinstance(reference, Pattern):
            reference = reference.render(problem.grid, problem.observations.dtype).ravel()
        state = framed_as(problem, settings, state, reference)
    return state._replace(pattern=in_mean_light(problem, *state[:2]))


def in_mean_light(problem: Problem, pattern: Pattern, lam: np.ndarray) -> Pattern:
    """The pattern as bright as the images on average: gains can't tell how bright it is."""
    if not problem.observations.lighting.gain or not pattern.n_atoms:
        return pattern
    mean = float(np.average(problem.light(pattern, lam)[0], weights=problem.weights))
    return pattern.replace(pattern.coef * mean, pattern.gamma) if mean > 0 else pattern


def drop_idle_atoms(problem: Problem, pattern: Pattern, lam: np.ndarray) -> Pattern:
    """Leave out atoms without which E stays the same to rounding."""
    if pattern.n_atoms < 2:
        return pattern
    error, scale = problem.error(pattern, lam), problem.energy
    for j in reversed(range(pattern.n_atoms)):
        others = pattern.take(np.arange(pattern.n_atoms) != j)
        if others.n_atoms and problem.error(others, lam) <= error + 1e-9 * scale:
            pattern = others
    return pattern
