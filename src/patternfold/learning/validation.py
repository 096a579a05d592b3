"""α of JPATS, and the bound C of |c|, by cross-validation on the images to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from patternfold.learning.joint import JointProblem, cross_project
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.jpats import learn_jointly
from patternfold.learning.schedules import RELATIVE_ALPHA, SigmoidAlpha
from patternfold.learning.state import INTERRUPTED

N_FOLDS = 3

ALPHAS = (RELATIVE_ALPHA, RELATIVE_ALPHA.times(0.5), RELATIVE_ALPHA.times(4), SigmoidAlpha())
"""Schedules of α that are compared, the last one as printed; of equals the first is taken."""

SHARES = (2.0, 0.5)
"""Bounds that are compared with C, as multiples of it."""


class Trial(NamedTuple):
    """A choice of α and of the bound, as a multiple of C, and the share of images it misses."""

    alpha: SigmoidAlpha
    share: float
    error: float


def cross_validated(
    problem: JointProblem, settings: JointSettings, reference: str, shares: Sequence[float] = SHARES
) -> list[Trial]:
    """Learn from all folds but one and classify that one; first for all α, then for all bounds.

    The settings are those before `JointSettings.in_units_of`.
    """
    folds = make_folds(problem, settings.alone.seed)

    def tried(alpha: SigmoidAlpha, share: float) -> Trial:
        own = replace(settings, alpha=alpha, max_coef=share * settings.max_coef)
        missed = sum(_missed(problem, own, reference, folds == k) for k in range(folds.max() + 1))
        return Trial(alpha, share, missed / float(problem.all.weights.sum()))

    trials = [tried(alpha, 1.0) for alpha in ALPHAS]
    best = best_of(trials)
    return trials + [tried(best.alpha, share) for share in shares]


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial that misses least, the first of equals."""
    return min(trials, key=lambda trial: trial.error)


def make_folds(problem: JointProblem, seed: int) -> np.ndarray:
    """Number the fold of each image; every class is spread over all folds."""
    rng, folds = np.random.default_rng(seed), np.empty(len(problem.labels), int)
    counts = np.bincount(problem.labels, minlength=problem.n_classes)
    if counts.min() < 2:
        name = problem.names[counts.argmin()] if problem.names else counts.argmin()
        raise ValueError(
            f"alpha='cv' needs two different images of each class; class {name} has "
            f"{counts.min()}. Give a number, or 'auto'."
        )
    for m in range(problem.n_classes):
        folds[rng.permutation(problem.own(m))] = np.arange(counts[m]) % min(N_FOLDS, counts.min())
    return folds


def _missed(
    problem: JointProblem, settings: JointSettings, reference: str, held: np.ndarray
) -> float:
    """Weight of the images of a fold that the patterns of all others misclassify."""
    rest, fold = (_part(problem, np.flatnonzero(index)) for index in (~held, held))
    learned = learn_jointly(rest, settings.in_units_of(rest), reference)
    if learned.reason == INTERRUPTED:  # what has been compared so far tells nothing
        raise KeyboardInterrupt
    fold = replace(fold, terms=learned.terms, owners=learned.state.owners)
    state = cross_project(fold, learned.state.patterns, settings.alone.effort)
    return state.errors(fold)[0]


def _part(problem: JointProblem, index: np.ndarray) -> JointProblem:
    return replace(problem, all=problem.all.part(index), labels=problem.labels[index])
