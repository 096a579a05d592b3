"""Resample images: into the pattern's frame (`align`), or as transformed patterns (`warp`)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy import ndimage

from patternfold._validation import as_images, as_parameters, lookup
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.precision import precision, working_dtype

_ORDERS = {"linear": 1, "cubic": 3}


def align(
    images: Any,
    parameters: Any,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    *,
    image_shape: tuple[int, int] | None = None,
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
    >>> image = np.zeros((1, 4, 4))
    >>> image[0, 1, 3] = 1.0
    >>> align(image, [[0.5, 0.0]], "translation")[0, 1].tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    return _resample(
        _inverse_coordinates, images, parameters, transformation, image_shape, interpolation, fill
    )


def warp(
    images: Any,
    parameters: Any,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    *,
    image_shape: tuple[int, int] | None = None,
    interpolation: str = "linear",
    fill: float = 0.0,
) -> np.ndarray:
    """Transform images as if they were patterns, U_λ(u): the opposite of `align`.

    Parameters and result as in `align`.
    """
    return _resample(
        _coordinates, images, parameters, transformation, image_shape, interpolation, fill
    )


def _resample(
    coordinates: Any,
    images: Any,
    parameters: Any,
    transformation: str | AbstractTransformation,
    image_shape: tuple[int, int] | None,
    interpolation: str,
    fill: float,
) -> np.ndarray:
    """Sample each image where ``coordinates`` sends the pixels of the grid."""
    family = as_transformation(transformation)
    order = lookup("interpolation", interpolation, _ORDERS)
    rows, shape = as_images(images, image_shape)
    lam = as_parameters("parameters", parameters, family.parameters.names)
    if len(lam) != len(rows):
        raise ValueError(f"parameters has {len(lam)} rows but there are {len(rows)} images.")
    grid, dtype = Grid(*shape), working_dtype(rows)
    result = np.empty((len(rows), *shape), dtype)
    with precision(dtype):
        x, y = grid.x.astype(dtype), grid.y.astype(dtype)
        for row, one, output in zip(rows, lam.astype(dtype), result, strict=True):
            x_new, y_new = coordinates(family, one, x, y)
            column = np.asarray(x_new) / grid.pixel + (grid.width - 1) / 2
            line = np.asarray(y_new) / grid.pixel + (grid.height - 1) / 2
            ndimage.map_coordinates(
                row.reshape(shape).astype(dtype, copy=False),
                np.stack([line, column]),
                output=output.reshape(-1),
                order=order,
                # Unlike "constant", this fades to the fill value over the last half pixel.
                mode="grid-constant",
                cval=fill,
            )
    return result


@jax.jit
def _coordinates(
    transformation: AbstractTransformation, lam: Any, x: Any, y: Any
) -> tuple[Any, Any]:
    return transformation.coordinates(lam, x, y)


@jax.jit
def _inverse_coordinates(
    transformation: AbstractTransformation, lam: Any, x: Any, y: Any
) -> tuple[Any, Any]:
    return transformation.inverse_coordinates(lam, x, y)
