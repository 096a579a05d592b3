"""Resample images into the pattern's frame."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy import ndimage

from patternfold._validation import as_images, as_parameters, lookup
from patternfold.grid import Grid
from patternfold.precision import precision, working_dtype
from patternfold.transformations import AbstractTransformation, as_transformation

_ORDERS = {"linear": 1, "cubic": 3}


def align(
    images: Any,
    parameters: Any,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    *,
    image_shape: tuple[int, int] | None = None,
    shape: tuple[int, int] | None = None,
    interpolation: str = "linear",
    fill: float = 0.0,
) -> np.ndarray:
    """Undo each image's transformation: sample it where the pattern's pixels went.

    Parameters
    ----------
    images : array of shape (N, H, W) or (N, H·W)
        u_i.
    parameters : array of shape (N, d)
        λ_i, as found by `project`.
    transformation : str or transformation
        The family a(λ, x, y); it must have an inverse map.
    image_shape : (H, W), optional
        Shape of flattened images.
    shape : (H, W), optional
        Shape of the aligned images; that of the images by default.
    interpolation : {"linear", "cubic"}
        Between pixels.
    fill : float, default=0
        Value where the image says nothing.

    Returns
    -------
    array of shape (N, H, W)

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((1, 4, 4)); image[0, 1, 3] = 1.0
    >>> align(image, [[0.5, 0.0]], "translation")[0, 1].tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    family = as_transformation(transformation)
    order = lookup("interpolation", interpolation, _ORDERS)
    rows, image_shape = as_images(images, image_shape)
    lam = as_parameters("parameters", parameters, family.parameters.names)
    if len(lam) != len(rows):
        raise ValueError(f"parameters has {len(lam)} rows but there are {len(rows)} images.")
    grid, target = Grid(*image_shape), Grid(*(shape or image_shape))
    dtype = working_dtype(rows)
    aligned = np.empty((len(rows), *target.shape), dtype)
    with precision(dtype):
        x, y = target.x.astype(dtype), target.y.astype(dtype)
        for i, (row, one) in enumerate(zip(rows, lam.astype(dtype), strict=True)):
            column, line = _to_pixels(grid, *_inverse_coordinates(family, one, x, y))
            ndimage.map_coordinates(
                row.reshape(grid.shape),
                [line, column],
                output=aligned[i].reshape(-1),
                order=order,
                mode="constant",
                cval=fill,
            )
    return aligned


@jax.jit
def _inverse_coordinates(
    transformation: AbstractTransformation, lam: Any, x: Any, y: Any
) -> tuple[Any, Any]:
    return transformation.inverse_coordinates(lam, x, y)


def _to_pixels(grid: Grid, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Column and row indices, with fractions, of points in the plane."""
    column = np.asarray(x) / grid.pixel + (grid.width - 1) / 2
    row = np.asarray(y) / grid.pixel + (grid.height - 1) / 2
    return column, row
