"""DCA and CCCP: local minimisation of g − h by a sequence of convex problems."""

from __future__ import annotations

import time

import numpy as np
from scipy import optimize

from patternfold.dc.base import Decomposition
from patternfold.dc.curvature import by_curvature
from patternfold.dc.function import Function
from patternfold.dc.preliminary import narrow
from patternfold.dc.result import Result


def dca(
    problem: Decomposition,
    start: np.ndarray,
    *,
    tol: float = 1e-7,
    max_iter: int = 500,
    time_limit: float = np.inf,
) -> Result:
    r"""Minimise f = g − h over a box from a start; f falls with every step.

    .. math:: y_k = ∇h(x_k), \qquad x_{k+1} = \arg\min_x g(x) - ⟨y_k, x⟩

    h is replaced by its tangent, below which it never lies, so that each step minimises a convex
    function above f that touches it at x_k. The concave-convex procedure (CCCP) asks for
    ∇g(x_{k+1}) = ∇h(x_k): where h is differentiable and x_{k+1} lies inside the box this is the
    same iteration, and on the boundary it is this one that stays in the box. They part only for
    an h with kinks, where DCA takes any subgradient and CCCP is not defined.

    Parameters
    ----------
    problem : Decomposition
        g, h and the box. The tighter the decomposition, the longer the steps.
    start : array of shape (s,)
        Where to begin.
    tol : float
        Stop when a step lowers f by less than this share of it.
    max_iter, time_limit
        Limits on the steps and the seconds.
    """
    began, status = time.perf_counter(), "max-iter"
    point = problem.box.clip(np.asarray(start, np.float64))
    value = float(problem.values(point[None])[0])
    history: list[tuple[float, float]] = []
    for _ in range(max_iter):
        new = convex_step(problem, point)
        new_value = float(problem.values(new[None])[0])
        decrease = value - new_value
        if decrease > 0:
            point, value = new, new_value
        history.append((value, -np.inf))
        if decrease <= tol * abs(value):
            status = "converged"
            break
        if time.perf_counter() - began > time_limit:
            status = "time-limit"
            break
    seconds = time.perf_counter() - began
    return Result(point, value, -np.inf, status, len(history), seconds, history)


cccp = dca
"""The concave-convex procedure: for differentiable h, which all of ours are, DCA itself."""


def dca_by_regions(
    function: Function,
    start: np.ndarray,
    *,
    share: float = 0.03,
    max_boxes: int = 64,
    tol: float = 1e-6,
    max_iter: int = 100,
    time_limit: float = np.inf,
) -> Result:
    """DCA with a decomposition that is made anew on a small region around the point.

    Over a small region the Hessian's bound is tight, so that steps are long; where they end at
    its border the region moves on.

    Parameters
    ----------
    function : Function
        f on its box.
    start : array of shape (s,)
        Where to begin.
    share : float
        Size of the region, as a share of each side of the box.
    max_boxes : int
        Boxes over which the Hessian is bounded for each region.
    tol, max_iter, time_limit
        Stop when a region lowers f by less than this share, after so many regions or seconds.
    """
    began, status = time.perf_counter(), "max-iter"
    point = np.asarray(start, np.float64)
    value = float(function.values(point[None])[0])
    history: list[tuple[float, float]] = []
    for _ in range(max_iter):
        before = value
        pair = by_curvature(function.on(narrow(function.box, point, share)), max_boxes)
        left = time_limit - (time.perf_counter() - began)
        found = dca(pair, point, tol=tol, max_iter=30, time_limit=left)
        if found.value < value:
            point, value = found.point, found.value
        history.append((value, -np.inf))
        if before - value <= tol * abs(value):
            status = "converged"
            break
        if time.perf_counter() - began > time_limit:
            status = "time-limit"
            break
    seconds = time.perf_counter() - began
    return Result(point, value, -np.inf, status, len(history), seconds, history)


def convex_step(problem: Decomposition, point: np.ndarray) -> np.ndarray:
    """argmin g(x) − ⟨∇h(x_k), x⟩ over the box, by a quasi-Newton method in units of the box."""
    box = problem.box
    lower, width = np.array(box.lower), box.width
    target = problem.h(point[None])[1][0]

    def convex(unit: np.ndarray) -> tuple[float, np.ndarray]:
        x = lower + width * unit
        value, slope = problem.g(x[None])
        # Relative to the start, so that stopping rules see the decrease alone.
        return float(value[0] - target @ (x - point)), (slope[0] - target) * width

    found = optimize.minimize(
        convex,
        (point - lower) / width,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * box.dim,
        options={"maxiter": 100, "ftol": 1e-13, "gtol": 1e-10},
    )
    return box.clip(lower + width * found.x)
