"""Local improvement of one new atom: on Ẽ with the coefficient in closed form, then on Ê."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.objectives import (
    FrozenSums,
    frozen_model,
    frozen_sums,
    tangent_model,
)
from patternfold.learning.observations import Observations
from patternfold.learning.select.points import Points, residual_points
from patternfold.model.atoms import AtomFamily
from patternfold.model.box import Box
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import Model, descend, held_at_bounds, minimise


def refine_frozen(
    gamma: np.ndarray, points: Points, family: AtomFamily, box: Box, max_iter: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Climb to the nearest maximum of the gain in Ẽ from each row of ``gamma``, all at once.

    Returns γ (S, s), the coefficients c (S,) and the gains (S,).
    """
    start = box.put_inside(gamma).astype(points.x.dtype)
    found = _climb(start, points, family, box, np.asarray(max_iter))
    gamma, coef, gain = (np.asarray(part, np.float64) for part in found)
    return box.put_inside(gamma), coef, gain


@compiled
def _climb(
    gamma: Float[Array, "S s"], points: Points, family: AtomFamily, box: Box, max_iter: Array
) -> tuple[Array, Array, Array]:
    x, y, weighted, weights = (jnp.asarray(part) for part in points[:4])

    offset = jnp.asarray(points.offset, gamma.dtype)

    def model_at(gamma: Float[Array, "S s"]) -> Model:
        sums = frozen_sums(family, gamma, x, y, weighted, weights, offset)
        model, coef = frozen_model(sums, points.max_coef)
        return model._replace(known=coef)

    like = Model.blank(gamma)._replace(known=gamma[:, 0])
    end = minimise(model_at, gamma, box, max_iter, like=like)
    return end.point, end.model.known, -end.model.cost


def refine_frozen_on_pixels(
    gamma: np.ndarray,
    observations: Observations,
    lam: np.ndarray,
    distance: Distance,
    box: Box,
    max_coef: float,
    max_iter: int,
) -> tuple[np.ndarray, float]:
    """Climb from one γ on the pixels themselves, where gathering them on nodes blurs too much."""
    dtype = observations.dtype

    def sums_at(gamma: np.ndarray) -> FrozenSums:
        stage = partial(_pixel_sums, gamma=gamma[None].astype(dtype), distance=distance)
        sums = observations.total(stage, lam)
        return jax.tree.map(lambda part: part.astype(dtype), sums)

    def model_at(gamma: np.ndarray) -> Model:
        return _frozen_model(sums_at(gamma), max_coef)[0]

    start = NewAtom(model_at, box, box.put_inside(gamma))
    point = [start, *descend(start, max_iter, TOLERANCE)][-1].point
    return point, float(_frozen_model(sums_at(point), max_coef)[1][0])


@compiled
def _pixel_sums(
    chunk: Chunk, lam: Float[Array, "B d"], gamma: Float[Array, "1 s"], distance: Distance
) -> FrozenSums:
    points = (part.reshape(-1) for part in residual_points(chunk, lam, distance))
    return frozen_sums(distance.atoms.family, gamma, *points)


_frozen_model = compiled(frozen_model)


def refine_tangent(
    gamma: np.ndarray,
    coef: float,
    observations: Observations,
    lam: np.ndarray,
    distance: Distance,
    box: Box,
    max_coef: float = np.inf,
    max_iter: int = 8,
) -> tuple[np.ndarray, float]:
    """Descend on Ê over (γ, c), as line 9 of Algorithm 1; ``distance`` is that to p_{j-1}."""
    # The coefficient may grow or change sign within reason, and within the box of c.
    reach = min(4 * abs(coef), max_coef) + float(np.finfo(observations.dtype).tiny)
    names = [name for name, periodic in zip(box.names, box.periodic, strict=True) if periodic]
    both = Box((*box.names, "coef"), (*box.lower, -reach), (*box.upper, reach), periodic=names)
    rows = observations.on_devices(lam)

    def model_at(atom: np.ndarray) -> Model:
        atom = atom[None].astype(observations.dtype)
        return observations.total(partial(_tangent_model, atom=atom, base=distance), rows)

    start = NewAtom(model_at, both, np.append(box.put_inside(gamma), coef))
    atom = [start, *descend(start, max_iter, TOLERANCE)][-1].point
    return box.put_inside(atom[:-1]), float(atom[-1])


_tangent_model = compiled(tangent_model)

TOLERANCE = 1e-6
"""A step that lowers the error by less than this share of it is the last one."""


@dataclass(frozen=True)
class NewAtom:
    """An error as a function of one atom, summed over chunks of images: a point of `descend`."""

    model_at: Callable[[np.ndarray], Model]
    box: Box
    point: np.ndarray
    promised: float = np.inf

    @cached_property
    def model(self) -> Model:
        """The error near the point."""
        return Model(*(np.asarray(part, np.float64)[0] for part in self.model_at(self.point)[:3]))  # pyright: ignore

    @property
    def cost(self) -> float:
        """The error."""
        return float(self.model.cost)

    def step(self, damping: float) -> NewAtom:
        """Move by a damped Gauss-Newton step, at most a quarter of the box."""
        # Where the error is no number there is no way down: the step stays, and is refused.
        slope, matrix = (np.nan_to_num(np.asarray(a)) for a in self.model[1:3])
        unit = self.box.width * ~held_at_bounds(self.box, self.point, slope)
        matrix = matrix * np.outer(unit, unit)
        diagonal = np.diag(matrix)
        extra = damping * diagonal + 1e-9 * diagonal.max(initial=0) + np.finfo(float).tiny
        delta = np.linalg.lstsq(matrix + np.diag(extra), slope * unit, rcond=None)[0]
        delta *= 0.25 / max(np.abs(delta).max(initial=0), 0.25)
        promised = float(delta @ (2 * slope * unit - matrix @ delta))
        point = self.box.put_inside(self.point + unit * delta)
        return replace(self, point=point, promised=promised)
