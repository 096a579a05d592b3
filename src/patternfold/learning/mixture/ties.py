"""What ties parts together: the images that they share, and how near their manifolds are.

Where parts are learned several times, each time from other images, a kind is cut into parts at
other places: a part of another time lies across two of them and ties them by the images that it has
in common with both. Parts of two kinds it ties no more than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.compare import left_out, near_parts, temperature_of
from patternfold.learning.mixture.merge import kept_images, shared_by_others, shared_images
from patternfold.learning.mixture.parts import responsibilities


class Compared(NamedTuple):
    """Pictures of parts learned together, the best few of each image, and its misfits there."""

    pictures: np.ndarray
    nearest: Nearest
    misfit: np.ndarray


class Ties(NamedTuple):
    """The graph of shared images, nearness and kept images as `merge` takes them.

    ``temperature`` is that at which images are shared.
    """

    graph: np.ndarray
    near: np.ndarray
    kept: np.ndarray
    temperature: float


def ties_of(assigner: Assigner, compared: Sequence[Compared], noise: float | None) -> Ties:
    """Tie the parts learned first, with the help of others; no image counts for its own part."""
    weights, first = assigner.observations.weights, compared[0]
    misfits = [left_out(some.misfit, some.nearest.part, weights) for some in compared]
    temperature = temperature_of(misfits[0])
    part, n_parts = first.nearest.part, len(first.pictures)
    share, *others = (responsibilities(misfit, temperature) for misfit in misfits)
    graph = shared_images(part, share, weights, n_parts)
    for other, other_share in zip(compared[1:], others, strict=True):
        theirs, n_others = (other.nearest.part, other_share), len(other.pictures)
        graph = graph + shared_by_others(part, share, *theirs, weights, n_parts, n_others)
    kept = kept_images(part, share, weights, n_parts)
    near = near_parts(assigner, first.pictures, noise, part[:, 0], first.misfit[:, 0])
    return Ties(graph / len(compared), near, kept, temperature)
