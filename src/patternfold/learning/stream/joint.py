"""JPATS on all images of a stack: steps of the joint correction, one for each pass.

What `learning.refit.tuning` does to the patterns of all classes with images in memory is done here
with sums over blocks: J, the weight of misclassified images, and the equations of each pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.effort import LEARNING, Effort
from patternfold.learning.joint import JointProblem, JointState, cross_project
from patternfold.learning.refit.tuning import LAST_ITERATION, RULE, SmoothError, moved
from patternfold.learning.schedules import AlphaInUnits, AlphaSchedule, margin_scale, usual_beta
from patternfold.learning.settling import ENOUGH, LESS, MORE, PASSES
from patternfold.learning.stream.learn import Source
from patternfold.learning.stream.sweep import Model
from patternfold.model.pattern import Pattern

Systems = list[tuple[np.ndarray, np.ndarray]]


class JointSeen(NamedTuple):
    """What a pass tells: of each image, and sums over the images."""

    lam: np.ndarray
    """λ^{m,r}, (B, M, d)."""
    squares: np.ndarray
    """(B, M)."""
    cost: float
    """J."""
    wrong: float
    energy: float
    """Σ w‖u‖²."""
    systems: Systems
    """Matrix and slope of each pattern."""


@dataclass(frozen=True)
class JointSweep:
    """Project the images of a block on all manifolds, and add up what moves the patterns.

    Without α and β λ is searched over the whole box, and nothing is added up.
    """

    model: Model
    patterns: tuple[Pattern, ...]
    alpha: float | None = None
    beta: float = 0.0
    effort: Effort = LEARNING

    def __call__(
        self,
        images: np.ndarray,
        weights: Any = None,
        labels: Any = None,
        lam: Any = None,
        mask: Any = None,
    ) -> JointSeen:
        """Return what is seen."""
        with self.model.at_work(images, weights, mask) as whole:
            problem = JointProblem(whole, labels, len(self.patterns))
            state = cross_project(problem, self.patterns, self.effort, lam)
            energy = whole.energy
            if self.alpha is None:
                return JointSeen(state.lam, state.squares, 0.0, 0.0, energy, [])
            point = SmoothError(problem, state, self.alpha, self.beta, self.effort)
            wrong = state.errors(problem)[0]
            return JointSeen(state.lam, state.squares, point.cost, wrong, energy, point.equations)


@dataclass(frozen=True)
class JointSettling:
    """Passes over all images, whose classes are ``labels``."""

    source: Source
    labels: np.ndarray
    effort: Effort = LEARNING
    report: Callable[[str, float], bool] | None = None

    def __call__(self, patterns: tuple[Pattern, ...], alpha: AlphaSchedule) -> tuple[Pattern, ...]:
        """Move all patterns, one step for each pass, as long as that lowers J.

        A step after which more images are misclassified is not taken.
        """
        first = self._pass(JointSweep(self.source.model, patterns, effort=self.effort), None)
        state = JointState(patterns, first.lam, first.squares)
        scales = state.margins(self.labels).f, state.own_squares(self.labels)
        alpha = AlphaInUnits(alpha, first.energy / self.source.weights.sum())
        last, beta = alpha(LAST_ITERATION, margin_scale(*scales)), usual_beta(*scales)
        sweep = JointSweep(self.source.model, patterns, last, beta, self.effort)
        best, damping = self._pass(sweep, first.lam), RULE.start
        for k in range(1, PASSES):
            trial = replace(sweep, patterns=self._moved(sweep, best.systems, damping))
            found = self._pass(trial, best.lam)
            gained = 1 - found.cost / best.cost if best.cost else 0.0
            if gained > 0 and found.wrong <= best.wrong:
                sweep, best, damping = trial, found, damping * LESS
            else:
                damping *= MORE
            share = best.wrong / self.source.weights.sum()
            stage = f"joint correction, pass {k + 1} over all images"
            if self.report is not None and self.report(stage, share):
                break
            if 0 <= gained < ENOUGH:
                break
        return sweep.patterns

    def _moved(self, sweep: JointSweep, systems: Systems, damping: float) -> tuple[Pattern, ...]:
        """All patterns after a step."""
        model = sweep.model
        box = model.family.dictionary.resolved(model.grid.pixel)
        pairs = zip(systems, sweep.patterns, strict=True)
        return tuple(moved(system, damping, pattern, box)[0] for system, pattern in pairs)

    def _pass(self, sweep: JointSweep, lam: np.ndarray | None) -> JointSeen:
        """What is seen in all blocks; sums are added at once, in their order."""
        lams, squares, sums, systems = [], [], np.zeros(3), None
        for seen in self.source.results(sweep, self.labels, lam):
            lams.append(seen.lam)
            squares.append(seen.squares)
            sums += (seen.cost, seen.wrong, seen.energy)
            systems = seen.systems if systems is None else _added(systems, seen.systems)
        lam, square, (cost, wrong, energy) = np.concatenate(lams), np.concatenate(squares), sums
        return JointSeen(lam, square, cost, wrong, energy, systems or [])


def _added(one: Systems, other: Systems) -> Systems:
    return [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, other, strict=True)]
