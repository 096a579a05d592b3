"""Some images on one device, and what compiled code makes of them as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.lighting import Lighting
from patternfold.numerics.compilation import compiled


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chunk:
    """Some images on one device.

    ``weights`` are those of the images, 0 for rows that only fill up the chunk. ``roots`` are the
    square roots of the pixels' weights, or None where all pixels count alike.
    """

    images: Any  # (B, n); records of compiled code may hold anything that stands for an array
    weights: Any  # (B,)
    roots: Any = None  # (B, n)


def filled(rows: np.ndarray, size: int) -> np.ndarray:
    """Fill up to a number of rows with copies of the last one, which is valid where others are."""
    if len(rows) == size:
        return rows
    filled = np.empty((size, *rows.shape[1:]), rows.dtype)
    filled[: len(rows)] = rows
    filled[len(rows) :] = rows[-1] if len(rows) else 1
    return filled


def as_float(images: Array, dtype: str) -> Array:
    """The images in the dtype that is computed with."""
    return images if images.dtype == dtype else images.astype(dtype)


@compiled
def some_images(chunk: Chunk, index: Array, weights: Array) -> Chunk:
    """Some of the images, with weights of their own."""
    roots = None if chunk.roots is None else chunk.roots[index]
    return Chunk(chunk.images[index], weights, roots)


@compiled
def some_pixels(chunk: Chunk, pixels: Any) -> Chunk:
    """The images at some of their pixels."""
    roots = None if chunk.roots is None else chunk.roots[:, pixels]
    return Chunk(chunk.images[:, pixels], chunk.weights, roots)


@compiled
def image_energies(chunk: Chunk, lighting: Lighting) -> Float[Array, " B"]:
    """‖u_i‖², less what an offset makes up for."""
    return lighting.energies(chunk.images, chunk.roots)


@compiled
def counted_pixels(chunk: Chunk) -> Float[Array, " B"]:
    """`counted`, compiled by itself."""
    return counted(chunk)


def counted(chunk: Chunk) -> Float[Array, " B"]:
    """Number of pixels of each image that count, at least 1: it divides."""
    if chunk.roots is None:
        return jnp.full(len(chunk.images), chunk.images.shape[1], chunk.images.dtype)
    return jnp.maximum((chunk.roots**2).sum(axis=1), 1)


@compiled
def are_finite(chunk: Chunk) -> Array:
    """Whether all pixels are numbers."""
    return jnp.isfinite(chunk.images).all()
