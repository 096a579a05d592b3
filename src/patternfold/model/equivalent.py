"""Equivalent poses: λ that a pattern's symmetry makes look alike."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold._validation import as_parameters
from patternfold.model.matrices import require_affine
from patternfold.model.overlaps import turns
from patternfold.model.symmetry import Symmetry
from patternfold.model.transformations import AbstractTransformation, as_transformation

ROUND = 360
"""Turns that stand for all those of a round pattern."""


def equivalent_poses(
    parameters: Any, symmetry: Symmetry, transformation: str | AbstractTransformation
) -> np.ndarray:
    """Return all poses that render a symmetric pattern alike, shape (N, order, d).

    Parameters
    ----------
    parameters : array of shape (N, d)
        λ.
    symmetry : Symmetry
        That of the pattern, such as ``model.symmetry_``.
    transformation : str or transformation
        The family; it must be affine in (x, y).

    Returns
    -------
    array of shape (N, order, d), or (N, 360, d) for a round pattern
        λ itself first; NaN where the family or its box has no such pose: one that stretches along
        two axes has none for turns by 120°, one without rotation none at all.

    Examples
    --------
    >>> from patternfold import Pattern
    >>> from patternfold.symmetry import symmetry_of
    >>> bar = symmetry_of(Pattern([1.0], [[0.0, 0.0, 0.0, 0.4, 0.1]]))
    >>> equivalent_poses([[0.5, 0.1, 0.0]], bar, "rotation-translation").round(3).tolist()
    [[[0.5, 0.1, 0.0], [-2.642, 0.1, 0.0]]]
    """
    family = as_transformation(transformation)
    require_affine(family)
    lam = as_parameters("parameters", parameters, family.parameters.names).astype(np.float64)
    count = symmetry.order or ROUND
    isometries = turns(2 * np.pi * np.arange(count) / count)
    centre = np.array(symmetry.centre)
    # p(R x + s) = p(x), so that F R⁻¹ and t − F R⁻¹ s stand for F and t.
    shifts = centre - isometries @ centre
    with jax.enable_x64(True):
        arrays = (jnp.asarray(a) for a in (lam, np.swapaxes(isometries, 1, 2), shifts))
        moved, exact = (np.asarray(part) for part in _moved(family, *arrays))
    moved = family.parameters.wrap(moved)
    known = exact & family.parameters.contains(moved)
    known[:, 0] = True
    moved = np.where(known[:, :, None], moved, np.nan)
    moved[:, 0] = lam
    return moved


def fold(
    parameters: Any,
    symmetry: Symmetry,
    transformation: str | AbstractTransformation,
    toward: Any = None,
) -> np.ndarray:
    """Return for each pose the equivalent one that is nearest to another, shape (N, d).

    Parameters
    ----------
    parameters, symmetry, transformation
        As in `equivalent_poses`.
    toward : array of shape (N, d) or (d,), optional
        Poses to compare with, such as true ones; by default the identity.

    Examples
    --------
    >>> from patternfold import Pattern
    >>> from patternfold.symmetry import symmetry_of
    >>> bar = symmetry_of(Pattern([1.0], [[0.0, 0.0, 0.0, 0.4, 0.1]]))
    >>> fold([[3.0, 0.1, 0.0]], bar, "rotation-translation").round(3).tolist()
    [[-0.142, 0.1, 0.0]]
    """
    family = as_transformation(transformation)
    box, all_poses = family.parameters, equivalent_poses(parameters, symmetry, family)
    goal = family.identity if toward is None else np.asarray(toward, np.float64)
    gap = all_poses - np.broadcast_to(goal, all_poses[:, 0].shape)[:, None]
    gap = np.where(box.periodic, (gap + box.width / 2) % box.width - box.width / 2, gap)
    far = (gap**2 / box.width**2).sum(axis=2)
    best = np.where(np.isnan(far), np.inf, far).argmin(axis=1)
    return all_poses[np.arange(len(all_poses)), best]


def _moved(
    family: Any, lam: jax.Array, back: jax.Array, shifts: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """λ of F R⁻¹ and t − F R⁻¹ s for every λ and turn, and whether the family has it."""

    def one(lam: jax.Array, back: jax.Array, shift: jax.Array) -> tuple[jax.Array, jax.Array]:
        linear = family.linear(lam) @ back
        place = family.shift(lam) - linear @ shift
        new = family.from_linear(linear, place)
        gap = jnp.abs(family.linear(new) - linear).max() + jnp.abs(family.shift(new) - place).max()
        return new, gap < 1e-6

    over_turns = jax.vmap(one, in_axes=(None, 0, 0))
    return jax.vmap(over_turns, in_axes=(0, None, None))(lam, back, shifts)
