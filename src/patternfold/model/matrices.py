"""Affine transformations as 2×3 matrices of pixels, as other programs take them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from patternfold._validation import as_parameters
from patternfold.model.grid import Grid, as_grid
from patternfold.model.transformations import AbstractTransformation, as_transformation
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
        maps = np.asarray(jax.vmap(family.matrix)(rows))  # pyright: ignore[reportAttributeAccessIssue]
    centre = np.array([grid.width - 1, grid.height - 1]) / 2
    linear, offset = maps[:, :, :2], maps[:, :, 2] / grid.pixel
    return np.concatenate([linear, (centre + offset - linear @ centre)[:, :, None]], axis=2)


def require_affine(family: AbstractTransformation) -> None:
    """Refuse families whose maps no matrix can hold."""
    if not family.is_affine:
        raise TypeError(
            f"{type(family).__name__} is not known to be affine, so it has no matrices; resample "
            "with patternfold.align, or subclass AbstractAffineTransformation."
        )
