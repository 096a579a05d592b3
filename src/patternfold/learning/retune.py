"""Loss and prior while a pattern grows: their scales follow the residuals.

E is compared with E only at one scale. So scales stay as they are while an atom is selected and
corrected, and are measured anew between two atoms, with E at the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from patternfold.learning.noise import settled_noise
from patternfold.learning.problem import Problem
from patternfold.learning.project.expected import terms_of
from patternfold.learning.state import State
from patternfold.learning.terms import Terms
from patternfold.model.losses import AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import LEARNED, Prior, fit_prior

LEAST_SPREAD = 0.1
"""Least spread of the images' costs, as a share of the typical one: images of one pattern in the
same noise differ by chance alone, and none of them is a stranger."""

NORMAL_SPREAD = 1.4826
"""Standard deviation over median absolute deviation of a normal variable."""


def retuned(problem: Problem, state: State) -> tuple[Problem, State]:
    """Measure the scales of loss and prior at a state; return the problem and E with them."""
    problem = with_terms(problem, state.pattern, state.lam)
    if problem.terms is None:
        return problem, state
    return problem, state._replace(error=problem.error(state.pattern, state.lam))


def with_terms(problem: Problem, pattern: Pattern, lam: np.ndarray) -> Problem:
    """The problem with the scales of loss and prior as they are at a pattern and λ."""
    if not (problem.reweights or problem.prior) or not pattern.n_atoms:
        return problem
    # Residuals in the light that the last loss has found; by squares if there was none.
    loss = problem.loss if problem.reweights else None
    noise = settled_noise(problem.observations, lam, problem.distance(pattern), loss)
    if noise is None:
        return problem
    prior = prior_at(problem, lam)
    dtype = problem.observations.dtype
    terms = terms_of(loss, prior, problem.transformation, noise, dtype)
    problem = replace(problem, terms=terms)
    if loss is None or terms is None:
        return problem
    return replace(problem, terms=_with_images(terms, problem.costs_per_pixel(pattern, lam)))


def prior_at(problem: Problem, lam: np.ndarray) -> Prior | None:
    """The prior that was given, or that of the images' λ."""
    given: Any = problem.prior
    if given == LEARNED:
        return fit_prior(lam, problem.weights, problem.transformation)
    return given


def known_terms(problem: Problem, terms: Terms | None) -> tuple[AbstractLoss, Prior | None]:
    """Loss and prior with the scales that terms have."""
    if terms is None:
        return problem.loss, None if isinstance(problem.prior, str) else problem.prior
    loss = problem.loss if terms.loss is None else problem.loss.with_scale(float(terms.scale))
    return loss, terms.prior(problem.transformation)


def at_one_scale(terms: Sequence[Terms | None]) -> tuple[Terms | None, ...] | None:
    """Terms of several patterns at the median of their scales; None where there are none.

    Images count as they are: those of one class are strangers to the others.
    """
    known = [own for own in terms if own is not None]
    if not known:
        return None
    scale, noise = (
        None if part[0] is None else np.median(part)
        for part in zip(*((own.scale, own.noise) for own in known), strict=True)
    )
    # A class that has no terms, for want of a pattern that shows anything, borrows some.
    return tuple((own or known[0]).at_scale(scale, noise) for own in terms)


def _with_images(terms: Terms, costs: np.ndarray) -> Terms:
    """Add what a typical image costs, and how images spread about it."""
    typical = float(np.median(costs))
    spread = NORMAL_SPREAD * float(np.median(np.abs(costs - typical)))
    spread = max(spread, LEAST_SPREAD * typical, float(np.finfo(np.float32).tiny) ** 0.5)
    dtype = np.asarray(terms.scale).dtype
    parts = {"typical": np.asarray(typical, dtype), "spread": np.asarray(spread, dtype)}
    return replace(terms, **parts)
