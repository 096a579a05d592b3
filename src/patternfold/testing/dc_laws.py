"""The laws of a DC decomposition; users find the check in `patternfold.testing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from patternfold.dc.base import Decomposition

STEP = 1e-5
"""Step of the differences that stand for second derivatives, as a share of the box."""


def check_dc(
    decomposition: Decomposition,
    function: Callable[[np.ndarray], Any] | None = None,
    *,
    nonnegative: bool = False,
    n_points: int = 16,
    seed: int = 0,
) -> None:
    """Check that f = g − h with convex g and h on the box, definition 1 of the paper.

    At random points g − h equals f to rounding; along random segments g and h lie below their
    chords; at random points their gradients are those of their values and their Hessians have no
    negative eigenvalue.

    Parameters
    ----------
    decomposition : Decomposition
        g, h and the box, such as `patternfold.dc.ByParts` makes from two functions.
    function : callable, optional
        f at points of shape (B, s), computed in another way; by default the decomposition's own.
    nonnegative : bool, default=False
        Require g ≥ 0 and h ≥ 0 too, as the rule for products does.
    n_points : int, default=16
        Number of points and of segments.
    seed : int, default=0
        Seed of the random points.

    Examples
    --------
    >>> from patternfold import Box
    >>> from patternfold.dc import ByParts
    >>> check_dc(ByParts(lambda x: (x**4).sum(), lambda x: (x**2).sum(), Box(["x"], [-1], [1])))
    """
    laws = _Laws(decomposition, np.random.default_rng(seed), n_points)
    laws.difference(function or decomposition.values)
    for name, part in (("g", decomposition.g), ("h", decomposition.h)):
        laws.segments(name, part)
        laws.derivatives(name, part)
        if nonnegative:
            low = float(part(laws.points)[0].min())
            laws.require(low >= 0, f"{name} ≥ 0", f"{name} is {low:.3g} at some point")


class _Laws:
    def __init__(self, decomposition: Decomposition, rng: np.random.Generator, n_points: int):
        self.pair, self.rng, self.box = decomposition, rng, decomposition.box
        self.points = self.box.sample(rng, n_points)

    def require(self, holds: Any, law: str, otherwise: str) -> None:
        if not holds:
            name = type(self.pair).__name__
            raise AssertionError(f"{name} breaks the law '{law}': {otherwise}.")

    def difference(self, function: Callable[[np.ndarray], Any]) -> None:
        """Compare g − h with f, to the rounding of the larger of the parts."""
        g, h = self.pair.g(self.points)[0], self.pair.h(self.points)[0]
        f = np.asarray(function(self.points))
        size = np.maximum(np.maximum(np.abs(g), np.abs(h)), 1.0)
        # Parts are sums of many terms, each with its own rounding.
        error = float((np.abs(g - h - f) / size).max())
        self.require(np.isfinite(error), "values are finite", "NaN or infinity occurs")
        self.require(error <= 1e-11, "g − h = f", f"off by {error:.3g} of the parts' size")

    def segments(self, name: str, part: Callable[[np.ndarray], Any]) -> None:
        """Require values between two points not to exceed the chord."""
        ends = self.box.sample(self.rng, len(self.points))
        share = self.rng.uniform(0.05, 0.95, (len(ends), 1))
        # Short segments show negative curvature that long ones average out.
        ends = self.points + self.rng.choice([0.02, 0.2, 1.0], (len(ends), 1)) * (
            ends - self.points
        )
        between = share * self.points + (1 - share) * ends
        start, end, middle = (part(p)[0] for p in (self.points, ends, between))
        chord = share[:, 0] * start + (1 - share[:, 0]) * end
        size = np.maximum(np.abs(start), np.abs(end)) + 1e-300
        excess = float(((middle - chord) / size).max())
        law = f"{name} is convex along segments"
        self.require(excess <= 1e-11, law, f"above the chord by {excess:.3g} of its size")

    def derivatives(self, name: str, part: Callable[[np.ndarray], Any]) -> None:
        """Require ∇ to be that of the values, and ∇² to be positive semidefinite."""
        width, dim = self.box.width, self.box.dim
        inside = self.box.centre + (1 - 4 * STEP) * (self.points - self.box.centre)
        steps = STEP * np.diag(width)
        sides = [(inside[:, None] + sign * steps[None]).reshape(-1, dim) for sign in (1, -1)]
        (up, slope_up), (down, slope_down) = (part(side) for side in sides)
        value, slope = part(inside)
        slope = slope * width
        size = np.abs(value)[:, None] + np.abs(slope).max(axis=1, keepdims=True)
        along = ((up - down) / (2 * STEP)).reshape(-1, dim)
        error = float((np.abs(along - slope) / size).max())
        # Rounding of the values divided by the step, and the third derivative times its square.
        self.require(error <= 1e-6, f"∇{name} is the gradient", f"off by {error:.3g} of its size")
        hessian = ((slope_up - slope_down) * width / (2 * STEP)).reshape(-1, dim, dim)
        values = np.linalg.eigvalsh((hessian + np.swapaxes(hessian, 1, 2)) / 2)
        # Differences of slopes are exact to rounding of the slopes divided by the step.
        allowed = 1e-5 * np.abs(values).max(axis=1) + 1e-9 * np.abs(slope).max(axis=1)
        worst = float((values[:, 0] + allowed).min())
        law = f"∇²{name} is positive semidefinite"
        self.require(worst >= 0, law, f"it has an eigenvalue of {values[:, 0].min():.3g}")
