"""What the checks look at: a fitted model, images, their poses, and the images aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from patternfold.estimators.images import Pixels
from patternfold.estimators.unaligned import mean_error, spread, standardised
from patternfold.learning.project import Projection, align

MOST_LOOKED_AT = 400
"""Images whose pixels are compared with one another; of more, so many evenly chosen ones."""

MOST_NAMED = 5


@dataclass(frozen=True)
class Evidence:
    """A fitted model with images and their projections.

    Attributes
    ----------
    model : PATS
        The fitted model.
    rows : array of shape (N, n)
        Images.
    found : Projection
        Where they lie on the manifold.
    mask : bool array of shape (N, n), optional
        True where a pixel counts.
    names : sequence of str, optional
        Of the images; by default their numbers.
    """

    model: Any
    rows: np.ndarray
    found: Projection
    mask: np.ndarray | None = None
    names: Sequence[str] | None = None

    @property
    def gain(self) -> bool:
        """Whether each image has a gain of its own."""
        return bool(getattr(self.model, "gain", False))

    @property
    def offset(self) -> bool:
        """Whether each image has an offset of its own."""
        return bool(getattr(self.model, "offset", False))

    @cached_property
    def norms(self) -> np.ndarray:
        """Norm of each image, without its mean where that is free."""
        values = standardised(self.rows, self.mask, False, self.offset)
        return np.linalg.norm(values, axis=1)

    @cached_property
    def blank(self) -> np.ndarray:
        """Which images show nothing: no contrast, compared with the others."""
        return self.norms <= 1e-4 * np.median(self.norms)

    @cached_property
    def misfit(self) -> np.ndarray:
        """Distance over norm of each image: 0 is a perfect fit, 1 none at all; 0 for blank ones."""
        distances = np.asarray(self.found.distances, np.float64)
        return np.where(self.blank, 0, distances / np.where(self.blank, 1, self.norms))

    @cached_property
    def error(self) -> float:
        """Normalised error of the images."""
        squares = np.asarray(self.found.distances, np.float64) ** 2
        return float(squares.sum() / max((self.norms**2).sum(), 1e-300))

    @cached_property
    def baseline(self) -> float:
        """Normalised error of their mean, unaligned."""
        return mean_error(self.rows, self.mask, self.gain, self.offset)

    @cached_property
    def some(self) -> np.ndarray:
        """The images, but for blank ones, that are compared with one another."""
        seen = np.flatnonzero(~self.blank)
        if len(seen) <= MOST_LOOKED_AT:
            return seen
        return seen[np.linspace(0, len(seen) - 1, MOST_LOOKED_AT).round().astype(int)]

    @cached_property
    def aligned(self) -> tuple[np.ndarray, np.ndarray]:
        """Some images, standardised, in the pattern's frame, and where they say something."""
        rows, counts = self._unaligned
        family, shape = self.model.transformation_, self.model.image_shape_
        lam = self.found.parameters[self.some].astype(np.float32)
        told, values = (
            align(part.astype(np.float32), lam, family, image_shape=shape).reshape(len(rows), -1)
            for part in (counts, rows)
        )
        return values / np.maximum(told, 0.5), (told > 0.5).astype(np.float64)

    @property
    def images(self) -> np.ndarray:
        """The images, (N, H, W), with their own offset where pixels do not count."""
        flat = self.found.offset[:, None].astype(self.rows.dtype)
        rows = self.rows if self.mask is None else np.where(self.mask, self.rows, flat)
        return rows.reshape(-1, *self.model.image_shape_)

    @cached_property
    def aligned_images(self) -> np.ndarray:
        """The images in the pattern's frame, (N, H, W)."""
        return self.model._align(Pixels(self.rows, self.mask), self.found)

    @cached_property
    def spread_ratio(self) -> float | None:
        """Spread of the images after alignment over that before; None if it can't be told."""
        if len(self.some) < 2 or not self.model.transformation_.has_inverse:
            return None
        before = spread(*self._unaligned)
        return spread(*self.aligned) / before if before > 0 else None

    @cached_property
    def angles(self) -> np.ndarray | None:
        """Angle by which each image is turned against the pattern; None if none can be told."""
        family = self.model.transformation_
        return angles_of(family, self.found.parameters)

    def worst(self, most: int) -> list[int]:
        """Return the images that fit worst, worst first; blank ones do not count."""
        return self.by_misfit(~self.blank)[:most].tolist()

    def by_misfit(self, which: np.ndarray) -> np.ndarray:
        """Return the indices of some images, worst first."""
        some = np.flatnonzero(which)
        return some[np.argsort(-self.misfit[some], kind="stable")]

    def named(self, which: np.ndarray) -> str:
        """Name some images, the first of many."""
        which = np.flatnonzero(which) if which.dtype == bool else which
        first = [self.name(int(i)) for i in which[:MOST_NAMED]]
        return ", ".join(first) + (", ..." if len(which) > MOST_NAMED else "")

    def name(self, i: int) -> str:
        """Name an image."""
        return f"image {i}" if self.names is None else self.names[i]

    @cached_property
    def _unaligned(self) -> tuple[np.ndarray, np.ndarray]:
        rows = self.rows[self.some]
        mask = None if self.mask is None else self.mask[self.some]
        counts = np.isfinite(rows) if mask is None else np.isfinite(rows) & mask
        return standardised(rows, mask, self.gain, self.offset), counts.astype(np.float64)


def angles_of(family: Any, parameters: np.ndarray) -> np.ndarray | None:
    """Return the angle of each λ: that of the rotation next to its linear map."""
    if not getattr(family, "is_affine", False):
        return None
    linear = np.asarray(jax.vmap(family.linear)(np.asarray(parameters, np.float32)))
    return np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])
