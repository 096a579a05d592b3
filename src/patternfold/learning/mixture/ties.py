"""What ties parts together: the images that they share, and how near their manifolds are.

Where parts are learned several times, each time from other images, a kind is cut into parts at
other places, and all these parts are tied by the images they have in common. Between kinds they
have none, wherever the cuts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.compare import left_out, near_parts, temperature_of
from patternfold.learning.mixture.merge import kept_images, shared_images
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
    """Tie all parts, learned so many times; no image counts for its own part."""
    weights = assigner.observations.weights
    sizes = [len(some.pictures) for some in compared]
    *begins, total = (sum(sizes[:k]) for k in range(len(sizes) + 1))
    misfits = [left_out(some.misfit, some.nearest.part, weights) for some in compared]
    temperature = temperature_of(misfits[0])
    shares = [responsibilities(misfit, temperature) for misfit in misfits]
    parts = [some.nearest.part + begin for some, begin in zip(compared, begins, strict=True)]
    part, share = np.concatenate(parts, axis=1), np.concatenate(shares, axis=1)
    # An image is shared once by the parts of one time, and as often as there are times by all.
    graph = shared_images(part, share, weights, total) / len(compared)
    kept = kept_images(part, share, weights, total)
    near = np.zeros_like(graph)
    for some, begin, size in zip(compared, begins, sizes, strict=True):
        own = slice(begin, begin + size)
        first = some.nearest.part[:, 0], some.misfit[:, 0]
        near[own, own] = near_parts(assigner, some.pictures, noise, *first)
    return Ties(graph, near, kept, temperature)
