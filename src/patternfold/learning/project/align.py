"""Resample images: into the pattern's frame (`align`), or as transformed patterns (`warp`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import ndimage

from patternfold._validation import as_images, as_parameters, lookup, require_finite
from patternfold.learning.chunk import Chunk
from patternfold.learning.observations import Observations
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.compilation import compiled
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
    return _resample(True, images, parameters, transformation, image_shape, interpolation, fill)


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

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((1, 4, 4))
    >>> image[0, 1, 2] = 1.0
    >>> warp(image, [[0.5, 0.0]], "translation")[0, 1].tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    return _resample(False, images, parameters, transformation, image_shape, interpolation, fill)


def _resample(
    inverse: bool,
    images: Any,
    parameters: Any,
    transformation: str | AbstractTransformation,
    image_shape: tuple[int, int] | None,
    interpolation: str,
    fill: float,
) -> np.ndarray:
    """Sample each image where the map, or its inverse, sends the pixels of the grid."""
    family = as_transformation(transformation)
    order = lookup("interpolation", interpolation, _ORDERS)
    rows, shape = as_images(images, image_shape, finite=False)
    lam = as_parameters("parameters", parameters, family.parameters.names)
    if len(lam) != len(rows):
        raise ValueError(f"parameters has {len(lam)} rows but there are {len(rows)} images.")
    grid, dtype = Grid(*shape), working_dtype(rows)
    if not len(rows):
        return np.empty((0, *shape), dtype)
    with precision(dtype):
        observations = Observations.put(rows.astype(dtype, copy=False), grid)
        if not observations.finite:
            require_finite("images", rows)
        stage = partial(
            _sampled if order == 1 else _places, family=family, grid=grid, inverse=inverse
        )
        if order == 1:
            sampled = observations.map(partial(stage, fill=np.asarray(fill, dtype)), lam)
            return sampled.reshape(-1, *shape)
        line, column = observations.map(stage, lam)
    result = np.empty((len(rows), *shape), dtype)
    for row, *place, output in zip(rows, line, column, result, strict=True):
        ndimage.map_coordinates(
            row.reshape(shape).astype(dtype, copy=False),
            np.stack(place),
            output=output.reshape(-1),
            order=order,
            # Unlike "constant", this fades to the fill value over the last half pixel.
            mode="grid-constant",
            cval=fill,
        )
    return result


@partial(compiled, static_argnames=("grid", "inverse"))
def _sampled(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    family: AbstractTransformation,
    grid: Grid,
    inverse: bool,
    fill: Array,
) -> Float[Array, "B n"]:
    return sample(chunk.images, lam, family, grid, inverse, fill)


@partial(compiled, static_argnames=("grid", "inverse"))
def _places(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    family: AbstractTransformation,
    grid: Grid,
    inverse: bool,
) -> tuple[Float[Array, "B n"], Float[Array, "B n"]]:
    return places(lam, family, grid, inverse)


def places(
    lam: Float[Array, "B d"], family: AbstractTransformation, grid: Grid, inverse: bool
) -> tuple[Float[Array, "B n"], Float[Array, "B n"]]:
    """Line and column, in pixels, to which the map or its inverse sends each pixel."""
    x, y = (jnp.asarray(c, lam.dtype) for c in (grid.x, grid.y))
    move = family.inverse_coordinates if inverse else family.coordinates
    return pixel_places(*jax.vmap(move, in_axes=(0, None, None))(lam, x, y), grid)


def pixel_places(
    x: Float[Array, "B n"], y: Float[Array, "B n"], grid: Grid
) -> tuple[Float[Array, "B n"], Float[Array, "B n"]]:
    """Line and column, in pixels, of points."""
    return y / grid.pixel + (grid.height - 1) / 2, x / grid.pixel + (grid.width - 1) / 2


def sample(
    images: Float[Array, "B n"],
    lam: Float[Array, "B d"],
    family: AbstractTransformation,
    grid: Grid,
    inverse: bool,
    fill: Array | float = 0.0,
) -> Float[Array, "B n"]:
    """Bilinear samples of each image; what lies outside has the value ``fill``."""
    return bilinear(images, *places(lam, family, grid, inverse), grid, fill)


def bilinear(
    images: Float[Array, "B n"],
    line: Float[Array, "B m"],
    column: Float[Array, "B m"],
    grid: Grid,
    fill: Array | float = 0.0,
) -> Float[Array, "B m"]:
    """Values of each image between its pixels; what lies outside has the value ``fill``."""
    top, left = jnp.floor(line), jnp.floor(column)
    low, right = line - top, column - left

    def at(i: Array, j: Array) -> Array:
        inside = (i >= 0) & (i < grid.height) & (j >= 0) & (j < grid.width)
        index = jnp.where(inside, i * grid.width + j, 0).astype(jnp.int32)
        return jnp.where(inside, jnp.take_along_axis(images, index, axis=1), fill)

    above = (1 - right) * at(top, left) + right * at(top, left + 1)
    below = (1 - right) * at(top + 1, left) + right * at(top + 1, left + 1)
    return (1 - low) * above + low * below
