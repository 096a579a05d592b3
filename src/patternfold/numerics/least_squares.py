"""Damped Newton steps inside a box, for many small problems at once.

The problems are told apart by their rows; what costs time, values and derivatives, is left to a
compiled function of all rows. The small systems are solved here, in NumPy and float64. With the
Gauss-Newton matrix in place of the Hessian this is Levenberg-Marquardt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from patternfold.model.box import Box

TOLERANCE = 1e-6
"""A row is done when its next step promises a decrease below this share of its cost."""

_START_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-7, 1e7


class Model(NamedTuple):
    """The cost near a point of each row, to second order.

    ``slope`` (R, a) is half of the negative gradient. ``metric`` (R, a, a) is positive, the
    Gauss-Newton matrix as a rule: its diagonal tells the parameters' units. ``hessian`` is half of
    the Hessian, which may have negative curvature; by default the metric stands for it.
    """

    cost: np.ndarray
    slope: np.ndarray
    metric: np.ndarray
    hessian: np.ndarray | None = None


ModelAt = Callable[[np.ndarray, np.ndarray, int], Model]
"""A function of all points, of the indices of those rows that are asked for, and of how often it
was called before."""


class Descent(NamedTuple):
    """Where each row ended: the point, its cost and metric, and whether it converged."""

    point: np.ndarray
    cost: np.ndarray
    metric: np.ndarray
    converged: np.ndarray


def descend(
    model_at: ModelAt,
    starts: np.ndarray,
    box: Box,
    max_iter: int,
    rounding: np.ndarray | float = 0.0,
) -> Descent:
    """Go downhill from every start, at most ``max_iter`` steps; the costs never rise.

    Each row has its own damping. A step is judged by the evaluation that the next one needs
    anyway. Decreases below ``rounding`` are not waited for.
    """
    point, trial = starts.astype(np.float64), starts.astype(np.float64)
    n_rows, dim = starts.shape
    rounding = np.broadcast_to(rounding, n_rows)
    cost, promised = np.full(n_rows, np.inf), np.zeros(n_rows)
    damping, done = np.full(n_rows, _START_DAMPING), np.zeros(n_rows, bool)
    slope = np.zeros((n_rows, dim))
    metric, hessian = np.zeros((2, n_rows, dim, dim))
    for count in range(max_iter + 1):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        new = model_at(trial, rows, count)
        if count:  # the first trial is the start itself: it tells nothing about the damping
            damping[rows] *= _damping_factor(cost[rows] - new.cost, promised[rows])
        better = new.cost < cost[rows]
        good = rows[better]
        point[good], cost[good], slope[good] = trial[good], new.cost[better], new.slope[better]
        metric[good] = new.metric[better]
        hessian[good] = (new.metric if new.hessian is None else new.hessian)[better]
        here = (point[rows], slope[rows], metric[rows], hessian[rows])
        step, promised[rows], damping[rows] = _damped_step(box, *here, damping[rows])
        trial[rows] = box.put_inside(point[rows] + step)
        finished = promised[rows] <= TOLERANCE * np.abs(cost[rows]) + rounding[rows]
        done[rows] = finished | (damping[rows] > _MOST_DAMPING)
    return Descent(point, cost, metric, done)


def held_at_bounds(box: Box, point: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Mark parameters that are on a bound and want to leave."""
    edge = 1e-6 * box.width
    low = (point <= box.lower + edge) & (slope < 0)
    high = (point >= box.upper - edge) & (slope > 0)
    return (low | high) & ~np.array(box.periodic)


def _damping_factor(gained: np.ndarray, promised: np.ndarray) -> np.ndarray:
    """Less damping where the model kept its promise, more where it did not."""
    share = gained / np.maximum(promised, np.finfo(np.float64).tiny)
    return np.select([share > 0.75, share > 0.25, share > 0], [0.2, 0.6, 2.0], default=4.0)


def _damped_step(
    box: Box,
    point: np.ndarray,
    slope: np.ndarray,
    metric: np.ndarray,
    hessian: np.ndarray,
    damping: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve (H + μ diag(metric)) δ = slope for each row, over the parameters free to move.

    Returns δ, the decrease of the cost that it promises, and the damping μ, raised where it took
    more to make the matrix positive definite.
    """
    held = held_at_bounds(box, point, slope)
    # In units of the box the parameters are comparable, and a small ridge keeps directions in
    # which nothing changes (a round pattern's angle) where they are.
    unit = box.width * ~held
    hessian, slope = hessian * unit[:, :, None] * unit[:, None, :], slope * unit
    diagonal = np.einsum("bkk->bk", metric) * unit**2
    ridge = 1e-6 * diagonal.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
    damping = np.maximum(damping, _LEAST_DAMPING)
    delta, rows = np.empty_like(slope), np.arange(len(slope))
    while len(rows):
        extra = damping[rows, None] * (diagonal + ridge)[rows] + 1e-3 * ridge[rows] + held[rows]
        matrix = hessian[rows] + extra[:, :, None] * np.eye(box.dim)
        delta[rows], definite = _solve(matrix, slope[rows])
        rows = rows[~definite & (damping[rows] <= _MOST_DAMPING)]
        damping[rows] = np.maximum(3 * damping[rows], 0.05)
    # At most a quarter of the box at a time: derivatives know only the neighbourhood.
    delta *= 0.25 / np.maximum(np.abs(delta).max(axis=1, keepdims=True), 0.25)
    curved = np.einsum("bk,bkl,bl->b", delta, hessian, delta)
    return unit * delta, 2 * (delta * slope).sum(axis=1) - curved, damping


def _solve(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve symmetric systems by LDLᵀ, all at once; tell which are positive definite.

    The solutions of the others mean nothing, but are finite.
    """
    n_rows, dim = right.shape
    a, z = np.ascontiguousarray(np.moveaxis(matrix, 0, -1)), right.T.copy()
    factor, pivot = np.zeros((dim, dim, n_rows)), np.ones((dim, n_rows))
    definite = np.ones(n_rows, bool)
    for i in range(dim):
        for j in range(i):
            known = (factor[i, :j] * factor[j, :j] * pivot[:j]).sum(axis=0)
            factor[i, j] = (a[i, j] - known) / pivot[j]
        own = a[i, i] - (factor[i, :i] ** 2 * pivot[:i]).sum(axis=0)
        # Below this a pivot is made of rounding errors.
        definite &= own > 1e-13 * np.abs(a[i, i])
        pivot[i] = np.where(definite, own, 1)
        z[i] -= (factor[i, :i] * z[:i]).sum(axis=0)
    z /= pivot
    for i in reversed(range(dim)):
        z[i] -= (factor[i + 1 :, i] * z[i + 1 :]).sum(axis=0)
    return z.T, definite
