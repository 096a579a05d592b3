"""The cutting plane algorithm: global minimisation of g − h over a box by outer approximation."""

from __future__ import annotations

import time

import numpy as np

from patternfold.dc.base import Decomposition
from patternfold.dc.result import Result, relative_gap
from patternfold.dc.vertices import TOLERANCE, Polytope


def cutting_plane(
    problem: Decomposition,
    *,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    time_limit: float = np.inf,
    max_vertices: int = 300_000,
) -> Result:
    r"""Minimise f = g − h over a box.

    With a further variable t the problem is to minimise the concave t − h(x) over the convex set
    g(x) ≤ t. A polytope around that set has its least t − h(x), a lower bound of the minimum, at
    a vertex; the plane

    .. math:: t ≥ g(\bar x) + ⟨∇g(\bar x), x - \bar x⟩

    cuts that vertex off, and f(x̄) is an upper bound. The vertices are updated with each cut.

    Few of those vertices are good points. So every other cut goes where t − h is least with h
    replaced by its tangent at the best point: a cutting-plane step for the convex problem of DCA.
    When that problem promises nothing more, all cuts serve the bound.

    Parameters
    ----------
    problem : Decomposition
        g, h and the box.
    start : array of shape (s,), optional
        A point that is known to be good; the result is not worse.
    tol : float
        Stop when value − lower bound is at most this share of abs(value).
    max_iter, time_limit, max_vertices
        Limits on the cuts, the seconds and the size of the polytope.

    Returns
    -------
    Result
        ``n_vertices`` is the number of vertices at the end. The lower bound allows for the
        rounding of the polytope, so that it may stay below the minimum by 1e-8 of g's range.
    """
    search = _Search(problem, start)
    began, status = time.perf_counter(), "max-iter"
    for k in range(max_iter):
        if not (k % 2 and search.cut_locally(tol)) and not search.cut():
            status = "stalled"
            break
        if relative_gap(search.value, search.lower_bound) <= tol:
            status = "certified"
            break
        if time.perf_counter() - began > time_limit:
            status = "time-limit"
            break
        if len(search.polytope.vertices) > max_vertices:
            status = "max-vertices"
            break
    return search.result(status, time.perf_counter() - began)


class _Search:
    """The polytope in units of the box and of g's range, with t − h(x) at every vertex."""

    def __init__(self, problem: Decomposition, start: np.ndarray | None):
        self.problem, box = problem, problem.box
        self.lower, self.width = np.array(box.lower), box.width
        corners = Polytope(np.zeros(box.dim), np.ones(box.dim)).vertices
        at_corners = problem.g(self._x(corners))[0]
        value, slope = problem.g(box.centre[None])
        # g is at most its largest value at a corner, and at least its tangent at the centre.
        floor = float(value[0] - 0.5 * np.abs(slope[0] * self.width).sum())
        self.t_low, self.t_range = floor, float(at_corners.max() - floor) or 1.0
        self.margin = 100 * TOLERANCE * self.t_range
        dim = box.dim
        self.polytope = Polytope(np.zeros(dim + 1), np.append(np.ones(dim), 1 + 1e-3))
        self.scores = self._score(self.polytope.vertices)
        self.point, self.value = box.centre, float(problem.values(box.centre[None])[0])
        if start is not None:
            self._offer(np.asarray(start, np.float64))
        self.lower_bound, self.history = -np.inf, []
        self._cut_at(box.centre, float(value[0]), slope[0])

    def cut(self) -> bool:
        """Cut off the vertex with the least t − h(x); False if rounding prevents it."""
        return self._cut_off(int(self.scores.argmin()))

    def cut_locally(self, tol: float) -> bool:
        """Cut where DCA's convex problem has its least value; False if that promises nothing."""
        value, slope = self.problem.h(self.point[None])
        vertices = self.polytope.vertices
        t = self.t_low + self.t_range * vertices[:, -1]
        promised = t - value[0] - (self._x(vertices[:, :-1]) - self.point) @ slope[0]
        best = int(promised.argmin())
        if promised[best] >= self.value - 0.1 * tol * abs(self.value):
            return False
        return self._cut_off(best)

    def _cut_off(self, vertex: int) -> bool:
        x = self._x(self.polytope.vertices[vertex : vertex + 1, :-1])
        self._offer(x[0])
        value, slope = self.problem.g(x)
        changed = self._cut_at(x[0], float(value[0]), slope[0])
        self.lower_bound = max(self.lower_bound, float(self.scores.min()) - self.margin)
        self.history.append((self.value, self.lower_bound))
        return changed

    def result(self, status: str, seconds: float) -> Result:
        """The best point so far. No bound is better than the value itself."""
        return Result(
            self.point,
            self.value,
            min(self.lower_bound, self.value),
            status,
            len(self.history),
            seconds,
            self.history,
            len(self.polytope.vertices),
        )

    def _x(self, unit: np.ndarray) -> np.ndarray:
        return self.lower + self.width * np.clip(unit, 0.0, 1.0)

    def _score(self, vertices: np.ndarray) -> np.ndarray:
        """t − h(x)."""
        t = self.t_low + self.t_range * vertices[:, -1]
        return t - self.problem.h_values(self._x(vertices[:, :-1]))

    def _offer(self, x: np.ndarray) -> None:
        value = float(self.problem.values(x[None])[0])
        if value < self.value:
            self.point, self.value = x, value

    def _cut_at(self, x: np.ndarray, value: float, slope: np.ndarray) -> bool:
        """Keep t ≥ value + slope·(· − x), in units: a·u − t ≤ a·u_x − t_x."""
        a = slope * self.width / self.t_range
        normal = np.append(a, -1.0)
        u = (x - self.lower) / self.width
        cut = self.polytope.cut(normal, float(a @ u) - (value - self.t_low) / self.t_range)
        self.scores = self.scores[cut.kept]
        if cut.n_new:
            new = self._score(self.polytope.vertices[-cut.n_new :])
            self.scores = np.concatenate([self.scores, new])
        return not cut.kept.all()
