"""λ of affine families as matrices and back: F and t of many images at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from patternfold.model.transformations import AbstractAffineTransformation
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.compilation import compiled
from patternfold.numerics.host import on_host
from patternfold.numerics.precision import precision

NEAREST_STEPS = 4
"""Gauss-Newton steps to the nearest member of a family: from some degrees off, to rounding."""


def motions_of(
    family: AbstractAffineTransformation, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """F and t of each row."""
    return _by_row(_linear_and_shift, family, lam)


def members(
    family: AbstractAffineTransformation, linear: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """λ of given F and t, right for members of the family."""
    return _by_row(_from_linear, family, linear, shift)


def nearest_members(
    family: AbstractAffineTransformation, linear: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """λ whose F and t come nearest in the mean square, by Gauss-Newton steps from `members`."""
    lam = members(family, linear, shift)
    wanted = np.concatenate([linear.reshape(-1, 4), shift], axis=1)
    for _ in range(NEAREST_STEPS):
        f, t = motions_of(family, lam)
        away = wanted - np.concatenate([f.reshape(-1, 4), t], axis=1)
        by_f, by_t = _by_row(_slopes, family, lam)
        slopes = np.concatenate([by_f.reshape(len(lam), 4, -1), by_t], axis=1)
        lam = lam + (np.linalg.pinv(slopes) @ away[:, :, None])[:, :, 0]
    return lam


def _by_row(function: Any, family: AbstractAffineTransformation, *rows: np.ndarray) -> Any:
    """Call a compiled function of rows, filled up so that few sizes are compiled.

    A few numbers per image: an accelerator would take longer to be asked than a CPU to answer.
    """
    count = len(rows[0])
    index = np.minimum(np.arange(padded_rows(count)), count - 1)
    with precision(np.dtype(np.float64)), on_host():
        results = function(family, *(part[index] for part in rows))
    return jax.tree.map(lambda part: np.array(part)[:count], results)


@partial(compiled, small=True)
def _linear_and_shift(family: AbstractAffineTransformation, lam: Any) -> tuple[Array, Array]:
    return jax.vmap(lambda row: (family.linear(row), family.shift(row)))(lam)


@partial(compiled, small=True)
def _from_linear(family: AbstractAffineTransformation, linear: Any, shift: Any) -> Array:
    return jax.vmap(family.from_linear)(linear, shift)


@partial(compiled, small=True)
def _slopes(family: AbstractAffineTransformation, lam: Any) -> tuple[Array, Array]:
    return jax.vmap(lambda row: jax.jacfwd(lambda r: (family.linear(r), family.shift(r)))(row))(lam)
