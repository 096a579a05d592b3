"""Training and test images of several classes: the protocols of the classification experiments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from patternfold.datasets.mnist import load_mnist
from patternfold.datasets.pictures import ink, shrink, unit
from patternfold.datasets.plankton import load_plankton
from patternfold.datasets.synthetic import place_on_canvas, protocol_bounds, transform_images

DIGITS = (2, 3, 5, 8, 9)
SPECIES = 6
CANVAS = (40, 40)


class Split(NamedTuple):
    """Training and test images (N, H, W) of unit norm with their labels.

    ``aligned`` and ``aligned_test`` are the same images before they were transformed, where that
    is known.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    aligned: np.ndarray | None = None
    aligned_test: np.ndarray | None = None


def split_digits(
    rotation: str,
    n_train: int = 200,
    seed: int = 0,
    n_test: int = 200,
    *,
    digits: Sequence[int] = DIGITS,
    canvas: tuple[int, int] = CANVAS,
    data: str | Path | None = None,
) -> Split:
    """Draw digits of every class and transform them at random.

    Parameters
    ----------
    rotation : {"none", "moderate", "full"}
        Protocol of the rotations, as in `protocol_bounds`.
    n_train, n_test : int, default=200
        Images per class.
    seed : int, default=0
        Of the choice and of the transformations.
    digits : sequence of int
        Classes.
    canvas : (H, W)
        Size of the images.
    data : path, optional
        As in `load_mnist`.
    """
    pictures, labels = load_mnist(data)
    rng = np.random.default_rng(seed)
    train, test = choose(labels, digits, n_train, n_test, rng)
    bounds = protocol_bounds(rotation)
    X, _ = transform_images(pictures[train], rng, bounds=bounds, canvas=canvas)
    X_test, _ = transform_images(pictures[test], rng, bounds=bounds, canvas=canvas)
    aligned, aligned_test = (unit(place_on_canvas(pictures[i], canvas)) for i in (train, test))
    return Split(X, labels[train], X_test, labels[test], aligned, aligned_test)


def split_plankton(
    n_train: int = 70,
    seed: int = 0,
    n_test: int = 35,
    *,
    n_species: int = SPECIES,
    factor: int = 2,
    data: str | Path | None = None,
) -> Split:
    """Draw plankton of the first species with enough pictures, bright on black.

    Parameters
    ----------
    n_train, n_test : int, default=70 and 35
        Images per species.
    seed : int, default=0
        Of the choice.
    n_species : int, default=6
        Classes.
    factor : int, default=2
        By how much pictures are made smaller.
    data : path, optional
        As in `load_plankton`.
    """
    pictures, labels, _ = load_plankton(data)
    enough = [int(c) for c in np.unique(labels) if (labels == c).sum() >= n_train + n_test]
    rng = np.random.default_rng(seed)
    train, test = choose(labels, enough[:n_species], n_train, n_test, rng)
    X, X_test = (unit(shrink(ink(pictures[i]), factor)) for i in (train, test))
    return Split(X, labels[train], X_test, labels[test])


def choose(
    labels: np.ndarray,
    classes: Sequence[int],
    n_train: int,
    n_test: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices of training and test images, as many of each class."""
    chosen = []
    for c in classes:
        own = np.flatnonzero(labels == c)
        if len(own) < n_train + n_test:
            raise ValueError(
                f"class {c} has {len(own)} images; {n_train} for training and {n_test} for tests "
                "are asked for. Ask for fewer."
            )
        chosen.append(rng.permutation(own)[: n_train + n_test])
    train, test = [c[:n_train] for c in chosen], [c[n_train:] for c in chosen]
    return np.concatenate(train), np.concatenate(test)


def search_box(rotation: str) -> dict[str, tuple[float, float]]:
    """Λ for transformed digits: what the protocol draws from, and a margin."""
    box = {"tx": (-0.25, 0.25), "ty": (-0.25, 0.25), "sx": (0.7, 1.35), "sy": (0.7, 1.35)}
    largest = protocol_bounds(rotation)["theta"][1]
    return box if largest >= np.pi else box | {"theta": (-1.1 * largest, 1.1 * largest)}
