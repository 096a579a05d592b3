"""Several patterns for a class: its images in parts, each with a pattern of its own.

A class that is no single pattern is split as a mixture is: images far from one another, whatever
their transformations, are what its parts begin with. From then on each part is learned as a class
is, but decisions are between classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from patternfold.learning.coarse import coarsened
from patternfold.learning.frame import Frame, rotation
from patternfold.learning.joint import JointProblem, JointState, cross_project
from patternfold.learning.mixture.assign import Assigner
from patternfold.learning.mixture.parts import PartSettings, learn_parts
from patternfold.learning.observations import Observations
from patternfold.learning.pats import correct_at_length
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.project.locate import locate
from patternfold.learning.state import State
from patternfold.model import manifold
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractAffineTransformation

ROUNDS = 3
"""Most times that images go to the nearest pattern of their class and patterns follow them."""

FEW_MOVED = 0.01
"""Share of the images that must have changed sides for another round to be worth it."""


def pattern_names(names: Sequence[str], owners: Sequence[int]) -> list[str]:
    """Name patterns after their classes: "3" if it has one, else "3 (1 of 2)"."""
    counts, seen, named = np.bincount(owners, minlength=len(names)), [0] * len(names), []
    for c in owners:
        seen[c] += 1
        named.append(names[c] if counts[c] == 1 else f"{names[c]} ({seen[c]} of {counts[c]})")
    return named


def in_parts(problem: JointProblem, counts: Sequence[int], seed: int) -> JointProblem:
    """Split each class into so many parts, or as many as its images make."""
    if max(counts, default=1) == 1:
        return problem
    places, owners = np.empty(len(problem.labels), int), []
    for c, count in enumerate(counts):
        own = np.flatnonzero(problem.labels == c)
        part = parts_of(problem.all.part(own), count, seed)
        places[own] = part + len(owners)
        owners += [c] * (int(part.max()) + 1)
    return replace(problem, owners=tuple(owners), places=places)


def parts_of(problem: Problem, count: int, seed: int) -> np.ndarray:
    """The part of each image, 0, 1, ..., the largest first."""
    images = small(problem.observations)
    if count == 1 or len(images) == 1:
        return np.zeros(len(images), int)
    found = learn_parts(Assigner(images, problem.transformation), PartSettings(count, seed=seed))
    part = found.nearest.part[:, 0]
    size = np.bincount(part, images.weights, len(found.pictures))
    return np.argsort(np.argsort(-size, kind="stable"), kind="stable")[part]


def small(images: Observations) -> Observations:
    """The images, large ones on few pixels: parts are told apart by what is coarse."""
    smaller = coarsened(images)
    return images if smaller is None else smaller


def settled(
    problem: JointProblem, settings: Settings, state: JointState
) -> tuple[JointProblem, JointState]:
    """Give each image to the nearest pattern of its class and correct the patterns, in turn.

    E, with each image at the nearest pattern of its class, never rises. Patterns without images
    are left out, and those of a class face the same way in the end.
    """
    if problem.places is None:
        return problem, state
    for _ in range(ROUNDS if settings.refit == "all" else 0):
        moved = problem.reassigned(state)
        if moved is problem or (moved.places != problem.places).mean() < FEW_MOVED:
            break
        found = [_followed(moved, settings, state, m) for m in range(moved.n_patterns)]
        lam = state.lam.copy()
        for m, (_, own, _) in enumerate(found):
            lam[moved.own(m), m] = own
        # Frames may have moved: what the λ of other images were says little.
        patterns = tuple(pattern for pattern, _, _ in found)
        new = cross_project(moved, patterns, settings.effort, lam, everywhere=True)
        problem = moved
        if new.errors(moved)[1] >= state.errors(moved)[1]:
            break
        state = new
    problem, state = without_empty(problem.reassigned(state), state)
    return problem, facing_one_way(problem, settings, state)


def _followed(problem: JointProblem, settings: Settings, state: JointState, m: int) -> State:
    """A pattern corrected on the images that are its own now, and their λ."""
    index, pattern = problem.own(m), state.patterns[m]
    own, lam = problem.classes[m], state.lam[index, m]
    here = State(pattern, lam, own.error(pattern, lam) if len(index) else 0.0)
    return correct_at_length(own, settings, here) if len(index) and pattern.n_atoms else here


def without_empty(problem: JointProblem, state: JointState) -> tuple[JointProblem, JointState]:
    """Leave out patterns that no image belongs to."""
    if problem.places is None or problem.owners is None:
        return problem, state
    kept = np.flatnonzero(np.bincount(problem.places, minlength=problem.n_patterns) > 0)
    if len(kept) == problem.n_patterns:
        return problem, state
    owners = tuple(problem.owners[m] for m in kept)
    terms = None if problem.terms is None else tuple(problem.terms[m] for m in kept)
    places = np.searchsorted(kept, problem.places)
    patterns = tuple(state.patterns[m] for m in kept)
    state = JointState(patterns, state.lam[:, kept], state.squares[:, kept], owners)
    return replace(problem, owners=owners, places=places, terms=terms), state


def facing_one_way(problem: JointProblem, settings: Settings, state: JointState) -> JointState:
    """Turn the patterns of a class towards its first one, so that views of them can be compared.

    λ of all images turn with them, and no image of a manifold changes. A pattern stays as it is
    where the family has no such turns.
    """
    family, owners = problem.all.transformation, problem.class_of
    if not isinstance(family, AbstractAffineTransformation):
        return state
    patterns, lam = list(state.patterns), state.lam.copy()
    for m, c in enumerate(owners):
        first = owners.index(c)
        if m == first or not patterns[m].n_atoms or not patterns[first].n_atoms:
            continue
        seen = _pose_on(problem.all, settings, patterns[m], patterns[first])
        angle = float(Frame(family, patterns[first], seen).angles[0])
        frame = Frame(family, patterns[m], lam[:, m].astype(np.float64))
        turned = frame.moved(rotation(angle), np.zeros(2))
        if turned is not None:
            patterns[m], lam[:, m] = turned.pattern, turned.lam
    return replace(state, patterns=tuple(patterns), lam=lam)


def _pose_on(problem: Problem, settings: Settings, pattern: Pattern, first: Pattern) -> np.ndarray:
    """λ (1, d) for which the first pattern is most like the other one."""
    family, images = problem.transformation, problem.observations
    identity = family.parameters.put_inside(family.identity)[None]
    picture = manifold.render(pattern, identity, family, images.grid.shape)
    # In a chunk as large as those of the images, so that compiled code is shared.
    shown = Observations.put(
        picture.reshape(1, -1).astype(images.dtype),
        images.grid,
        size=len(images.chunks[0].images),
        lighting=images.lighting,
    )
    lam = locate(shown, [first], family, settings.effort, describe=False).lam[:, 0]
    return lam.astype(np.float64)
