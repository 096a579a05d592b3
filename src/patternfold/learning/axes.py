"""Which way is up: the frame in which a pattern is learned, and the one in which it is shown.

A family that stretches images along the pattern's own axes, and is no group, fits better in one
frame than in another. The joint correction turns the axes only a little; here all directions are
tried.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from patternfold.learning.effort import EFFORTS
from patternfold.learning.frame import (
    NO_SHIFT,
    QUARTER,
    Frame,
    centre_of_mass,
    fix_frame,
    orientation,
    rotation,
)
from patternfold.learning.observations import Observations
from patternfold.learning.pats import correct, polished
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.project.locate import locate
from patternfold.learning.state import State
from patternfold.model.transformations import (
    AbstractAffineTransformation,
    AbstractTransformation,
)

N_DIRECTIONS = 8
"""Directions of the axes that are tried in a quarter of the circle; λ makes up for what is left."""

N_IMPROVED = 2
"""Of these, those that fit best as they are have their λ improved."""

ROUNDING = 100
"""Units in the last place by which images from moved atoms differ: some times 1/σ."""


def has_axes(problem: Problem, settings: Settings) -> bool:
    """Whether directions are worth trying: the family has axes, and nothing else fixes them."""
    moves = settings.refit == "all" and settings.projection != "fixed"
    return moves and _acts_along_axes(problem.transformation) and problem.anchor is None


def _acts_along_axes(family: AbstractTransformation) -> bool:
    """Whether turning the pattern, and every λ with it, changes the images that it can make."""
    pose, *others = family.parts
    if not isinstance(pose, AbstractAffineTransformation):
        return False
    return not pose.is_group or any(part.has_axes for part in others)


def best_axes(problem: Problem, settings: Settings, state: State) -> State:
    """Turn the axes to the images' mean orientation, or where the images fit best; E never rises.

    The mean orientation is corrected, too: where the images tell little about the axes, that brings
    it as low as any other.
    """
    if not isinstance(problem.transformation, AbstractAffineTransformation):
        return _best_axes_of_sum(problem, settings, state)
    frame = _frame(problem, state)
    mean = orientation(problem, frame)
    turned = frame.nearest(rotation(-mean), NO_SHIFT)
    upright = state if turned is None else _fitted(problem, settings, turned)
    upright = correct(problem, settings, upright)
    if upright.error <= state.error:
        return upright
    angles = mean + QUARTER / N_DIRECTIONS * np.arange(1, N_DIRECTIONS)
    moved = [frame.nearest(rotation(-angle), NO_SHIFT) for angle in angles]
    known = sorted((m for m in moved if m is not None), key=partial(_error, problem))
    tried = [_fitted(problem, settings, frame) for frame in known[:N_IMPROVED]]
    return min([state, *tried], key=lambda s: s.error)


def _best_axes_of_sum(problem: Problem, settings: Settings, state: State) -> State:
    """The same where the pattern is bent or the like before it is moved, in half of the circle.

    Turned, no image is what it was: λ is found again from where there is nothing but the pose.
    """
    pose, *others = problem.transformation.parts
    assert isinstance(pose, AbstractAffineTransformation)  # `has_axes` has looked
    own = pose.parameters.dim
    rest = np.concatenate([part.identity for part in others])
    frame = Frame(pose, state.pattern, state.lam[:, :own].astype(np.float64))
    tried = []
    for angle in 2 * QUARTER / N_DIRECTIONS * np.arange(N_DIRECTIONS):
        turned = frame.nearest(rotation(-angle), NO_SHIFT)
        if turned is not None:
            lam = np.column_stack([turned.lam, np.tile(rest, (len(turned.lam), 1))])
            lam = problem.transformation.parameters.put_inside(lam).astype(state.lam.dtype)
            tried.append(polished(problem, settings, turned.pattern, lam))
    best = sorted(tried, key=lambda s: s.error)[:N_IMPROVED]
    return min([state, *(correct(problem, settings, s) for s in best)], key=lambda s: s.error)


def final_frame(problem: Problem, settings: Settings, state: State) -> State:
    """The same images from a pattern that is centred and upright, or as its anchor is.

    E does not rise: where bounds of Λ are in the way the pattern is moved as far as they allow, or,
    if λ improved within them fits as well, all the way.
    """
    family = problem.transformation
    if not isinstance(family, AbstractAffineTransformation):
        return state
    pattern, lam = fix_frame(problem, *state[:2])
    if problem.anchor is not None:
        return lower(problem, state, State(pattern, lam, problem.error(pattern, lam)))
    state = State(pattern, lam, state.error)
    if family.translation is None:
        return state
    frame = _frame(problem, state)
    g = centre_of_mass(problem, frame)
    moved = frame.shifted(g)
    exact = State(moved.pattern, moved.lam.astype(lam.dtype), state.error)
    if frame.moved(np.eye(2), g) is not None:
        return exact
    whole = frame.nearest(np.eye(2), g)
    return exact if whole is None else lower(problem, exact, _fitted(problem, settings, whole))


def framed_as(problem: Problem, settings: Settings, state: State, image: np.ndarray) -> State:
    """The same images in a frame where an image, not one of them, has λ = identity.

    Where Λ lacks such members, and E would rise, as near to it as the family can exactly.
    """
    family = problem.transformation
    if not isinstance(family, AbstractAffineTransformation):
        return state
    lighting = problem.observations.lighting
    alone = Observations.of("reference", image.reshape(1, -1), problem.grid, None, lighting)
    own = locate(alone, [state.pattern], family, EFFORTS["normal"]).lam[:, 0]
    frame = Frame(family, state.pattern, np.concatenate([state.lam, own]).astype(np.float64))
    new = _fitted(problem, settings, _without_last(frame.with_identity(len(state.lam))))
    if lower(problem, state, new) is new:
        return new
    near = _without_last(_towards_last(frame))
    return State(near.pattern, near.lam.astype(state.lam.dtype), state.error)


def _towards_last(frame: Frame) -> Frame:
    """Move without any change to the images so that the last λ comes near the identity."""
    alone = np.arange(len(frame.lam)) == len(frame.lam) - 1
    frame = frame.turned(float(frame.angles[-1])).unstretched(alone.astype(np.float64))
    linear, shift = frame.motions
    return frame.shifted(-np.linalg.solve(linear[-1], shift[-1]))


def _without_last(frame: Frame) -> Frame:
    return replace(frame, lam=frame.lam[:-1])


def lower(problem: Problem, old: State, new: State) -> State:
    """The new state, unless its E is higher by more than rounding."""
    share = ROUNDING * np.finfo(problem.observations.dtype).eps
    slack = share * np.sqrt(max(old.error, 0.0) * problem.energy) + share**2 * problem.energy
    return new if new.error <= old.error + slack else old


def _frame(problem: Problem, state: State) -> Frame:
    family = problem.transformation
    assert isinstance(family, AbstractAffineTransformation)  # whoever calls has looked
    return Frame(family, state.pattern, state.lam.astype(np.float64))


def _error(problem: Problem, frame: Frame) -> float:
    """E as it is in a frame."""
    return problem.error(frame.pattern, frame.lam)


def _fitted(problem: Problem, settings: Settings, frame: Frame) -> State:
    """λ improved near that of a frame."""
    return polished(problem, settings, frame.pattern, frame.lam.astype(problem.observations.dtype))
