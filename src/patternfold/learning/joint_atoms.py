"""The atoms of an iteration of JPATS: one per pattern, chosen on the joint errors."""

from __future__ import annotations

import numpy as np

from patternfold.learning.joint import JointProblem, JointState, Margins, frozen_squares
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.pats import refine_atom, select_atom
from patternfold.learning.problem import Problem
from patternfold.learning.schedules import sigmoid_slopes
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern


def select_jointly(
    problem: JointProblem,
    settings: JointSettings,
    state: JointState,
    margins: Margins,
    alpha: float,
    beta: float,
    rng: np.random.Generator,
) -> tuple[Pattern, ...]:
    """Choose one atom per pattern on the joint Ẽ, then on Ê: lines 9 to 11 of Algorithm 2.

    With r_i^m, λ_i^{m,r} and the pattern of each image fixed, both errors are sums over patterns,
    so that minimising them jointly is minimising them pattern by pattern. The base values f_0 are
    refreshed as often as ``n_base_updates`` says.
    """
    f, patterns = margins.f, state.patterns
    searched = problem.for_selection(state, settings.alone)
    for _ in range(settings.n_base_updates):
        eta = sigmoid_slopes(f, beta)
        patterns = tuple(
            _with_atom(searched, settings, state, m, margins, alpha * eta, rng)
            for m in range(problem.n_patterns)
        )
        squares = frozen_squares(problem, patterns, state.lam)
        rows = np.arange(len(f))
        f = squares[rows, problem.pattern_of] - squares[rows, margins.rival]
    return patterns


def _with_atom(
    problem: JointProblem,
    settings: JointSettings,
    state: JointState,
    m: int,
    margins: Margins,
    pull: np.ndarray,
    rng: np.random.Generator,
) -> Pattern:
    """Return p^m with the atom that lowers the errors of its images, if it is significant."""
    pattern = state.patterns[m]
    if pattern.n_atoms >= settings.n_atoms[m] or not len(problem.own(m)):
        return pattern
    signed, lam = signed_problem(problem, state, m, margins, pull)
    here = State(pattern, lam, 0.0)
    gamma, coef = select_atom(signed, settings.jointly, here, rng)
    if settings.alone.tangent_refinement and coef:
        gamma, coef = refine_atom(signed, settings.jointly, here, gamma, coef)
    largest = np.abs(pattern.coef).max(initial=0.0)
    if not coef or abs(coef) < settings.significance * largest:
        return pattern
    return pattern.add_atom(coef, gamma)


def signed_problem(
    problem: JointProblem, state: JointState, m: int, margins: Margins, pull: np.ndarray
) -> tuple[Problem, np.ndarray]:
    """Images that bear on p^m with signed weights, and their λ: own ones and impostors R^m.

    Own images weigh w_i(1 + α η_i), impostors −w_i α η_i; ``pull`` is α η.
    """
    own, impostors = problem.own(m), margins.impostors(m)
    weights = problem.all.weights
    own_weights = weights[own] * (1 + pull[own])
    part, index = problem.signed(m, own_weights, impostors, -(weights * pull)[impostors])
    return part, state.lam[index, m]
