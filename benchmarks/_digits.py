"""Transformed digits for the benchmarks, drawn without JAX; curves, where there are none."""

from __future__ import annotations

from functools import cache

import numpy as np

from patternfold import datasets

CLASSES = (2, 3, 5, 8, 9)
SIDE, CANVAS = 28, 40


@cache
def pictures(per_class: int = 500) -> tuple[dict[int, np.ndarray], str]:
    """Pictures of 28×28 by class, and where they come from."""
    try:
        images, labels = datasets.load_mnist()
    except ImportError:
        rng = np.random.default_rng(7)
        return {c: curves(per_class, rng) for c in CLASSES}, "generated curves, no digits found"
    return {c: images[labels == c] for c in CLASSES}, "MNIST digits"


def curves(n: int, rng: np.random.Generator) -> np.ndarray:
    """Pictures of one curve, its points a little elsewhere in each."""
    points = rng.uniform(-0.65, 0.65, (6, 2)) + 0.07 * rng.standard_normal((n, 6, 2))
    for _ in range(4):  # corner cutting: a smooth curve
        a, b = points[:, :-1], points[:, 1:]
        points = np.stack([0.75 * a + 0.25 * b, 0.25 * a + 0.75 * b], 2).reshape(n, -1, 2)
    axis = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    x, y = np.exp(-(((points[..., None] - axis) / 0.1) ** 2)).transpose(2, 0, 1, 3)
    ink = [(v[:, :, None] * u[:, None]).max(axis=0) for u, v in zip(x, y, strict=True)]
    return (255 * np.stack(ink)).astype(np.uint8)


def transformed(
    chosen: np.ndarray, rng: np.random.Generator, rotation: str = "full"
) -> tuple[np.ndarray, np.ndarray]:
    """Images 40×40 of unit norm, float32, and λ: the protocol of `datasets.transform_images`."""
    bounds = datasets.protocol_bounds(rotation)
    family = "rotation-translation-scaling"
    lam = datasets.random_parameters(family, len(chosen), rng, bounds)
    images = np.empty((len(chosen), CANVAS, CANVAS), np.float32)
    for first in range(0, len(chosen), 2000):
        part = slice(first, first + 2000)
        images[part] = _warp(chosen[part], lam[part].astype(np.float32))
    return images, lam


def draw(label: int, n: int, seed: int, rotation: str = "full") -> np.ndarray:
    """``n`` transformed images of a class; pictures come again once all have been used."""
    rng = np.random.default_rng(seed)
    own = pictures()[0][label]
    order = np.concatenate([rng.permutation(len(own)) for _ in range(-(-n // len(own)))])
    return transformed(own[order[:n]], rng, rotation)[0]


def draw_classes(
    n_train: int, n_test: int, rotation: str = "moderate", seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y and X_test, y_test of all classes, from different pictures; ``n`` of each class."""
    rng = np.random.default_rng(seed)
    train, test = [], []
    for c in CLASSES:
        own = pictures()[0][c]
        own = own[rng.permutation(len(own))]
        train.append(own[:n_train])
        rest = own[n_train:]
        test.append(rest[np.arange(n_test) % len(rest)])
    y, y_test = np.repeat(CLASSES, n_train), np.repeat(CLASSES, n_test)
    X, _ = transformed(np.concatenate(train), rng, rotation)
    return X, y, transformed(np.concatenate(test), rng, rotation)[0], y_test


def _warp(chosen: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Bilinear samples of the pictures, which lie in the middle of a black canvas."""
    theta, tx, ty, sx, sy = lam.T[:, :, None]
    axis = ((np.arange(CANVAS) + 0.5) / CANVAS * 2 - 1).astype(np.float32)
    y, x = (v.ravel() for v in np.meshgrid(axis, axis, indexing="ij"))
    dx, dy, c, s = x - tx, y - ty, np.cos(theta), np.sin(theta)
    margin = 0.5 + (CANVAS - SIDE) / 2 - 1  # one black pixel is added around the picture
    width = SIDE + 2
    column, row = (
        np.clip((v + 1) * (CANVAS / 2) - margin, 0, width - 1.001)
        for v in ((c * dx + s * dy) / sx, (c * dy - s * dx) / sy)
    )
    i, j = row.astype(np.int32), column.astype(np.int32)
    flat = np.pad(chosen, [(0, 0), (1, 1), (1, 1)]).astype(np.float32).ravel()
    corner = (np.arange(len(chosen)) * width**2)[:, None] + i * width + j
    down, right = row - i, column - j
    upper = flat[corner] * (1 - right) + flat[corner + 1] * right
    lower = flat[corner + width] * (1 - right) + flat[corner + width + 1] * right
    images = upper * (1 - down) + lower * down
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    return images.reshape(-1, CANVAS, CANVAS)
