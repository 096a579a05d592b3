"""Where images belong, in the user's unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternfold.learning.mixture.mixture import Assigned

OUTLIER = -1
"""Label of images that fit no group."""


@dataclass(frozen=True)
class Assignment:
    """Where images belong.

    Attributes
    ----------
    labels : array of shape (N,)
        Group of each image, −1 for those that fit none.
    parts : array of shape (N,)
        The part of that group that fits it best, an index into ``parts_``.
    parameters : array of shape (N, d)
        λ on that part's manifold.
    distances : array of shape (N,)
        ‖u − g·U_λ(p) − b‖ there.
    confidence : array of shape (N,)
        How much of the image belongs to its group, from 1/G to 1.
    runner_up : array of shape (N,)
        The group it belongs to next; its own where there is no other.
    gain, offset : arrays of shape (N,)
        g and b of the image.
    """

    labels: np.ndarray
    parts: np.ndarray
    parameters: np.ndarray
    distances: np.ndarray
    confidence: np.ndarray
    runner_up: np.ndarray
    gain: np.ndarray
    offset: np.ndarray


def assignment_of(
    found: Assigned, squares: np.ndarray, limits: np.ndarray, scale: float, exponent: int
) -> Assignment:
    """What is found of images, of energies ``squares``.

    ``limits`` are the largest shares of their energy that may be left over in each group, ``scale``
    raises distances to the user's unit, and offsets were lowered by 2^exponent.
    """
    left = found.square / np.maximum(squares, np.finfo(np.float64).tiny)
    labels = np.where(left > limits[found.group], OUTLIER, found.group)
    rows = np.arange(len(labels))
    others = found.share.copy()
    others[rows, found.group] = -1
    return Assignment(
        labels,
        found.part,
        found.lam,
        scale * np.sqrt(found.square),
        found.share[rows, found.group],
        others.argmax(axis=1) if others.shape[1] > 1 else found.group,
        found.gain,
        np.ldexp(found.offset, exponent),
    )
