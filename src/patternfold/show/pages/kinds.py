"""Images of a mixture for pages: galleries of each group by fit, and images between two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold._validation import as_images

MOST_IN_GALLERY = 12
"""Images of a group that are shown, from the one that fits best to the one that fits worst."""

MOST_BETWEEN = 12
"""Images that are shown as lying between two groups."""

BETWEEN = 0.8
"""Confidence below which an image lies between two groups: a fifth of it belongs elsewhere."""


def group_name(label: int | np.integer) -> str:
    """What a group is called on pages: group 1 is the largest."""
    return "no group" if label < 0 else f"group {label + 1}"


def is_mixture(model: Any) -> bool:
    """Tell models of several patterns found without labels from others."""
    return hasattr(model, "part_labels_")


@dataclass(frozen=True)
class Kinds:
    """Images that a mixture has assigned.

    ``found`` is their `Assignment`, ``left`` (N,) the share of each one's energy that its part
    leaves.
    """

    images: np.ndarray
    names: Sequence[str]
    found: Any
    left: np.ndarray

    def gallery(self, label: int, most: int = MOST_IN_GALLERY) -> np.ndarray:
        """Return images of a group from best to worst fit, evenly chosen."""
        return gallery(self.found.labels, self.left, label, most)

    def between(self, most: int = MOST_BETWEEN) -> np.ndarray:
        """Return images that belong to two groups, the least certain first."""
        return between(self.found, most)

    def some(self) -> Kinds:
        """Keep those that galleries show, and those between groups."""
        groups = np.unique(self.found.labels)
        shown = np.concatenate([*(self.gallery(int(g)) for g in groups), self.between()])
        index = np.unique(shown)
        found = type(self.found)(**{k: v[index] for k, v in vars(self.found).items()})
        names = [self.names[int(i)] for i in index]
        return Kinds(self.images[index], names, found, self.left[index])


def gallery(labels: np.ndarray, left: np.ndarray, label: int, most: int) -> np.ndarray:
    """Return the index of images of a group from best to worst fit, evenly chosen."""
    own = np.flatnonzero(labels == label)
    own = own[np.argsort(left[own], kind="stable")]
    return own[np.unique(np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(int))]


def between(found: Any, most: int) -> np.ndarray:
    """Return the index of images that belong to two groups, the least certain first."""
    unsure = (found.confidence < BETWEEN) & (found.labels >= 0)
    index = np.flatnonzero(unsure)
    return index[np.argsort(found.confidence[index], kind="stable")][:most]


def assigned_images(
    model: Any, X: Any, names: Sequence[str] | None = None, mask: Any = None
) -> Kinds:
    """Assign images to the groups of a mixture."""
    rows, shape = as_images(X, model.image_shape_, "X")
    if names is not None and len(names) != len(rows):
        raise ValueError(f"names has {len(names)} entries but there are {len(rows)} images.")
    images = rows.reshape(-1, *shape)
    called = [f"image {i}" for i in range(len(rows))] if names is None else list(map(str, names))
    found = model.assign(images, mask)
    return Kinds(images, called, found, left_over(found.distances, rows, found.offset))


def left_over(distances: np.ndarray, rows: np.ndarray, offset: Any) -> np.ndarray:
    """Share of each image's energy, less its offset, that its part leaves."""
    known = np.nan_to_num(rows - np.asarray(offset)[:, None])
    energy = (known.astype(np.float64) ** 2).sum(axis=1)
    return distances**2 / np.maximum(energy, np.finfo(np.float64).tiny)


def shown_images(model: Any, rows: np.ndarray, most: int) -> np.ndarray:
    """Choose about so many training images to keep for pages: galleries, and those between."""
    found = model.assignment_
    left = left_over(found.distances, rows, found.offset)
    groups = range(-1 if (found.labels < 0).any() else 0, len(model.patterns_))
    each = max(1, most * 3 // 4 // len(groups))
    chosen = [gallery(found.labels, left, g, each) for g in groups]
    return np.unique(np.concatenate([*chosen, between(found, max(1, most // 4))]))
