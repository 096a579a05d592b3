"""Variants of the images that a classifier on views is fitted to: how many, and which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from patternfold.estimators.images import Pixels, distinct_rows
from patternfold.estimators.options import AUTO, is_auto
from patternfold.learning.variants import deformations, deformed
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.interrupts import check_interrupts

MOST_CHOSEN = 24
"""Variants of each of few images: with twelve errors are hardly more, with more hardly less."""

ROWS_CHOSEN = 5000
"""Images and variants together, where their number is chosen: a support vector machine takes
seconds to learn from so many."""

MOST_VARIANTS = 1000
"""Most that may be asked for."""


def check_variants(n_variants: Any) -> None:
    """Refuse what is no number of variants."""
    number = isinstance(n_variants, (int, np.integer)) and not isinstance(n_variants, bool)
    if not is_auto(n_variants) and not (number and 0 <= n_variants <= MOST_VARIANTS):
        raise ValueError(
            f"n_variants={n_variants!r} must be an integer from 0 to {MOST_VARIANTS}, or {AUTO!r}."
        )


def count_of(n_variants: Any, n_images: int) -> int:
    """Variants of each image."""
    if not is_auto(n_variants):
        return int(n_variants)
    return min(MOST_CHOSEN, max(0, ROWS_CHOSEN // n_images - 1))


def variants(
    pixels: Pixels,
    shape: tuple[int, int],
    lam: np.ndarray,
    offset: np.ndarray,
    family: AbstractTransformation,
    count: int,
    mirror: bool,
    seed: int,
) -> Iterator[Pixels]:
    """Yield so many variants of all images, in the poses λ (N, d) and light of their own class.

    Every other one is turned over where ``mirror`` says that this makes no difference. Beside the
    offset they have the norm of the image: distances to the patterns stay what they are of images.
    What becomes of an image depends on the image, not on its place among the others.
    """
    rng, grid = np.random.default_rng(seed), Grid(*shape)
    place = distinct_rows(pixels, np.ones(len(pixels.rows)))[2]
    level = offset[:, None].astype(pixels.rows.dtype)
    hidden = None if pixels.counted is None else ~pixels.counted
    bare = pixels.rows - level if hidden is None else np.where(hidden, 0, pixels.rows - level)
    peaks = np.maximum(np.abs(bare).max(axis=1, keepdims=True), np.finfo(bare.dtype).tiny)
    norms = np.linalg.norm(bare / peaks, axis=1)  # squares of very bright pixels have no number
    for k in range(count):
        check_interrupts()
        over = np.full(len(place), mirror and k % 2 == 0)
        how = (grid, lam, family, deformations(int(place.max()) + 1, rng)[place], over)
        rows, counted = deformed(bare, *how), None
        if hidden is not None:
            counted = deformed(hidden.astype(bare.dtype), *how) < 0.5
        after = np.linalg.norm(rows / peaks, axis=1)
        share = (norms / np.where(after > 0, after, 1))[:, None]
        yield Pixels(share * rows + level, counted)
