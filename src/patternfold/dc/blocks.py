"""Some variables at a time: the paper's simplification for many variables, section IV-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from patternfold.dc.function import Bounds, Function
from patternfold.dc.result import Result
from patternfold.model.box import Box


class Restricted(Function):
    """f with some of its variables fixed; nothing is compiled for it.

    Parameters
    ----------
    function : Function
        f on its box.
    free : sequence of str
        Names of the variables that are left, in the order of the box.
    point : array of shape (s,)
        Values of all variables, of which those of the free ones are not used.
    """

    def __init__(self, function: Function, free: Sequence[str], point: Any):
        whole = function.box
        index = sorted(whole.index(name) for name in free)
        self.whole, self.free = function, np.array(index)
        self.point = np.array(point, np.float64)
        self.box = Box(
            [whole.names[k] for k in index],
            [whole.lower[k] for k in index],
            [whole.upper[k] for k in index],
        )

    def on(self, box: Box) -> Restricted:
        """The same restriction on another box of the free variables."""
        other = Restricted(self.whole, self.box.names, self.point)
        other.box = box
        return other

    def embed(self, points: Any) -> np.ndarray:
        """All variables, from the free ones."""
        points = np.asarray(points, np.float64)
        full = np.repeat(self.point[None], len(points), axis=0)
        full[:, self.free] = points
        return full

    def values(self, points: Any) -> np.ndarray:
        """f at points of shape (B, free)."""
        return self.whole.values(self.embed(points))

    def gradients(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """f and its gradient in the free variables."""
        value, slope = self.whole.gradients(self.embed(points))
        return value, slope[:, self.free]

    def parts(self, points: Any, rules: str = "tight") -> tuple[np.ndarray, np.ndarray]:
        """The convex parts on the box: a fixed variable has an interval of one point."""
        return self._whole_on_box().parts(self.embed(points), rules)

    def part_gradients(self, points: Any, rules: str = "tight") -> Any:
        """(g, ∇g) and (h, ∇h) in the free variables."""
        (g, slope_g), (h, slope_h) = self._whole_on_box().part_gradients(self.embed(points), rules)
        return (g, slope_g[:, self.free]), (h, slope_h[:, self.free])

    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> Bounds:
        """Bounds on boxes of the free variables."""
        value, low, *rest = self.whole.bounds(self.embed(lower), self.embed(upper))
        gradient, gradient_rad, hessian, hessian_rad = rest
        both = np.ix_(self.free, self.free)
        return Bounds(
            value,
            low,
            gradient[:, self.free],
            gradient_rad[:, self.free],
            hessian[:, *both],
            hessian_rad[:, *both],
        )

    def _whole_on_box(self) -> Function:
        return self.whole.on_interval(*self.embed(np.array([self.box.lower, self.box.upper])))


def minimise_blocks(
    function: Function,
    blocks: Sequence[Sequence[str]],
    solver: Callable[[Function, np.ndarray], Result],
    start: np.ndarray,
    *,
    max_rounds: int = 10,
    tol: float = 1e-4,
    time_limit: float = np.inf,
) -> Result:
    """Minimise over one block of variables after the other, the others staying where they are.

    Each block is searched by ``solver(restricted, start)``, globally if the solver is global; the
    whole is a local search, as the paper remarks, so no lower bound is returned.

    Parameters
    ----------
    function : Function
        f on its box.
    blocks : sequence of sequences of names
        Which variables go together.
    solver : callable
        Takes the restricted function and a start, returns a `Result`.
    start : array of shape (s,)
        Where to begin.
    max_rounds, tol, time_limit
        Stop after so many rounds through all blocks, when a round lowers f by less than this
        share, or after so many seconds.
    """
    began = time.perf_counter()
    point = np.array(start, np.float64)
    value = float(function.values(point[None])[0])
    history, status = [], "max-iter"
    for _ in range(max_rounds):
        before = value
        for names in blocks:
            part = Restricted(function, names, point)
            found = solver(part, point[part.free])
            if found.value < value:
                point, value = part.embed(found.point[None])[0], found.value
            if time.perf_counter() - began > time_limit:
                status = "time-limit"
                break
        history.append((value, -np.inf))
        if status == "time-limit":
            break
        if before - value <= tol * abs(value):
            status = "converged"
            break
    seconds = time.perf_counter() - began
    return Result(point, value, -np.inf, status, len(history), seconds, history)
