"""Image sets of the experiments, or generated images where a set is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from patternfold import Pattern, datasets
from patternfold.datasets import MissingData, Split

FEATURES = (
    (1.0, (0.0, 0.0, 0.0, 0.5, 0.8)),  # head
    (-0.6, (0.0, -0.22, -0.25, 0.12, 0.07)),  # eyes
    (-0.6, (0.0, 0.22, -0.25, 0.12, 0.07)),
    (-0.2, (0.0, 0.0, 0.05, 0.06, 0.2)),  # nose
    (-0.5, (0.0, 0.0, 0.4, 0.25, 0.06)),  # mouth
)
"""Coefficients and atoms of a face."""

EXPRESSIONS = "generated faces, whose features vary, in place of the Frey faces"
LIGHTS = "a generated face under 64 lights in place of the Extended Yale Face Database B"
SPECIES = "generated shapes, each image with its own deviations, in place of plankton"


def load_expressions(data: Path | None) -> tuple[np.ndarray, str]:
    """Return the Frey faces, or a stand-in and what it is."""
    try:
        return datasets.load_frey_faces(data), ""
    except MissingData:
        return faces(200, (28, 20), 0.3), EXPRESSIONS


def load_lights(data: Path | None, subject: int) -> tuple[np.ndarray, str]:
    """Return a subject of the Yale faces, by its place in the set, or a stand-in and what it is."""
    try:
        pictures, subjects, _ = datasets.load_yale_faces(data)
    except MissingData:
        return lit_faces(), LIGHTS
    return pictures[subjects == np.unique(subjects)[subject]], ""


def split_organisms(
    n_train: int, seed: int, n_test: int, n_species: int, side: int, data: Path | None
) -> tuple[Split, str]:
    """Draw plankton, or a stand-in, and say what it is."""
    try:
        split = datasets.split_plankton(
            n_train, seed, n_test, n_species=n_species, factor=64 // side, data=data
        )
    except MissingData:
        return split_shapes(n_train, seed, n_test, n_species, side), SPECIES
    return split, ""


def faces(n: int, shape: tuple[int, int], spread: float) -> np.ndarray:
    """Faces whose features are stronger or weaker by up to ``spread``, from 0 to 255."""
    rng = np.random.default_rng(0)
    coef, gamma = (np.array(part) for part in zip(*FEATURES, strict=True))
    drawn = coef * rng.uniform(1 - spread, 1 + spread, (n, len(coef)))
    pictures = np.array([Pattern(c, gamma).render(shape) for c in drawn])
    return np.clip(200 * pictures / pictures.max(), 0, 255).astype(np.uint8)


def lit_faces() -> np.ndarray:
    """One face, lit from 8 sides and 8 heights, shape (64, 48, 42)."""
    across, down = np.meshgrid(np.linspace(-1, 1, 42), np.linspace(-1, 1, 48))
    angles = np.sin(np.deg2rad(np.linspace(-70, 70, 8)))
    shades = [0.5 + 0.5 * a * across + 0.3 * h * down for a in angles for h in angles]
    return (faces(1, (48, 42), 0.0) * np.clip(shades, 0.05, 1)).astype(np.uint8)


def split_shapes(n_train: int, seed: int, n_test: int, n_species: int, side: int) -> Split:
    """Draw images of random shapes, one for each class, in any rotation, no two quite alike."""
    rng = np.random.default_rng(seed)
    parts = [_specimens(species, n_train + n_test, side, rng) for species in range(n_species)]
    X, X_test = (
        datasets.unit(np.concatenate([part[chosen] for part in parts]))
        for chosen in (slice(n_train), slice(n_train, None))
    )
    labels = np.arange(n_species)
    return Split(X, labels.repeat(n_train), X_test, labels.repeat(n_test))


def _specimens(species: int, n: int, side: int, rng: np.random.Generator) -> np.ndarray:
    typical = datasets.random_pattern(5, np.random.default_rng([7, species]))
    bounds = {"tx": (-0.1, 0.1), "ty": (-0.1, 0.1), "s": (0.8, 1.2)}
    images = []
    for _ in range(n):
        coef = np.abs(typical.coef) * rng.uniform(0.6, 1.4, typical.n_atoms)
        own = Pattern(coef, typical.gamma + rng.normal(0, 0.03, typical.gamma.shape))
        images.append(datasets.random_images(own, 1, rng, "similarity", bounds, (side, side))[0][0])
    return np.array(images)
