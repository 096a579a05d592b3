"""Affine transformations as 2×3 matrices of pixels, as other programs take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold._validation import as_parameters
from patternfold.model.grid import Grid, as_grid
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision


def matrices(
    lam: Any,
    transformation: str | AbstractTransformation,
    image_shape: tuple[int, int] | Grid,
) -> np.ndarray:
    """Return the matrices that take images into the pattern's frame, as OpenCV wants them.

    ``M`` maps (x, y, 1), the column and row of a point of the image, to its column and row in the
    aligned image; pixel centres are at integers. ``cv2.warpAffine(image, M, (width, height))``
    gives what `align` gives.

    Parameters
    ----------
    lam : array of shape (N, d)
        λ, as found by `project`.
    transformation : str or transformation
        The family a(λ, x, y); it must be affine in (x, y).
    image_shape : (H, W)
        Size of the images, and of the aligned ones.

    Returns
    -------
    array of shape (N, 2, 3), float64

    Raises
    ------
    TypeError
        If the family is not affine; `align` takes any family that has an inverse.

    Examples
    --------
    >>> matrices([[0.5, 0.0]], "translation", (16, 16))[0, :, 2].tolist()
    [-4.0, 0.0]
    """
    family, grid = as_transformation(transformation), as_grid(image_shape)
    require_affine(family)
    rows = as_parameters("lam", lam, family.parameters.names).astype(np.float64)
    with precision(np.dtype(np.float64)):
        maps = np.asarray(_maps(jnp.asarray(rows), family))
    centre = np.array([grid.width - 1, grid.height - 1]) / 2
    linear, offset = maps[:, :, :2], maps[:, :, 2] / grid.pixel
    return np.concatenate([linear, (centre + offset - linear @ centre)[:, :, None]], axis=2)


@compiled
def _maps(lam: Float[Array, "N d"], family: Any) -> Float[Array, "N 2 3"]:
    return jax.vmap(family.matrix)(lam)


def require_affine(family: AbstractTransformation) -> None:
    """Refuse families whose maps no matrix can hold."""
    if not family.is_affine:
        raise TypeError(
            f"{type(family).__name__} is not known to be affine, so it has no matrices; resample "
            "with patternfold.align, or subclass AbstractAffineTransformation."
        )


class Turn(NamedTuple):
    """What matrices do to pictures, in words that people use."""

    angle: np.ndarray
    """How far the picture shows the pattern turned, in degrees, counter-clockwise as seen."""
    scale: np.ndarray
    """How much larger than in the frame it is shown: the root of the ratio of areas."""
    scale_x: np.ndarray
    """Likewise along the pattern's own horizontal axis."""
    scale_y: np.ndarray
    """Likewise across it."""


def read_matrices(maps: np.ndarray) -> Turn:
    """Return angles, in (−180, 180], and scales of matrices of shape (N, 2, 3) or (N, 2, 2).

    Examples
    --------
    >>> quarter = [[[0.0, -1.0], [1.0, 0.0]]]  # takes x to y, which points down: clockwise
    >>> read_matrices(np.array(quarter)).angle.tolist()
    [90.0]
    """
    shown = np.linalg.inv(maps[:, :, :2])
    area = np.linalg.det(shown)
    along = np.hypot(shown[:, 0, 0], shown[:, 1, 0])
    angle = np.degrees(np.arctan2(-shown[:, 1, 0], shown[:, 0, 0]))
    return Turn(np.where(angle <= -180, 180.0, angle), np.sqrt(np.abs(area)), along, area / along)


def keeps_shapes(family: AbstractTransformation) -> bool:
    """Tell whether an affine family has one scale for both axes, and no shear."""
    box = family.parameters
    # A point of the box like no other: by the golden ratio, parameters have nothing in common.
    share = np.mod((1 + np.arange(box.dim)) * (np.sqrt(5) - 1) / 2, 1)
    first, second = matrices(box.lower + share * box.width, family, (2, 2))[0, :, :2].T
    return bool(np.allclose([first @ second, first @ first], [0, second @ second], atol=1e-9))
