"""Variants of the images that a classifier on views is fitted to: how many, and which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from patternfold.estimators.images import Pixels, distinct_rows
from patternfold.estimators.options import AUTO, is_auto
from patternfold.learning.amplitude import Amplitude
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


LEAST_LEFT = 0.5
"""Least share of an image's norm that a variant has before it is made as bright: one that left the
window shows nothing, or a sliver."""


def check_variants(n_variants: Any, mirror: Any) -> None:
    """Refuse what is no number of variants, and mirror images without any."""
    number = isinstance(n_variants, (int, np.integer)) and not isinstance(n_variants, bool)
    if not is_auto(n_variants) and not (number and 0 <= n_variants <= MOST_VARIANTS):
        raise ValueError(
            f"n_variants={n_variants!r} must be an integer from 0 to {MOST_VARIANTS}, or {AUTO!r}."
        )
    if not isinstance(mirror, (bool, np.bool_)):
        raise ValueError(f"mirror={mirror!r} must be True or False.")
    if mirror and n_variants == 0:
        raise ValueError(
            "mirror=True has no effect with n_variants=0, as mirror images are variants: leave it "
            "out, or ask for at least one."
        )


def count_of(n_variants: Any, n_images: int, mirror: bool, chosen: bool) -> int:
    """Variants of each image; by choice none where they would not serve, but mirror images."""
    if not is_auto(n_variants):
        return int(n_variants)
    affordable = min(MOST_CHOSEN, ROWS_CHOSEN // n_images - 1) if chosen else 0
    return max(int(mirror), affordable)


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
    What would leave the window stays as it is. What becomes of an image depends on the image as it
    is computed with, not on its unit nor on its place among the others.
    """
    rng, grid = np.random.default_rng(seed), Grid(*shape)
    lowered = pixels.lowered(Amplitude.of_images("X", pixels.rows))
    place = distinct_rows(lowered, np.ones(len(pixels.rows)))[2]
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
        kept = (after >= LEAST_LEFT * norms) & (after > 0)
        share = (norms / np.where(kept, after, 1))[:, None]
        rows = np.where(kept[:, None], share * rows, bare) + level
        if counted is not None and pixels.counted is not None:
            counted = np.where(kept[:, None], counted, pixels.counted)
            rows = np.where(counted, rows, 0)
        yield Pixels(rows.astype(bare.dtype, copy=False), counted)
