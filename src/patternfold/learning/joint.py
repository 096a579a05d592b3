"""What JPATS carries from step to step: images of several classes, patterns, cross-projections.

A class has one pattern or several. An image belongs to the nearest pattern of its own class, and
the nearest pattern of all decides on a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from patternfold.learning.effort import Effort
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.project.locate import locate
from patternfold.learning.retune import at_one_scale, with_terms
from patternfold.learning.terms import Terms
from patternfold.model.pattern import Pattern

FOLLOWING_STEPS = 2
"""Steps of λ when patterns have moved a little."""

MORE_ROUNDS = 6
"""Most times that λ is improved further after a first search of all manifolds."""

SETTLED = 0.01
"""Share of the squared distances by which a round must lower them for another to be worth it."""

WITHIN_REACH = 2.0
"""A manifold matters for an image if its d² is at most so many times that of the nearest one, or if
it is the image's own; the others follow later."""


@dataclass(frozen=True)
class JointProblem:
    """Images of all classes with their labels 0 ... M−1 and weights, and the model's components.

    ``all`` holds the images whatever their class; ``names`` are those of the classes, for progress.
    ``terms`` are loss and prior of each pattern once it is there; they stay as they are. Where
    classes have several patterns, ``owners`` tells the class of each pattern, in ascending order,
    and ``places`` the pattern of each image.
    """

    all: Problem
    labels: np.ndarray
    n_classes: int
    names: tuple[str, ...] = ()
    terms: tuple[Terms | None, ...] | None = None
    owners: tuple[int, ...] | None = None
    places: np.ndarray | None = None

    @cached_property
    def classes(self) -> list[Problem]:
        """U^m, the images of each pattern, as a problem of its own."""
        patterns = range(self.n_patterns)
        return [replace(self.all.part(self.own(m)), terms=self._of(m)) for m in patterns]

    @property
    def class_of(self) -> tuple[int, ...]:
        """The class of each pattern."""
        return tuple(range(self.n_classes)) if self.owners is None else self.owners

    @property
    def pattern_of(self) -> np.ndarray:
        """The pattern of each image."""
        return self.labels if self.places is None else self.places

    @property
    def n_patterns(self) -> int:
        """Number of patterns, of all classes together."""
        return len(self.class_of)

    def _of(self, m: int) -> Terms | None:
        return None if self.terms is None else self.terms[m]

    def with_terms(self, patterns: Sequence[Pattern], lam: Sequence[np.ndarray]) -> JointProblem:
        """The same with loss and prior as they are at patterns and at λ of each pattern's images.

        The scale is common to all patterns, the median of theirs: distances to manifolds compare
        at one scale alone.
        """
        known = [
            with_terms(own, pattern, rows).terms
            for own, pattern, rows in zip(self.classes, patterns, lam, strict=True)
        ]
        return replace(self, terms=at_one_scale(known))

    def own(self, m: int) -> np.ndarray:
        """Indices of the images of pattern m: all images of its class, where it is the only one."""
        return np.flatnonzero(self.pattern_of == m)

    def reassigned(self, state: JointState) -> JointProblem:
        """The same with every image at the nearest pattern of its own class."""
        if self.places is None:
            return self
        places = state.nearest_own(self.labels)
        return self if (places == self.places).all() else replace(self, places=places)

    def for_selection(self, state: JointState, settings: Settings) -> JointProblem:
        """The images on which atoms are selected: large ones on averages over cells.

        The search goes over a grid as fine as the pixels, which takes long with few images, too.
        Loss and prior are measured on the averages, but at patterns without atoms there is nothing
        to measure them at: they are those of the references on all pixels then.
        """
        cells = settings.begun(self.all)
        if cells is self.all:
            return self
        coarse = replace(self, all=cells, terms=None)
        own = [state.lam[coarse.own(m), m] for m in range(coarse.n_patterns)]
        coarse = coarse.with_terms(state.patterns, own)
        if coarse.terms is not None or self.terms is None:
            return coarse
        share = cells.grid.n_pixels / self.all.grid.n_pixels
        return replace(coarse, terms=tuple(t and t.on(share) for t in self.terms))

    def signed(
        self, m: int, own_weights: np.ndarray, impostors: np.ndarray, weights: np.ndarray
    ) -> tuple[Problem, np.ndarray]:
        """The images of pattern m and its impostors with weights of either sign; their indices.

        The images of the pattern stay where they are; impostors join them in chunks of the same
        size, so that compiled code is shared.
        """
        own = self.classes[m].with_weights(own_weights)
        if not len(impostors):
            return own, self.own(m)
        size = len(own.observations.chunks[0].images)
        joined = own.observations.join(self.all.observations.take(impostors, weights, size))
        return replace(own, observations=joined), np.append(self.own(m), impostors)


class Margins(NamedTuple):
    """How each image lies between the manifolds of its own class and the nearest of another one.

    ``rival`` is r_i^m; ``f`` the difference of the squared distances, negative where the image is
    classified rightly; ``wrong`` the indicator I.
    """

    rival: np.ndarray
    f: np.ndarray
    wrong: np.ndarray

    def impostors(self, m: int) -> np.ndarray:
        """R^m: images of other classes whose nearest manifold of another class is M^m."""
        return np.flatnonzero(self.rival == m)


@dataclass(frozen=True)
class JointState:
    """Patterns p^m, cross-projections λ_i^{m,r} (N, M, d) and squared distances (N, M).

    ``owners`` tells the class of each pattern; None where every class has one.
    """

    patterns: tuple[Pattern, ...]
    lam: np.ndarray
    squares: np.ndarray
    owners: tuple[int, ...] | None = None

    def nearest_own(self, labels: np.ndarray) -> np.ndarray:
        """The nearest pattern of each image's own class."""
        if self.owners is None:
            return labels
        return np.where(self.of_class(labels), self.squares, np.inf).argmin(axis=1)

    def of_class(self, labels: np.ndarray) -> np.ndarray:
        """Which patterns are those of an image's own class (N, M)."""
        owners = np.arange(len(self.patterns)) if self.owners is None else np.array(self.owners)
        return owners[None] == labels[:, None]

    def own_squares(self, labels: np.ndarray) -> np.ndarray:
        """d²(u_i^m, M^m), to the nearest pattern of class m."""
        return self.squares[np.arange(len(labels)), self.nearest_own(labels)]

    def margins(self, labels: np.ndarray) -> Margins:
        """Return r_i^m, f(u_i^m) and I(u_i^m)."""
        rows = np.arange(len(labels))
        others = np.where(self.of_class(labels), np.inf, self.squares)
        rival = others.argmin(axis=1)
        own, nearest = self.own_squares(labels), others[rows, rival]
        return Margins(rival, own - nearest, own >= nearest)

    def with_patterns(self, other: JointState, chosen: np.ndarray) -> JointState:
        """The same with some patterns, and all that concerns them, of another."""
        pairs = zip(chosen, other.patterns, self.patterns, strict=True)
        return replace(
            self,
            patterns=tuple(new if take else old for take, new, old in pairs),
            lam=np.where(chosen[None, :, None], other.lam, self.lam),
            squares=np.where(chosen[None], other.squares, self.squares),
        )

    def errors(self, problem: JointProblem) -> tuple[float, float]:
        """E_c, weighted, and E_a."""
        weights, labels = problem.all.weights, problem.labels
        wrong = self.margins(labels).wrong
        return float(weights[wrong].sum()), float((weights * self.own_squares(labels)).sum())


def cross_project(
    problem: JointProblem,
    patterns: tuple[Pattern, ...],
    effort: Effort,
    lam: np.ndarray | None = None,
    everywhere: bool = False,
) -> JointState:
    """Project every image on every manifold, near known λ^{m,r} or over all of Λ.

    Known λ are kept where nothing better is found; where there are none, Λ is searched.
    """
    whole = problem.all
    found = locate(
        whole.observations,
        patterns,
        whole.transformation,
        effort,
        lam,
        everywhere=everywhere or lam is None,
        describe=False,
        terms=problem.terms,
    )
    return JointState(patterns, found.lam, found.square.astype(np.float64), problem.owners)


def first_projection(
    problem: JointProblem, patterns: tuple[Pattern, ...], effort: Effort, own: Sequence[np.ndarray]
) -> JointState:
    """Project every image on every manifold, with λ of each pattern's own images known.

    The search goes on from where it ended until little is gained: with many parameters a few steps
    leave images of other classes far from where a manifold comes near to them. The same compiled
    code serves all rounds.
    """
    lam = np.full((len(problem.labels), len(patterns), own[0].shape[1]), np.nan)
    for m, rows in enumerate(own):
        lam[problem.own(m), m] = rows
    state = cross_project(problem, patterns, effort, lam, everywhere=True)
    for _ in range(MORE_ROUNDS):
        before, state = state, cross_project(problem, patterns, effort, state.lam)
        if state.squares.sum() > (1 - SETTLED) * before.squares.sum():
            break
    return state


def follow(
    problem: JointProblem, patterns: tuple[Pattern, ...], effort: Effort, state: JointState
) -> JointState:
    """The λ^{m,r} that matter, moved along with the patterns; others stay as they are."""
    matters = state.squares <= WITHIN_REACH * state.squares.min(axis=1, keepdims=True)
    matters |= state.of_class(problem.labels)
    whole, known = problem.all, np.where(matters[:, :, None], state.lam, np.nan)
    found = locate(
        whole.observations,
        patterns,
        whole.transformation,
        effort,
        known,
        everywhere=False,
        describe=False,
        steps=FOLLOWING_STEPS,
        terms=problem.terms,
    )
    return JointState(
        patterns,
        np.where(matters[:, :, None], found.lam, state.lam),
        np.where(matters, found.square, state.squares),
        problem.owners,
    )


def frozen_squares(
    problem: JointProblem, patterns: tuple[Pattern, ...], lam: np.ndarray
) -> np.ndarray:
    """‖u_i − U_λ(p^r)‖² at the given λ_i^{m,r}, shape (N, M)."""
    terms = problem.terms or (None,) * len(patterns)
    columns = [
        replace(problem.all, terms=own).squares(p, lam[:, r])
        for r, (p, own) in enumerate(zip(patterns, terms, strict=True))
    ]
    return np.stack(columns, axis=1)
