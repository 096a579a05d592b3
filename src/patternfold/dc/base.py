"""Decompositions f = g − h over a box, as solvers use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from patternfold.dc.function import Function
from patternfold.model.box import Box
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

ValuesAndSlopes = tuple[np.ndarray, np.ndarray]
"""Values (B,) and gradients (B, s)."""


class Decomposition(ABC):
    """A pair of convex functions g and h on a box, definition 1. All methods take (B, s)."""

    box: Box

    @abstractmethod
    def g(self, points: np.ndarray) -> ValuesAndSlopes:
        """g and ∇g."""

    @abstractmethod
    def h(self, points: np.ndarray) -> ValuesAndSlopes:
        """h and ∇h."""

    @abstractmethod
    def h_values(self, points: np.ndarray) -> np.ndarray:
        """h alone, at many points."""

    @abstractmethod
    def values(self, points: np.ndarray) -> np.ndarray:
        """f = g − h, to better than the rounding of g and h where that is known."""


class ByRules(Decomposition):
    """The decomposition that a formula gets from the rules of the algebra.

    Parameters
    ----------
    function : Function
        f on its box.
    rules : {"tight", "paper"}
        How the rules are applied, see `patternfold.dc.algebra.RULES`.
    """

    def __init__(self, function: Function, rules: str = "tight"):
        self.function = function
        self.rules = rules
        self.box = function.box

    def g(self, points: np.ndarray) -> ValuesAndSlopes:
        """g and ∇g."""
        return self.function.part_gradients(points, self.rules)[0]

    def h(self, points: np.ndarray) -> ValuesAndSlopes:
        """h and ∇h."""
        return self.function.part_gradients(points, self.rules)[1]

    def h_values(self, points: np.ndarray) -> np.ndarray:
        """h alone."""
        return self.function.parts(points, self.rules)[1]

    def values(self, points: np.ndarray) -> np.ndarray:
        """f by its formula."""
        return self.function.values(points)


class ByCurvature(Decomposition):
    """f = (f + ½Σρ_k(x_k−m_k)²) − ½Σρ_k(x_k−m_k)², m the centre of the box.

    Parameters
    ----------
    function : Function
        f on its box.
    rho : array of shape (s,)
        ρ with ∇²f + diag(ρ) positive semidefinite on the box, such as `hessian_bound` finds.
    """

    def __init__(self, function: Function, rho: Any):
        self.function = function
        self.rho = np.asarray(rho, np.float64)
        self.box = function.box

    def g(self, points: np.ndarray) -> ValuesAndSlopes:
        """g and ∇g."""
        (value, slope), (extra, extra_slope) = self.function.gradients(points), self.h(points)
        return value + extra, slope + extra_slope

    def h(self, points: np.ndarray) -> ValuesAndSlopes:
        """h and ∇h."""
        away = np.asarray(points) - self.box.centre
        return 0.5 * (self.rho * away**2).sum(axis=1), self.rho * away

    def h_values(self, points: np.ndarray) -> np.ndarray:
        """h alone."""
        return self.h(points)[0]

    def values(self, points: np.ndarray) -> np.ndarray:
        """f by its formula."""
        return self.function.values(points)


class ByParts(Decomposition):
    """A decomposition of the user's own, from two convex JAX functions of x, shape (s,).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from patternfold import Box
    >>> from patternfold.dc import ByParts, cutting_plane
    >>> pair = ByParts(lambda x: (x**4).sum(), lambda x: 2 * (x**2).sum(), Box(["x"], [-1], [2]))
    >>> found = cutting_plane(pair, tol=1e-6)
    >>> round(found.value, 4), found.status
    (-1.0, 'certified')
    """

    def __init__(self, g: Callable[..., Any], h: Callable[..., Any], box: Box):
        self._g, self._h, self.box = g, h, box

    def g(self, points: np.ndarray) -> ValuesAndSlopes:
        """g and ∇g."""
        return _evaluate(self._g, points)

    def h(self, points: np.ndarray) -> ValuesAndSlopes:
        """h and ∇h."""
        return _evaluate(self._h, points)

    def h_values(self, points: np.ndarray) -> np.ndarray:
        """h alone."""
        return self.h(points)[0]

    def values(self, points: np.ndarray) -> np.ndarray:
        """g − h."""
        return self.g(points)[0] - self.h(points)[0]


def _evaluate(function: Callable[..., Any], points: np.ndarray) -> ValuesAndSlopes:
    """Values and gradients in float64, at a number of points that is one of a few."""
    points = np.asarray(points, np.float64)
    size = 1 if len(points) == 1 else -(-len(points) // 64) * 64
    rows = points[np.minimum(np.arange(size), len(points) - 1)]
    with precision(np.dtype(np.float64)):
        value, slope = _value_and_grad(function, rows)
        return np.asarray(value)[: len(points)], np.asarray(slope)[: len(points)]


@partial(compiled, static_argnums=0)
def _value_and_grad(function: Callable[..., Any], rows: Any) -> tuple[Any, Any]:
    return jax.vmap(jax.value_and_grad(function))(rows)
