"""Joint correction of all patterns: descent on the smooth classification error.

The paper chooses atoms by E = E_a + α E_c and leaves them as they are. Here all atoms of all
classes move together to lower the same error, with the sigmoid S in place of the indicator I,

    J = Σ w_i d²(u_i, M^m) + α Σ w_i S(f(u_i)),

the distances being true ones: λ follows every step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg, special

from patternfold.learning.joint import JointProblem, JointState, cross_project
from patternfold.learning.refit.correct import assemble
from patternfold.learning.schedules import AlphaSchedule, sigmoid_slopes, usual_beta
from patternfold.model.pattern import Pattern
from patternfold.numerics.least_squares import held_at_bounds

LATE = 10**6
"""An iteration by which the schedule of α has come to its end."""

STEPS = 4
"""Most steps of the projections after each step of the patterns: λ starts close by."""

TOLERANCE = 1e-4
"""A step that lowers J by less than this share of it is the last one."""

_START_DAMPING, _MOST_DAMPING = 0.1, 1e4


def tune(
    problem: JointProblem, state: JointState, alpha: AlphaSchedule, max_iter: int
) -> Iterator[JointState]:
    """Go down on J; yield those states in which no more images are misclassified than before."""
    alpha_now, labels = alpha(LATE), problem.labels
    beta = usual_beta(state.margins(labels).f, state.own_squares(labels))
    damping, error = _START_DAMPING, smooth_error(problem, state, alpha_now, beta)
    fewest = state.errors(problem)[0]
    for _ in range(max_iter):
        patterns = tuple(
            _step(problem, state, m, alpha_now, beta, damping) for m in range(problem.n_classes)
        )
        new = cross_project(problem, patterns, state.lam, max_iter=STEPS)
        new_error = smooth_error(problem, new, alpha_now, beta)
        if new_error < error:
            small = error - new_error < TOLERANCE * error
            state, error, damping = new, new_error, damping / 3
            wrong = state.errors(problem)[0]
            if wrong <= fewest:
                fewest = wrong
                yield state
            if small:
                break
        else:
            damping *= 4
        if damping > _MOST_DAMPING:
            break


def smooth_error(problem: JointProblem, state: JointState, alpha: float, beta: float) -> float:
    """J."""
    weights, labels = problem.all.weights, problem.labels
    risk = special.expit(beta * state.margins(labels).f)
    return float((weights * (state.own_squares(labels) + alpha * risk)).sum())


def _step(
    problem: JointProblem, state: JointState, m: int, alpha: float, beta: float, damping: float
) -> Pattern:
    """One damped Gauss-Newton step of p^m: own images attract it, impostors push it away.

    Their negative curvature is left out: the matrix takes all weights by their size.
    """
    labels, weights, pattern = problem.labels, problem.all.weights, state.patterns[m]
    margins = state.margins(labels)
    pull = alpha * sigmoid_slopes(margins.f, beta)
    own, impostors = np.flatnonzero(labels == m), margins.impostors(labels, m)
    matrix, slope = _normal(problem, state, m, own, weights[own] * (1 + pull[own]))
    if len(impostors):
        away = _normal(problem, state, m, impostors, (weights * pull)[impostors])
        matrix, slope = matrix + away[0], slope - away[1]
    gamma, box = pattern.gamma, problem.all.atom_box
    by_atom = slope.reshape(len(gamma), -1)
    held = np.pad(held_at_bounds(box, gamma, by_atom[:, :-1]), ((0, 0), (0, 1))).ravel()
    diagonal = np.diag(matrix)
    matrix = matrix + np.diag(damping * diagonal + 1e-9 * diagonal.max())
    matrix[held], matrix[:, held], slope[held] = 0, 0, 0
    matrix[held, held] = 1
    step = linalg.solve(matrix, slope, assume_a="pos").reshape(len(gamma), -1)
    return pattern.replace(pattern.coef + step[:, -1], box.put_inside(gamma + step[:, :-1]))


def _normal(
    problem: JointProblem, state: JointState, m: int, index: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Normal equations of Σ w‖u − U_λ(p^m)‖² in the atoms of p^m, over some of the images."""
    part, index = problem.filled_part(index, weights)
    normal = assemble(state.patterns[m], state.lam[index, m], part.sparse_data)
    return normal.atoms, normal.atoms_slope
