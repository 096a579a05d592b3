"""Passes over all images: each finds every λ_i, and adds up how the atoms should move.

What some images tell of a pattern is near what all of them would. From there on a pass improves
each image's λ and adds up the equations in which the λ_i are eliminated: one step of all atoms.
It makes no difference whether the images are in memory or read block by block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.coarse import coarse_grid
from patternfold.learning.effort import LEARNING, Effort
from patternfold.learning.journal import Record, recorded
from patternfold.learning.problem import Problem
from patternfold.learning.project.locate import locate
from patternfold.learning.refit.eliminate import Reduced, held_parameters, solve_damped
from patternfold.learning.terms import Terms
from patternfold.model.pattern import Pattern

DAMPING = 1e-3
"""Of λ while it is eliminated: near a minimum, as it is here, hardly any is needed."""

Told = Callable[[int, float], None]
"""Told the number of images that were seen, and how many that was in a second."""


class Seen(NamedTuple):
    """What a pass tells: of each image, and sums over the images."""

    lam: np.ndarray
    """(B, d)."""
    square: np.ndarray
    """‖u − U_λ(p)‖², (B,)."""
    gain: np.ndarray
    offset: np.ndarray
    energy: np.ndarray
    """Σ w‖u‖², as an array of one number."""
    error: np.ndarray
    """E, likewise."""
    sums: Reduced | None = None


@dataclass(frozen=True)
class Look:
    """Find λ, and add up the equations of the atoms if they are to move.

    ``everywhere`` searches over the whole box, otherwise near the λ that are known.
    """

    pattern: Pattern
    everywhere: bool = True
    equations: bool = True
    effort: Effort = LEARNING

    def __call__(self, problem: Problem, lam: np.ndarray | None) -> Seen:
        """Return what is seen in images that are on the devices."""
        observations = problem.observations
        if self.everywhere and coarse_grid(observations.grid) is not None:
            lam = None  # large images are searched for on cells, from nothing
        start = None if lam is None else lam[:, None]
        found = locate(
            observations,
            [self.pattern],
            problem.transformation,
            self.effort,
            start,
            self.everywhere or start is None,
            describe=False,
            terms=None if problem.terms is None else [problem.terms],
        )
        own: np.ndarray = found.lam[:, 0]
        sums = None
        if self.equations:
            equations = problem.equations(self.pattern, own, problem.sparse, True)
            sums = equations.reduced(DAMPING)
        gain, offset = problem.light(self.pattern, own)
        square = found.square[:, 0]
        error = problem.total(square.astype(np.float64))
        energy = np.asarray([observations.energy])
        return Seen(own, square, gain, offset, energy, np.asarray([error]), sums)


class SeenCodec:
    """What was seen as arrays, for checkpoints."""

    def pack(self, value: Seen) -> Record:
        """Return the arrays."""
        record = {name: getattr(value, name) for name in Seen._fields if name != "sums"}
        if value.sums is None:
            return record
        return record | {f"sums_{name}": part for name, part in value.sums._asdict().items()}

    def unpack(self, record: Record) -> Seen:
        """Return what was seen."""
        own = {name: record[name] for name in Seen._fields if name != "sums"}
        known = "sums_cost" in record
        parts = [record[f"sums_{name}"] for name in Reduced._fields] if known else []
        return Seen(**own, sums=Reduced(*parts) if known else None)


class Whole(ABC):
    """All images, of which a part was learned from first."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of images."""

    @abstractmethod
    def with_terms(self, terms: Terms | None) -> Whole:
        """The same images with loss and prior at the scales of some residuals."""

    @abstractmethod
    def seen(self, look: Look, lam: np.ndarray | None, tell: Told) -> Seen:
        """Look at every image once."""


@dataclass(frozen=True)
class InMemory(Whole):
    """Images that are on the devices."""

    problem: Problem

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.problem.observations)

    def with_terms(self, terms: Terms | None) -> InMemory:
        """The same images with loss and prior at the scales of some residuals."""
        return InMemory(replace(self.problem, terms=terms))

    def seen(self, look: Look, lam: np.ndarray | None, tell: Told) -> Seen:
        """Look at all of them at once."""
        return recorded("pass", SeenCodec(), look, self.problem, lam)


def joined(parts: list[Seen], sums: Reduced | None) -> Seen:
    """What was seen in several blocks, with the sums over all of them."""
    lam, square, gain, offset = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("lam", "square", "gain", "offset")
    )
    energy, error = (
        np.asarray([sum(getattr(part, name)[0] for part in parts)]) for name in ("energy", "error")
    )
    return Seen(lam, square, gain, offset, energy, error, sums)


def added(parts: list[Reduced]) -> Reduced:
    """Add equations in their order, in float64."""
    return reduce(lambda one, other: Reduced(*map(np.add, one, other)), parts)


def stepped(sums: Reduced, pattern: Pattern, problem: Problem, damping: float) -> Pattern:
    """The pattern after a damped step, the λ_i following by themselves."""
    box = problem.atom_box.containing(pattern.gamma)
    held = held_parameters(box, pattern.gamma, sums.slope)
    delta = solve_damped(sums, held, damping)[0].reshape(pattern.n_atoms, -1)
    gamma = box.put_inside(pattern.gamma + delta[:, :-1])
    return pattern.replace(pattern.coef + delta[:, -1], gamma)


def seen_in_part(part: Problem, pattern: Pattern, lam: np.ndarray) -> Seen:
    """What is seen in images whose λ are known."""
    gain, offset = part.light(pattern, lam)
    square = part.squares(pattern, lam)
    error = np.asarray([part.total(square)])
    return Seen(lam, square, gain, offset, np.asarray([part.energy]), error)


def spread_over(part: Seen, index: np.ndarray, count: int, identity: Any) -> Seen:
    """What is known of all images before any but those of a part were looked at."""
    lam = np.tile(np.asarray(identity, part.lam.dtype), (count, 1))
    square, gain, offset = np.zeros(count), np.ones(count), np.zeros(count)
    lam[index], square[index] = part.lam, part.square
    gain[index], offset[index] = part.gain, part.offset
    return Seen(lam, square, gain, offset, part.energy, part.error)
