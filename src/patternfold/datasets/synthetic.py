"""Randomly transformed images: the protocols that experiments and benchmarks share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from patternfold._validation import as_images, lookup
from patternfold.datasets.pictures import unit
from patternfold.learning.project import warp
from patternfold.model.manifold import render
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation

ROTATIONS = {"none": 0.0, "moderate": np.pi / 4, "full": np.pi}
"""Largest rotation of each protocol."""


def protocol_bounds(rotation: str | float = "full") -> dict[str, tuple[float, float]]:
    """Ranges of the transformed-digits protocol: scale 0.75 to 1.25, shift ±4 of 40 pixels."""
    largest = lookup("rotation", rotation, ROTATIONS) if isinstance(rotation, str) else rotation
    scales = {name: (0.75, 1.25) for name in ("s", "sx", "sy")}
    shifts = {name: (-0.2, 0.2) for name in ("tx", "ty")}
    return {"theta": (-largest, largest), "shear": (-0.2, 0.2), **shifts, **scales}


def random_parameters(
    transformation: str | AbstractTransformation,
    n: int,
    rng: np.random.Generator,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> np.ndarray:
    """Draw λ uniformly from ``bounds``, shape (N, d).

    By default they are the protocol's, full circle; the family's own for parameters that it does
    not know.
    """
    box = as_transformation(transformation).parameters
    own = zip(box.names, zip(box.lower, box.upper, strict=True), strict=True)
    ranges = dict(own) | protocol_bounds() | dict(bounds or {})
    low, high = np.array([ranges[name] for name in box.names]).T
    return rng.uniform(low, high, size=(n, box.dim))


def transform_images(
    images: Any,
    rng: np.random.Generator,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    canvas: tuple[int, int] | None = (40, 40),
) -> tuple[np.ndarray, np.ndarray]:
    """Put images in the middle of a canvas, transform them at random, scale to unit norm.

    Returns
    -------
    images : array of shape (N, H, W), float32
    lam : array of shape (N, d)
        The true parameters.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bars = np.zeros((3, 16, 16))
    >>> bars[:, 7:9, 3:13] = 1
    >>> images, lam = transform_images(bars, rng, "rotation-translation", canvas=(24, 24))
    >>> images.shape, lam.shape
    ((3, 24, 24), (3, 3))
    """
    rows, shape = as_images(images)
    padded = place_on_canvas(rows.reshape(-1, *shape), canvas or shape)
    lam = random_parameters(transformation, len(rows), rng, bounds)
    warped = warp(padded.astype(np.float32), lam, transformation)
    return unit(warped), lam


def place_on_canvas(images: np.ndarray, canvas: tuple[int, int]) -> np.ndarray:
    """Surround images with zeros, centred, up to the size of the canvas."""
    missing = [c - s for c, s in zip(canvas, images.shape[1:], strict=True)]
    if min(missing) < 0:
        raise ValueError(f"canvas={canvas} is smaller than the images, {images.shape[1:]}.")
    return np.pad(images, [(0, 0), *((m // 2, m - m // 2) for m in missing)])


def random_pattern(
    n_atoms: int, rng: np.random.Generator, mother: Any = "gaussian", spread: float = 0.4
) -> Pattern:
    """Draw a pattern of random atoms with centres within ``spread`` of the origin.

    Examples
    --------
    >>> pattern = random_pattern(3, np.random.default_rng(0))
    >>> pattern.n_atoms, pattern.render((20, 20)).shape
    (3, (20, 20))
    """
    gamma = np.column_stack(
        [
            rng.uniform(-np.pi, np.pi, n_atoms),
            rng.uniform(-spread, spread, (n_atoms, 2)),
            rng.uniform(0.08, 0.3, (n_atoms, 2)),
        ]
    )
    return Pattern(rng.normal(size=n_atoms), gamma, mother)


def random_images(
    pattern: Pattern,
    n: int,
    rng: np.random.Generator,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    shape: tuple[int, int] = (40, 40),
    noise: float = 0.0,
    dtype: Any = np.float32,
) -> tuple[np.ndarray, np.ndarray]:
    """Render random transformations of a pattern, with Gaussian noise of variance ``noise``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pattern = random_pattern(3, rng)
    >>> images, lam = random_images(pattern, 5, rng, "similarity", shape=(20, 20), noise=1e-3)
    >>> images.shape, lam.shape
    ((5, 20, 20), (5, 4))
    """
    lam = random_parameters(transformation, n, rng, bounds)
    images = render(pattern, lam.astype(dtype), transformation, shape).reshape(n, *shape)
    noisy = images + np.sqrt(noise) * rng.normal(size=images.shape)
    return noisy.astype(dtype), lam
