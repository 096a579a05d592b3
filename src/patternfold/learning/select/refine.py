"""Local improvement of one new atom: on Ẽ with the coefficient in closed form, then on Ê."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.distance import Distance
from patternfold.learning.objectives import (
    FrozenSums,
    frozen_model,
    frozen_sums,
    tangent_model,
)
from patternfold.learning.observations import Chunk, Observations
from patternfold.learning.select.points import Points, residual_points
from patternfold.model.atoms import AtomFamily
from patternfold.model.box import Box
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import Model, advance, begin, minimise


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
    places = tuple(jnp.asarray(part) for part in points[:4])

    def model_at(gamma: Float[Array, "S s"]) -> Model:
        return frozen_model(frozen_sums(family, gamma, *places))[0]

    end = minimise(model_at, gamma, box, max_iter)
    coef = frozen_model(frozen_sums(family, end.point, *places))[1]
    return end.point, coef, -end.model.cost


def refine_frozen_on_pixels(
    gamma: np.ndarray,
    observations: Observations,
    lam: np.ndarray,
    distance: Distance,
    box: Box,
    max_iter: int,
) -> tuple[np.ndarray, float]:
    """Climb from one γ on the pixels themselves, where gathering them on nodes blurs too much."""

    def sums_at(gamma: np.ndarray) -> FrozenSums:
        return observations.total(partial(_pixel_sums, gamma=gamma, distance=distance), lam)

    def model_at(gamma: np.ndarray) -> Any:
        return _frozen_model(_like(sums_at(gamma), gamma))[0]

    start = box.put_inside(gamma)[None].astype(observations.dtype)
    point = _descend(model_at, start, box, max_iter)
    coef = _frozen_model(_like(sums_at(point), point))[1]
    return np.asarray(point[0], np.float64), float(coef[0])


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
    max_iter: int = 8,
) -> tuple[np.ndarray, float]:
    """Descend on Ê over (γ, c), as line 9 of Algorithm 1; ``distance`` is that to p_{j-1}."""
    # The coefficient may grow or change sign within reason: where signed weights outweigh, Ê is
    # unbounded in it. In units of its start it has the same bounds for every atom.
    unit = abs(coef) + float(np.finfo(observations.dtype).tiny)
    names = [name for name, periodic in zip(box.names, box.periodic, strict=True) if periodic]
    both = Box((*box.names, "coef"), (*box.lower, -4.0), (*box.upper, 4.0), periodic=names)

    def model_at(atom: np.ndarray) -> Any:
        stage = partial(_tangent_model, atom=atom, unit=np.asarray(unit, atom.dtype), base=distance)
        return _like(observations.total(stage, lam), atom)

    start = np.append(box.put_inside(gamma), coef / unit)[None].astype(observations.dtype)
    atom = np.asarray(_descend(model_at, start, both, max_iter)[0], np.float64)
    return box.put_inside(atom[:-1]), float(atom[-1]) * unit


@compiled
def _tangent_model(
    chunk: Chunk, lam: Float[Array, "B d"], atom: Float[Array, "1 a"], unit: Array, base: Distance
) -> Model:
    units = jnp.ones_like(atom[0]).at[-1].set(unit)
    model = tangent_model(chunk, lam, atom * units[None], base)
    matrix = model.metric * units[None, :, None] * units[None, None, :]
    return Model(model.cost, model.slope * units[None], matrix)


def _descend(model_at: Any, start: np.ndarray, box: Box, max_iter: int) -> np.ndarray:
    """The solver's loop for one atom, the model being a sum over chunks of images."""
    state, trial = None, start
    for _ in range(max_iter + 1):
        model = model_at(trial)
        if state is None:
            state = begin(jnp.asarray(start), model)
        state = _advance(state, model, box)
        if bool(state.done[0]):
            break
        trial = np.asarray(state.trial)
    assert state is not None
    return np.asarray(state.point)


_advance = compiled(advance)


def _like(sums: Any, array: np.ndarray) -> Any:
    """Sums, which were added in float64, in the precision of an array."""
    return jax.tree.map(lambda part: part.astype(array.dtype), sums)
