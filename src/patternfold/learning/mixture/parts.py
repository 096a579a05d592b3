"""Many parts of a set of images: assignment and averages in turn, from a spread of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from patternfold.learning.lighting import Lighting
from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.update import average, centred, normalised
from patternfold.learning.observations import Observations
from patternfold.learning.state import ASKED_TO_STOP

Report = Callable[[str, float], bool] | None
"""Told the stage and the mean misfit; returns True to end the passes."""

SEED_ROUNDS = 10
"""Rounds in which the first parts are drawn: within one, images do not know of one another."""

STARVED = 0.2
"""A part with less than this share of the mean weight is given up for another image."""

MORE_PASSES = 6
"""Further passes, as long as some part has no image."""

WORST = 0.9
"""Which of a crowded part's images takes the place of a starved part, by what is left of it: the
very worst may belong to nothing."""


@dataclass(frozen=True)
class PartSettings:
    """How parts are learned: at ``warmth`` times the mean misfit at first, hard in the end."""

    n_parts: int = 40
    n_iter: int = 12
    n_hard: int = 4
    n_near: int = 3
    warmth: float = 0.1
    seed: int = 0


class Parts(NamedTuple):
    """Pictures of the parts, each image's best few, and the mean misfit after each pass."""

    pictures: np.ndarray
    nearest: Nearest
    path: list[float]
    reason: str


def learned_parts(
    assigner: Assigner,
    settings: PartSettings,
    n_init: int = 1,
    report: Report = None,
) -> list[Parts]:
    """Learn parts so many times; those that leave least of the images come first.

    What was broken off counts only where there is nothing else.
    """
    learned: list[Parts] = []
    reason = ""
    for k in range(n_init):
        tell = report if n_init == 1 else _numbered(report, f"{k + 1} of {n_init}")
        parts = learn_parts(assigner, replace(settings, seed=settings.seed + k), tell)
        reason = parts.reason
        if reason == ASKED_TO_STOP and learned:
            break
        learned.append(parts)
        if reason == ASKED_TO_STOP:
            break
    learned.sort(key=lambda parts: parts.path[-1])
    return [learned[0]._replace(reason=reason), *learned[1:]]


def _numbered(report: Report, times: str) -> Report:
    """Let the report say which time this is."""
    return report and (lambda stage, misfit: report(f"{stage} ({times})", misfit))


def learn_parts(
    assigner: Assigner,
    settings: PartSettings,
    report: Report = None,
) -> Parts:
    """Learn pictures of parts: k-means under transformations, with annealed responsibilities."""
    images, rng = assigner.observations, np.random.default_rng(settings.seed)
    n_parts = min(settings.n_parts, int((images.weights > 0).sum()))
    pictures = spread_images(assigner, n_parts, rng)
    path: list[float] = []
    n_soft = settings.n_iter - settings.n_hard
    asked, nearest = False, assigner.nearest(pictures, settings.n_near)
    for k in range(settings.n_iter + MORE_PASSES):
        misfit = relative(images, nearest.square)
        path.append(float(np.average(misfit[:, 0], weights=images.weights)))
        weight = np.bincount(nearest.part[:, 0], images.weights, n_parts)
        asked = report is not None and report(f"parts, pass {k + 1}", path[-1])
        if asked or (k + 1 >= settings.n_iter and weight.all()):
            break
        warmth = settings.warmth * max(0.0, 1 - k / max(1, n_soft))
        share = responsibilities(misfit, warmth * path[-1])
        # In the end only parts without images are given up: others are small kinds, maybe.
        least = STARVED * weight.mean() if k < n_soft else 0.0
        pictures = _renewed(assigner, nearest, share, misfit[:, 0], weight <= least)
        nearest = assigner.nearest(pictures, settings.n_near)
    kept = np.flatnonzero(np.bincount(nearest.part[:, 0], images.weights, n_parts) > 0)
    if len(kept) < n_parts:
        pictures = pictures[kept]
        nearest = assigner.nearest(pictures, settings.n_near)
    return Parts(pictures, nearest, path, ASKED_TO_STOP if asked else "the passes were made")


def without_loners(assigner: Assigner, parts: Parts) -> Parts:
    """Parts less those of a single image, which may be an image that belongs to nothing."""
    count = np.bincount(parts.nearest.part[:, 0], minlength=len(parts.pictures))
    if not (count > 1).any():
        return parts
    pictures = parts.pictures[count > 1]
    nearest = assigner.nearest(pictures, parts.nearest.part.shape[1])
    return parts._replace(pictures=pictures, nearest=nearest)


def _renewed(
    assigner: Assigner,
    nearest: Nearest,
    share: np.ndarray,
    misfit: np.ndarray,
    starved: np.ndarray,
) -> np.ndarray:
    """Averages of the images of each part; starved parts become images of crowded ones."""
    images, n_parts = assigner.observations, len(starved)
    lam = centred(assigner.transformation, nearest, images.weights, n_parts)
    nearest = nearest._replace(lam=lam)
    pictures = average(images, assigner.transformation, nearest, share, n_parts)
    parts = np.flatnonzero(starved)
    chosen = crowded_images(nearest.part[:, 0], misfit, images.weights, len(parts), n_parts)
    for part, i in zip(parts, chosen, strict=False):
        pictures[part] = picture_of(images, i)
    return pictures


def crowded_images(
    part: np.ndarray, misfit: np.ndarray, weights: np.ndarray, count: int, n_parts: int
) -> list[int]:
    """Images that parts of their own would help most: badly fitted ones of crowded parts."""
    left = np.bincount(part, weights * misfit, n_parts)
    order = np.argsort(-left, kind="stable")
    chosen = []
    for m in order[:count]:
        own = np.flatnonzero((part == m) & (weights > 0))
        if len(own) < 2 or left[m] <= 0:
            continue
        ranked = own[np.argsort(misfit[own], kind="stable")]
        chosen.append(int(ranked[int(WORST * (len(ranked) - 1))]))
    return chosen


def spread_images(assigner: Assigner, n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Images to begin with, drawn by what the ones before leave of them, whatever their pose."""
    images = assigner.observations
    weights = images.weights * (images.squares > 0)
    if not weights.any():
        weights = images.weights
    chosen = [int(rng.choice(len(images), p=weights / weights.sum()))]
    left = np.full(len(images), np.inf)
    per_round = -(-n_parts // SEED_ROUNDS)
    new = list(chosen)
    while True:
        pictures = np.stack([picture_of(images, i) for i in new])
        square = assigner.score(pictures, 1).square.min(axis=1)
        left = np.minimum(left, relative(images, square))
        if len(chosen) >= n_parts:
            break
        chance = weights * np.maximum(left, 0)
        chance[chosen] = 0
        count = min(per_round, n_parts - len(chosen))
        if (chance > 0).sum() < count:  # the others are copies
            chance = chance + 1e-12 * weights.max() * ~np.isin(np.arange(len(images)), chosen)
        new = rng.choice(len(images), count, replace=False, p=chance / chance.sum()).tolist()
        chosen += new
    return np.stack([picture_of(images, i) for i in chosen])


def picture_of(images: Observations, i: int) -> np.ndarray:
    """An image as a part of its own."""
    return normalised(images.image(i)[None].astype(np.float64), images.lighting)[0]


def relative(images: Observations, square: np.ndarray) -> np.ndarray:
    """Squares as shares of the image's energy where images have gains of their own."""
    lighting: Lighting = images.lighting
    if not lighting.gain:
        return square.astype(np.float64)
    energy = np.maximum(images.squares, np.finfo(np.float64).tiny)
    return square / (energy if square.ndim == 1 else energy[:, None])


def responsibilities(misfit: np.ndarray, temperature: float) -> np.ndarray:
    """Share (N, r) of each image that belongs to its best parts; hard at temperature 0."""
    if temperature <= 0:
        share = np.zeros_like(misfit)
        share[:, 0] = 1
        return share
    weight = np.exp(-(misfit - misfit.min(axis=1, keepdims=True)) / temperature)
    return weight / weight.sum(axis=1, keepdims=True)
