"""Levenberg-Marquardt inside a box, for many small problems at once.

The problems are told apart by their rows; what costs time, values and derivatives, is left to a
compiled function of all rows. The small systems are solved here, in NumPy and float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from patternfold.box import Box

TOLERANCE = 1e-6
"""A row is done when its next step promises a decrease below this share of its cost."""

_START_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-7, 1e7

Linearised = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Costs (R,), positive matrices (R, a, a), half of the Hessian or near it, and slopes downhill
(R, a), half of the negative gradient."""

Linearise = Callable[[np.ndarray, np.ndarray], Linearised]
"""A function of all points and of the indices of those rows that are asked for."""


class Descent(NamedTuple):
    """Where each row ended: the point, its cost and matrix, and whether it converged."""

    point: np.ndarray
    cost: np.ndarray
    matrix: np.ndarray
    converged: np.ndarray


def descend(
    linearise: Linearise,
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
    cost, damping = np.full(n_rows, np.inf), np.full(n_rows, _START_DAMPING)
    matrix, slope = np.zeros((n_rows, dim, dim)), np.zeros((n_rows, dim))
    done = np.zeros(n_rows, bool)
    for count in range(max_iter + 1):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        new_cost, new_matrix, new_slope = linearise(trial, rows)
        better = new_cost < cost[rows]
        good = rows[better]
        point[good], cost[good] = trial[good], new_cost[better]
        matrix[good], slope[good] = new_matrix[better], new_slope[better]
        if count:  # the first trial is the start itself: it tells nothing about the damping
            damping[rows] = np.maximum(damping[rows] * np.where(better, 0.2, 4), _LEAST_DAMPING)
        step, promised = damped_step(box, point[rows], matrix[rows], slope[rows], damping[rows])
        trial[rows] = box.put_inside(point[rows] + step)
        finished = promised <= TOLERANCE * np.abs(cost[rows]) + rounding[rows]
        done[rows] = finished | (damping[rows] > _MOST_DAMPING)
    return Descent(point, cost, matrix, done)


def held_at_bounds(box: Box, point: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Mark parameters that are on a bound and want to leave."""
    edge = 1e-6 * box.width
    low = (point <= box.lower + edge) & (slope < 0)
    high = (point >= box.upper - edge) & (slope > 0)
    return (low | high) & ~np.array(box.periodic)


def damped_step(
    box: Box, point: np.ndarray, matrix: np.ndarray, slope: np.ndarray, damping: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve (A + μ diag(A)) δ = b for each row, over the parameters that are free to move.

    Returns δ and the decrease of the cost that it promises if the model were exact.
    """
    held = held_at_bounds(box, point, slope)
    # In units of the box the parameters are comparable, and a small ridge keeps directions in
    # which nothing changes (a round pattern's angle) where they are.
    unit = box.width * ~held
    matrix = matrix * unit[:, :, None] * unit[:, None, :]
    slope = slope * unit
    diagonal = np.einsum("bkk->bk", matrix)
    ridge = 1e-6 * diagonal.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
    extra = damping[:, None] * (diagonal + ridge) + 1e-3 * ridge + held
    solved = np.linalg.solve(matrix + extra[:, :, None] * np.eye(box.dim), slope[..., None])
    delta = solved[..., 0]
    # At most a quarter of the box at a time: derivatives know only the neighbourhood.
    delta *= 0.25 / np.maximum(np.abs(delta).max(axis=1, keepdims=True), 0.25)
    curved = np.einsum("bk,bkl,bl->b", delta, matrix, delta)
    return unit * delta, 2 * (delta * slope).sum(axis=1) - curved
