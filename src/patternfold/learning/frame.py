"""The frame of a pattern: fix what the images leave open.

Moving the pattern and all λ_i together, q(x) = p(D x + g) with F_i → F_i D and t_i → t_i + F_i g,
leaves every image U_λi(p) as it is. Runs compare, and people know which way is up, only once this
freedom is used up: a reference has λ = identity, or the images have it on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from patternfold.learning.motions import members, motions_of, nearest_members
from patternfold.learning.problem import Problem
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractAffineTransformation

SAME = 1e-5
"""How far F and t may be off: λ on a bound is rounded to it."""

HALVINGS = 8
"""Halvings of an interval to find how far a frame may move: to 1/256 of the way."""

SHORT_OF_BOUNDS = 0.95
"""Share of that way that is gone: λ on a bound looks as if more had been wanted."""

COMMON = 3.0
"""Least N R² for angles to have a mean direction, R their resultant: by chance alone 5 in 100 sets
of angles have more (Rayleigh's test)."""

MASS_NODES, MASS_WIDTH = 48, 1.5
"""Nodes along a side of the square on which a pattern's mass is summed, and half of that side."""

IMAGES_AT_ONCE = 64
"""Images whose windows are compared with these nodes at a time: a few megabytes."""

QUARTER = np.pi / 2
NO_SHIFT = np.zeros(2)


@dataclass(frozen=True)
class Frame:
    """A pattern and λ of all images in float64, which can be moved together."""

    family: AbstractAffineTransformation
    pattern: Pattern
    lam: np.ndarray

    @cached_property
    def motions(self) -> tuple[np.ndarray, np.ndarray]:
        """F (N, 2, 2) and t (N, 2) of all images."""
        return motions_of(self.family, self.lam)

    @property
    def angles(self) -> np.ndarray:
        """Angle of the rotation nearest to each F."""
        linear, _ = self.motions
        return np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])

    def parameters(self, linear: np.ndarray, shift: np.ndarray) -> np.ndarray | None:
        """λ after a change of frame; None where the family has no such members."""
        lam, wanted = self._candidates(linear, shift)
        found = motions_of(self.family, lam)
        same = all(np.abs(a - b).max() <= SAME for a, b in zip(found, wanted, strict=True))
        return lam if same else None

    def _candidates(
        self, linear: np.ndarray, shift: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """λ after a change of frame if the family has such members, and the F and t wanted."""
        before, t = self.motions
        wanted = before @ linear, t + before @ shift
        lam = self._widened(members(self.family, *wanted), linear)
        return self.family.parameters.wrap(lam), wanted

    def _widened(self, lam: np.ndarray, linear: np.ndarray) -> np.ndarray:
        """λ with the spreads of the atoms as they are, in the units of a frame stretched by D.

        F and t do not tell them; they are squares of lengths.
        """
        names = [name for part in self.family.parts for name in part.widening]
        columns = [self.family.parameters.index(name) for name in names]
        if columns:
            lam[:, columns] = self.lam[:, columns] / abs(np.linalg.det(linear))
        return lam

    def moved(self, linear: np.ndarray, shift: np.ndarray) -> Frame | None:
        """The same images from p(D x + g); None where Λ or the dictionary has no such members."""
        lam = self.parameters(linear, shift)
        if lam is None or not self.family.parameters.contains(lam).all():
            return None
        return self._with(lam, linear, shift)

    def _with(self, lam: np.ndarray, linear: np.ndarray, shift: np.ndarray) -> Frame | None:
        """The frame with λ after a change and its atoms, or None where the dictionary has none."""
        pattern = atoms_moved(self.pattern, linear, shift)
        return None if pattern is None else Frame(self.family, pattern, lam)

    def towards(self, change: Callable[[float], tuple[np.ndarray, np.ndarray]]) -> Frame:
        """Move by ``change(1)`` = (D, g), or by a share of it if the box Λ asks for that."""
        full, box = self.parameters(*change(1.0)), self.family.parameters
        if full is None:
            return self
        if box.contains(full).all():
            return self._with(full, *change(1.0)) or self
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            lam, _ = self._candidates(*change((low + high) / 2))
            inside = box.contains(lam).all()
            low, high = ((low + high) / 2, high) if inside else (low, (low + high) / 2)
        partly = self.moved(*change(SHORT_OF_BOUNDS * low)) if low else None
        return self if partly is None else partly

    def unstretched(self, weights: np.ndarray) -> Frame:
        """Take out the mean stretch: the mean of log √(FᵀF) is then 0, or nearly so."""
        linear, _ = self.motions
        values, vectors = np.linalg.eigh(linear.transpose(0, 2, 1) @ linear)
        logs = (vectors * np.log(values)[:, None, :] / 2) @ vectors.transpose(0, 2, 1)
        mean = np.average(logs, axis=0, weights=weights)
        values, vectors = np.linalg.eigh(mean)
        return self.towards(lambda share: (_power(values, vectors, -share), NO_SHIFT))

    def scaled(self, weights: np.ndarray) -> Frame:
        """Divide parameters named as scales by their geometric means."""
        box, frame = self.family.parameters, self
        for name, axes in (("s", [1, 1]), ("sx", [1, 0]), ("sy", [0, 1])):
            if name in box.names:
                log = np.average(np.log(frame.lam[:, box.index(name)]), weights=weights)
                powers = -np.array(axes) * log
                frame = frame.towards(
                    lambda share, p=powers: (np.diag(np.exp(share * p)), NO_SHIFT)
                )
        return frame

    def turned(self, angle: float) -> Frame:
        """Turn by an angle, or, where the family has no such members, by quarters nearest to it."""
        if self.parameters(rotation(-angle), NO_SHIFT) is None:
            angle = QUARTER * round(angle / QUARTER)
        return self.towards(lambda share: (rotation(-share * angle), NO_SHIFT))

    def shifted(self, g: np.ndarray) -> Frame:
        """Move the origin to the pattern's point g."""
        if self.family.translation is None:
            return self
        return self.towards(lambda share: (np.eye(2), share * g))

    def nearest(self, linear: np.ndarray, shift: np.ndarray) -> Frame | None:
        """Move all the same: λ are those of the nearest members in the box, and E may change."""
        pattern = atoms_moved(self.pattern, linear, shift)
        if pattern is None:
            return None
        lam = self.parameters(linear, shift)
        if lam is None:
            before, t = self.motions
            lam = nearest_members(self.family, before @ linear, t + before @ shift)
            lam = self._widened(lam, linear)
        return Frame(self.family, pattern, self.family.parameters.put_inside(lam))

    def with_identity(self, k: int) -> Frame:
        """Move so that image k has λ = identity, or what comes nearest to it in the box."""
        box = self.family.parameters
        target = box.put_inside(self.family.identity)[None]
        (linear, t), (there, t_there) = self.motions, motions_of(self.family, target)
        inverse = np.linalg.inv(linear[k])
        g = inverse @ (t_there[0] - t[k])
        frame = self.nearest(inverse @ there[0], g) or self.nearest(np.eye(2), g) or self
        lam = frame.lam.copy()
        lam[k] = target[0]
        return replace(frame, lam=lam)


def fix_frame(problem: Problem, pattern: Pattern, lam: np.ndarray) -> tuple[Pattern, np.ndarray]:
    """Return the pattern and λ in the frame of the problem's anchor, or of the images' mean.

    The mean transformation is the identity then: scales by their geometric means, angles by their
    mean direction, shifts in the mean square; all as far as the box Λ allows, and as far as the
    dictionary has the atoms of the moved pattern. The images stay as they are, but those of an
    anchored problem, where members of Λ may be missing: there E is to be looked at.
    """
    family = problem.transformation
    if not len(lam):
        return pattern, lam
    if not isinstance(family, AbstractAffineTransformation):
        return pattern, _held(problem, lam)
    frame = Frame(family, pattern, lam.astype(np.float64))
    if problem.anchor is not None:
        frame = frame.with_identity(problem.anchor)
    else:
        frame = frame.unstretched(problem.weights).turned(orientation(problem, frame))
        frame = frame.scaled(problem.weights)
        frame = frame.shifted(_least_shifts(frame))
    return frame.pattern, frame.lam.astype(lam.dtype)


def orientation(problem: Problem, frame: Frame) -> float:
    """Mean direction of the images' angles, or, if they have none, that of the central image."""
    angles, weights = frame.angles, problem.weights
    resultant = np.average(np.exp(1j * angles), weights=weights)
    count = weights.sum() ** 2 / (weights**2).sum()
    if count * abs(resultant) ** 2 < COMMON:
        return float(angles[problem.central])
    return float(np.angle(resultant))


def centre_of_mass(problem: Problem, frame: Frame) -> np.ndarray:
    """Mean of (x, y) over the pattern, by (p − median)², where the images show it."""
    side = np.linspace(-MASS_WIDTH, MASS_WIDTH, MASS_NODES)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    seen = _seen(problem, frame, points)
    values = frame.pattern(*points.T)
    order = np.argsort(values)
    reached = np.cumsum(seen[order])
    background = values[order[np.searchsorted(reached, reached[-1] / 2)]]
    mass = seen * (values - background) ** 2
    return mass @ points / mass.sum() if mass.sum() > 0 else NO_SHIFT


def _seen(problem: Problem, frame: Frame, points: np.ndarray) -> np.ndarray:
    """Weight of the images in whose windows each point of the pattern lies."""
    half = np.array([np.abs(side).max() for side in (problem.grid.x, problem.grid.y)])
    linear, shift = frame.motions
    seen = np.zeros(len(points))
    for begin in range(0, len(linear), IMAGES_AT_ONCE):
        some = slice(begin, begin + IMAGES_AT_ONCE)
        places = np.einsum("iab,pb->iap", linear[some], points) + shift[some, :, None]
        seen += problem.weights[some] @ (np.abs(places) <= half[None, :, None]).all(axis=1)
    return seen


def atoms_moved(pattern: Pattern, linear: np.ndarray, shift: np.ndarray) -> Pattern | None:
    """p(D x + g), or None where the dictionary has no such atoms."""
    gamma = pattern.dictionary.in_frame(pattern.gamma, linear, shift, pattern.mother.is_radial)
    return None if gamma is None else pattern.replace(pattern.coef, gamma)


def rotation(angle: float) -> np.ndarray:
    """R(angle)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def _least_shifts(frame: Frame) -> np.ndarray:
    """g for which the shifts t_i + F_i g are smallest in the mean square: few meet their bounds."""
    linear, shift = frame.motions
    return np.linalg.lstsq(linear.reshape(-1, 2), -shift.reshape(-1), rcond=None)[0]


def _held(problem: Problem, lam: np.ndarray) -> np.ndarray:
    """λ with the identity for the anchor."""
    if problem.anchor is None:
        return lam
    held, family = lam.copy(), problem.transformation
    held[problem.anchor] = family.parameters.put_inside(family.identity)
    return held


def _power(values: np.ndarray, vectors: np.ndarray, share: float) -> np.ndarray:
    """exp(share · V diag(values) Vᵀ)."""
    return (vectors * np.exp(share * values)) @ vectors.T
