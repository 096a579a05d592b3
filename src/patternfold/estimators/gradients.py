"""Images as coarse maps of oriented gradients: strokes count, where exactly matters less."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.observations import Observations
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

ORIENTATIONS = 8
"""Directions of the gradient, over the full circle."""

CELLS = 8
"""Places along each axis where gradients are gathered."""

WIDTH = 0.05
"""Standard deviation of a place, as a share of the image's side."""


def n_gradients() -> int:
    """Number of values per image."""
    return ORIENTATIONS * CELLS**2


def oriented_gradients(images: np.ndarray) -> np.ndarray:
    """Return the strength of the gradient in each direction and place, as rows.

    A gradient counts for a direction by the cube of the cosine between them.
    The values of an image have unit norm before the square root is taken, so that neither
    brightness nor a few strong edges dominate.

    Parameters
    ----------
    images : array of shape (N, H, W)

    Returns
    -------
    values : array of shape (N, 512)
        Place by place of each direction, in [0, 1]; zeros for an image without gradients.

    Examples
    --------
    >>> import numpy as np
    >>> ramp = np.tile(np.arange(16.0), (16, 1))
    >>> strength = oriented_gradients(ramp[None]).reshape(8, -1).sum(axis=1)
    >>> int(strength.argmax()), float(strength[4])
    (0, 0.0)
    """
    if not len(images):
        return np.empty((0, n_gradients()), images.dtype)
    with precision(images.dtype):
        observations = Observations.put(images.reshape(len(images), -1), Grid(*images.shape[1:]))
        return observations.map(partial(_gathered, shape=images.shape[1:]))


@partial(compiled, static_argnames="shape")
def _gathered(chunk: Chunk, shape: tuple[int, int]) -> Float[Array, "B f"]:
    return gathered_gradients(chunk.images, shape)


def gathered_gradients(images: Float[Array, "B n"], shape: tuple[int, int]) -> Float[Array, "B f"]:
    """Gradients of flattened images, inside compiled code."""
    images = images.reshape(-1, *shape)
    tiny = jnp.finfo(images.dtype).tiny
    rows, columns = (jnp.asarray(_places(side), images.dtype) for side in shape)
    down, right = (_slope(images, axis) for axis in (1, 2))
    # No gradient, or one so faint that its square is lost, counts nowhere.
    inverse = 1 / jnp.maximum(down**2 + right**2, tiny)
    gathered = []
    for angle in 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS:
        along = jnp.maximum(float(np.cos(angle)) * right + float(np.sin(angle)) * down, 0)
        # ‖g‖ cos³: the part of the gradient g along the direction, cubed, over ‖g‖².
        strength = along * along * along * inverse
        gathered.append(jnp.einsum("ih,bhw,jw->bij", rows, strength, columns))
    values = jnp.stack(gathered, axis=1).reshape(len(images), -1)
    norms = jnp.sqrt((values**2).sum(axis=1, keepdims=True))
    return jnp.sqrt(values / jnp.where(norms > 0, norms, 1))


def _slope(images: Float[Array, "B h w"], axis: int) -> Float[Array, "B h w"]:
    """Differences along an axis; an image of one row or column has none."""
    if images.shape[axis] == 1:
        return jnp.zeros_like(images)
    slope: Any = jnp.gradient(images, axis=axis)
    return slope


def _places(side: int) -> np.ndarray:
    """Gaussian weights of the pixels of a row for each place, shape (CELLS, side)."""
    pixels = (np.arange(side) + 0.5) / side
    centres = (np.arange(CELLS) + 0.5) / CELLS
    weights = np.exp(-((pixels - centres[:, None]) ** 2) / (2 * max(WIDTH, 0.5 / side) ** 2))
    return weights / weights.sum(axis=1, keepdims=True)
