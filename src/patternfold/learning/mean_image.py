"""The mean of images in the same light, and their distances to it."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.lighting import Lighting
from patternfold.learning.observations import Observations
from patternfold.numerics.compilation import compiled


@compiled
def _pixel_sums(chunk: Chunk, real: Array, lighting: Lighting) -> Float[Array, " n"]:
    return real @ lighting.evened(chunk.images, chunk.roots)


@compiled
def _distances(chunk: Chunk, mean: Float[Array, " n"], lighting: Lighting) -> Float[Array, " B"]:
    images = lighting.evened(chunk.images, chunk.roots)
    return jnp.sqrt(((images - mean[None]) ** 2).sum(axis=1))


def pixel_sums(observations: Observations, counting: np.ndarray | None = None) -> np.ndarray:
    """Sum of the images, or of those that count, in the same light."""
    counting = np.ones(len(observations), bool) if counting is None else counting
    total = np.zeros(observations.chunks[0].images.shape[1])
    parts = []
    for chunk, begin, count in zip(
        observations.chunks, observations.starts, observations.counts, strict=True
    ):
        rows = np.zeros(len(chunk.images), observations.dtype)
        rows[:count] = counting[begin : begin + count]
        parts.append(_pixel_sums(chunk, rows, observations.lighting))
    return sum((np.asarray(part, np.float64) for part in parts), total)


def distances_to(observations: Observations, mean: np.ndarray) -> np.ndarray:
    """Distance of each image to a given one, in the same light."""
    mean = np.asarray(mean, observations.dtype)
    stage = partial(_distances, mean=mean, lighting=observations.lighting)
    return observations.map(stage).astype(np.float64)


def distances_to_mean(observations: Observations) -> np.ndarray:
    """Distance of each image to the mean image, in the same light."""
    mean = pixel_sums(observations) / max(1, len(observations))
    return distances_to(observations, mean)
