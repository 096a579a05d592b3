"""Branch and bound: global minimisation over a box by cutting it into smaller boxes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import numpy as np
from scipy import optimize

from patternfold.dc.base import Decomposition
from patternfold.dc.curvature import halve, lower_bounds
from patternfold.dc.function import Function
from patternfold.dc.result import Result, relative_gap
from patternfold.model.box import Box

BATCH = 32
"""Boxes that are cut at a time; their halves share calls of the compiled kernels."""


def branch_and_bound(
    problem: Function | Decomposition,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100_000,
    time_limit: float = np.inf,
    max_boxes: int = 1_000_000,
) -> Result:
    """Minimise f over a box.

    The boxes with the lowest lower bounds are halved, those whose bound is above the best value
    are dropped, until none is left below it. For a `Function` the bounds come from the tight
    decomposition, made anew on each box: they rise as boxes shrink. For a `Decomposition` g is
    bounded by a tangent and h by a plane above its values at the corners.

    Parameters
    ----------
    problem : Function or Decomposition
        f on its box.
    start : array of shape (s,), optional
        A point that is known to be good; the result is not worse.
    tol : float
        Stop when value − lower bound is at most this share of abs(value).
    max_iter, time_limit, max_boxes
        Limits on the rounds, the seconds and the number of open boxes.

    Returns
    -------
    Result
        ``n_vertices`` is the number of boxes that were bounded.
    """
    bounder = _ByCurvature(problem) if isinstance(problem, Function) else _ByParts(problem)
    search = _Search(bounder, problem.box, start, tol)
    began, status = time.perf_counter(), "max-iter"
    for _ in range(max_iter):
        if relative_gap(search.value, search.lower_bound) <= tol:
            status = "certified"
            break
        if time.perf_counter() - began > time_limit:
            status = "time-limit"
            break
        if len(search.low) > max_boxes:
            status = "max-boxes"
            break
        search.round()
    return search.result(status, time.perf_counter() - began)


class _Bounder(ABC):
    """How f is bounded on boxes."""

    @abstractmethod
    def values(self, points: np.ndarray) -> np.ndarray:
        """f."""

    @abstractmethod
    def gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """f and ∇f at one point."""

    @abstractmethod
    def bound(
        self, lower: np.ndarray, upper: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower bounds (B,), promising points (B, s), and how f varies along each axis (B, s)."""


class _ByCurvature(_Bounder):
    def __init__(self, function: Function):
        self.function = function

    def values(self, points: np.ndarray) -> np.ndarray:
        return self.function.values(points)

    def gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self.function.gradients(point[None])
        return float(value[0]), slope[0]

    def bound(
        self, lower: np.ndarray, upper: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        bounds = self.function.bounds(lower, upper)
        low, points = lower_bounds(bounds, lower, upper)
        variation = (np.abs(bounds.gradient) + bounds.gradient_rad) * (upper - lower)
        return low, points, variation


class _ByParts(_Bounder):
    def __init__(self, pair: Decomposition):
        self.pair = pair
        dim = pair.box.dim
        self.signs = 2.0 * ((np.arange(2**dim)[:, None] >> np.arange(dim)[None]) & 1) - 1

    def values(self, points: np.ndarray) -> np.ndarray:
        return self.pair.values(points)

    def gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        g, h = self.pair.g(point[None]), self.pair.h(point[None])
        return float(self.pair.values(point[None])[0]), g[1][0] - h[1][0]

    def bound(
        self, lower: np.ndarray, upper: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """g above its tangent at the centre, h below the plane nearest its corner values.

        h minus a plane is convex, so that it is largest at a corner: raising the plane by what
        is missing there puts it above h.
        """
        n_boxes, dim = lower.shape
        centre, half = (lower + upper) / 2, (upper - lower) / 2
        g, slope = self.pair.g(centre)
        corners = centre[:, None] + half[:, None] * self.signs[None]
        h = self.pair.h_values(corners.reshape(-1, dim)).reshape(n_boxes, -1)
        # Slopes of the least-squares plane, in units of the half widths.
        plane = h @ self.signs / len(self.signs)
        top = (h - plane @ self.signs.T).max(axis=1)
        along = slope * half - plane
        low = g - top - np.abs(along).sum(axis=1)
        # The curved part of g − h along each axis is what halving reduces, with the slope.
        rough = np.abs(along) + np.abs(slope * half)
        return low, centre - half * np.sign(along), rough


class _Search:
    """Open boxes with their bounds, and the best point."""

    def __init__(self, bounder: _Bounder, box: Box, start: np.ndarray | None, tol: float):
        self.bounder, self.box, self.tol = bounder, box, tol
        self.point, self.value = box.centre, np.inf
        self.history: list[tuple[float, float]] = []
        self.n_bounded = 0
        for point in [box.centre] if start is None else [box.centre, np.asarray(start, float)]:
            self._offer(point[None])
        self.low, self.lower, self.upper, self.axis = self._bound(
            np.array([box.lower]), np.array([box.upper])
        )

    @property
    def lower_bound(self) -> float:
        """The least bound of the open boxes; dropped ones are above the value less its share."""
        open_boxes = float(self.low.min()) if len(self.low) else np.inf
        return min(open_boxes, self.value - self._slack)

    @property
    def _slack(self) -> float:
        """What a dropped box may be below the value; rounding is far smaller."""
        return 0.99 * self.tol * abs(self.value)

    def round(self) -> None:
        """Halve the boxes with the lowest bounds and drop what cannot hold the minimum."""
        n = min(BATCH, len(self.low))
        chosen = np.argpartition(self.low, n - 1)[:n]
        parents = self.low[chosen]
        halves = halve(self.lower[chosen], self.upper[chosen], self.axis[chosen])
        low, *rest = self._bound(*halves)
        # A part of a box is bounded by what bounds the whole.
        children = (np.maximum(low, np.concatenate([parents, parents])), *rest)
        old = (self.low, self.lower, self.upper, self.axis)
        kept = np.ones(len(self.low), bool)
        kept[chosen] = False
        merged = [np.concatenate([a[kept], b]) for a, b in zip(old, children, strict=True)]
        promising = merged[0] < self.value - self._slack
        self.low, self.lower, self.upper, self.axis = (a[promising] for a in merged)
        self.history.append((self.value, self.lower_bound))

    def result(self, status: str, seconds: float) -> Result:
        """The best point so far."""
        return Result(
            self.point,
            self.value,
            self.lower_bound,
            status,
            len(self.history),
            seconds,
            self.history,
            self.n_bounded,
        )

    def _bound(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, ...]:
        low, points, variation = self.bounder.bound(lower, upper)
        self.n_bounded += len(low)
        self._offer(points[np.argsort(low)[:16]])
        # Bounds are sums of many terms: their rounding is relative to the value's size.
        return low - 1e-10 * (abs(self.value) + np.abs(low)), lower, upper, variation.argmax(axis=1)

    def _offer(self, points: np.ndarray) -> None:
        """Take the best of the points if it is better, and go downhill from it."""
        values = self.bounder.values(points)
        best = int(values.argmin())
        if values[best] >= self.value:
            return
        self.point, self.value = points[best], float(values[best])
        bounds = list(zip(self.box.lower, self.box.upper, strict=True))
        width = self.box.width

        def scaled(unit: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.bounder.gradient(unit * width)
            return value, slope * width

        found = optimize.minimize(
            scaled,
            self.point / width,
            jac=True,
            method="L-BFGS-B",
            bounds=[(a / w, b / w) for (a, b), w in zip(bounds, width, strict=True)],
            options={"maxiter": 50},
        )
        if found.fun < self.value:
            self.point, self.value = self.box.clip(found.x * width), float(found.fun)
