"""Images compared with parts at length: misfits, their scale, and how near parts are to parts.

Misfits are logarithms of the share of an image's energy that a part leaves. Kinds differ in how
much noise there is for their ink, and what tells parts apart is by how much more the other leaves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.flexible import flexible_squares
from patternfold.learning.observations import Observations

N_NEAR = 20
"""Parts of each image that are compared with it at length."""

LEAST_MISFIT = 1e-6
"""Share of an image's energy below which nothing is told: rounding of float32."""

AMBIGUOUS, USUAL = 3, 0.25
"""The temperature is the step from an image's best part to its third, at this quantile over all
images: noise, common to all parts, leaves it as it is."""

HOTTEST = 0.12
"""Greatest temperature: where a part leaves so much more than the best, it is e times less likely,
however few parts there are to tell."""

COOLEST = 0.08
"""Least temperature, as a share of what parts explain: of many clear images each part of a kind may
well leave other traces, and steps between parts that are smaller tell no kinds. Where noise is most
of an image, parts explain little, and little is what kinds differ by."""

FARTHER = 0.15
"""What images of a part would lie farther from another, as a share of what is usual, if the two
manifolds are near to 1/e."""


def compare(
    assigner: Assigner, pictures: np.ndarray, noise: float | None
) -> tuple[Nearest, np.ndarray]:
    """The best few parts of each image, and what small changes of shape leave, as logarithms."""
    images = assigner.observations
    nearest = assigner.nearest(pictures, N_NEAR, all_pixels=True)
    square = nearest.square.astype(np.float64)
    if noise is not None:
        square = flexible_squares(
            images, assigner.transformation, pictures, nearest.part, nearest.lam, noise
        )
    energy = np.maximum(images.squares, np.finfo(np.float64).tiny)[:, None]
    misfit = np.log(np.maximum(square / energy, LEAST_MISFIT))
    order = np.argsort(misfit, axis=1, kind="stable")
    columns = (
        np.take_along_axis(v, order if v.ndim == 2 else order[:, :, None], 1) for v in nearest
    )
    return Nearest(*columns), np.take_along_axis(misfit, order, axis=1)


def left_out(misfit: np.ndarray, part: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Misfits (N, r) if no image had a share in its own part, the first of each row.

    A mean of n images is nearer to each of them by as much as that image draws it along: without
    the image the difference is n/(n − 1) times as great. Where parts have few images, they would
    seem to lie farther apart than they do.
    """
    own = part[:, 0]
    others = np.bincount(own, weights)[own] - weights
    several = others > 0
    if not several.any():
        return misfit
    growth = np.log1p(weights[several] / others[several])
    misfit = misfit.copy()
    # A new image lies from a part of one image by twice the noise, and noise is as usual.
    misfit[~several, 0] = np.log(2) + np.median(misfit[several, 0] + growth)
    misfit[several, 0] += 2 * growth
    return misfit


def temperature_of(misfit: np.ndarray) -> float:
    """The usual step from an image's best part to the one that it hardly belongs to, in bounds."""
    misfit = np.sort(misfit, axis=1)
    last = min(AMBIGUOUS, misfit.shape[1]) - 1
    step = float(np.quantile(misfit[:, last] - misfit[:, 0], USUAL))
    explained = 1 - float(np.exp(np.median(misfit[:, 0])))
    return min(max(step, COOLEST * explained), HOTTEST)


def near_parts(
    assigner: Assigner,
    pictures: np.ndarray,
    noise: float | None,
    part: np.ndarray,
    misfit: np.ndarray,
) -> np.ndarray:
    """How near (P, P) each part's own picture is to the other parts: 1 if noise tells all of it.

    ``part`` and ``misfit`` are those of the images, each with its best part.
    """
    n_parts, images = len(pictures), assigner.observations
    near = np.zeros((n_parts, n_parts))
    if n_parts == 1:
        return near
    own = Observations.put(pictures.astype(images.dtype), images.grid, lighting=images.lighting)
    found, apart = compare(replace(assigner, observations=own), pictures, noise)
    farther = farther_apart(np.exp(apart), found.part, np.exp(misfit), part)
    near[np.arange(n_parts)[:, None], found.part] = np.exp(-farther / FARTHER)
    np.fill_diagonal(near, 0)
    return near


def farther_apart(
    apart: np.ndarray, other: np.ndarray, misfit: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """How much farther images of a part would be from some others, as a share of what is usual.

    ``apart`` (P, r) is what the ``other`` parts leave of its picture. Mean pictures of n images
    carry 1/n of an image's noise, which tells nothing.
    """
    n_parts = len(apart)
    count = np.maximum(np.bincount(part, minlength=n_parts), 1)
    usual = np.full(n_parts, np.nan)
    for k in np.flatnonzero(count > 1):  # a mean of n images leaves (n − 1)/n of their noise
        usual[k] = np.median(misfit[part == k]) * count[k] / (count[k] - 1)
    whole = float(np.median(misfit)) if np.isnan(usual).all() else float(np.nanmedian(usual))
    # What is usual in a part of one image is not known: that of the other part stands for it.
    of_other = np.where(np.isnan(usual), whole, usual)[other]
    scale = np.where(np.isnan(usual)[:, None], of_other, usual[:, None])
    noise = 1 / count[:, None] + 1 / count[other]
    return np.maximum(apart / np.maximum(scale, LEAST_MISFIT) - noise, 0)
