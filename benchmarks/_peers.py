"""Classifiers by others, and simple ones, for `peers.py`: they tell classes of test images."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage, sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from patternfold.datasets import Split

BLUR = 2.0
"""Pixels by which images are smoothed before tangents are taken: of 0.7, 1, 1.5, 2 and 3 the best
on digits of another seed."""
SPRING = 1e-4
"""Added to the equations of the tangent distance, which two equal directions make singular."""
ANGLES, QUANTILES = 90, 64
"""Directions of the normalised Radon-CDT, and quantiles of each projection."""


def flat(images: np.ndarray) -> np.ndarray:
    """Rows of pixels."""
    return images.reshape(len(images), -1)


def nearest_neighbour(split: Split, _: str) -> np.ndarray:
    """1-nearest neighbour on pixels."""
    return KNeighborsClassifier(1).fit(flat(split.X), split.y).predict(flat(split.X_test))


def never_transformed(split: Split, _: str) -> np.ndarray:
    """A support vector machine that sees the digits before they were transformed."""
    assert split.aligned is not None
    assert split.aligned_test is not None
    return SVC(C=10).fit(flat(split.aligned), split.y).predict(flat(split.aligned_test))


def tangent_neighbour(split: Split, _: str) -> np.ndarray:
    """1-nearest neighbour by the two-sided tangent distance of Simard et al., affine maps."""
    (X, planes), (X_test, planes_test) = tangent_planes(split.X), tangent_planes(split.X_test)
    own = np.einsum("nkp,np->nk", planes, X)
    nearest = [
        np.argmin(tangent_distances(X, planes, own, *one))
        for one in zip(X_test, planes_test, strict=True)
    ]
    return split.y[nearest]


def tangent_planes(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smoothed images (N, P), and orthonormal bases (N, 6, P) of their tangents."""
    smooth = ndimage.gaussian_filter(images.astype(np.float32), (0, BLUR, BLUR))
    along_y, along_x = np.gradient(smooth, axis=(1, 2))
    axes = (np.linspace(-1, 1, side, dtype=np.float32) for side in images.shape[1:])
    y, x = np.meshgrid(*axes, indexing="ij")
    moves = [g * w for g in (along_x, along_y) for w in (np.ones_like(x), x, y)]
    tangents = np.stack([flat(move) for move in moves], axis=2)
    return flat(smooth), np.linalg.qr(tangents)[0].transpose(0, 2, 1)


def tangent_distances(
    X: np.ndarray, planes: np.ndarray, own: np.ndarray, image: np.ndarray, plane: np.ndarray
) -> np.ndarray:
    """Squared distances of the plane at an image to those at X; ``own`` are the products PX."""
    n, k = own.shape
    normal = np.empty((n, 2 * k, 2 * k))
    normal[:] = (1 + SPRING) * np.eye(2 * k)
    normal[:, :k, k:] = (planes.reshape(n * k, -1) @ plane.T).reshape(n, k, k)
    normal[:, k:, :k] = normal[:, :k, k:].transpose(0, 2, 1)
    away = X - image
    along = np.concatenate([own - planes @ image, away @ plane.T], axis=1)
    saved = np.einsum("nk,nk->n", along, np.linalg.solve(normal, along[:, :, None])[:, :, 0])
    return (away**2).sum(axis=1) - saved


def radon_subspace(split: Split, _: str) -> np.ndarray:
    """pytranskit: nearest subspace of the Radon cumulative distribution transform."""
    from pytranskit.classification.rcdt_ns import RCDT_NS

    return run_radon_cdt(RCDT_NS, split)


def radon_affine(split: Split, _: str) -> np.ndarray:
    """pytranskit: likewise, subspaces enriched by affine maps and turns (INV_ENC)."""
    from pytranskit.classification.inv_enc import INV_ENC

    return run_radon_cdt(INV_ENC, split)


def run_radon_cdt(kind: Any, split: Split) -> np.ndarray:
    """Learn and predict with a classifier of pytranskit, which prints and keeps files."""
    classes, numbers = np.unique(split.y, return_inverse=True)
    model = kind(len(classes), np.linspace(0, 176, 45), rm_edge=True)
    # It forks a pool of processes, which may hang once JAX has threads; the work is the same here.
    model.rcdt_parallel = model.fun_rcdt_batch
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        (Path(folder) / "metadata").mkdir()
        os.chdir(folder)
        try:
            model.fit(split.X.astype(np.float64), numbers)
            return classes[model.predict(split.X_test.astype(np.float64))]
        finally:
            os.chdir(before)


def normalised_radon(split: Split, _: str) -> np.ndarray:
    """Our rewrite of the normalised Radon-CDT (Beckmann et al. 2025), and a linear discriminant."""
    X, X_test = (normalised_features(images) for images in (split.X, split.X_test))
    judge = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return judge.fit(X, split.y).predict(X_test)


def normalised_features(images: np.ndarray) -> np.ndarray:
    """Quantiles of each projection, shifted and scaled to mean 0 and variance 1, over angles."""
    n = len(images)
    masses = flat(images).clip(0) @ projections(images.shape[1:])
    masses = masses.reshape(n * ANGLES, -1) + 1e-8
    sums = np.cumsum(masses, axis=1)
    sums /= sums[:, -1:]
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    places = np.arange(sums.shape[1])
    quantiles = np.stack([np.interp(levels, row, places) for row in sums])
    quantiles -= quantiles.mean(axis=1, keepdims=True)
    quantiles /= quantiles.std(axis=1, keepdims=True)
    turned = quantiles.reshape(n, ANGLES, QUANTILES)
    # A turn by π mirrors a projection: both halves of the circle count.
    turned = np.concatenate([turned, -turned[:, :, ::-1]], axis=1)
    return np.concatenate([turned.max(axis=1), turned.std(axis=1)], axis=1)


@cache
def projections(shape: tuple[int, int]) -> Any:
    """The Radon transform as a sparse matrix: pixels to places along each direction."""
    rows, columns = shape
    y, x = (v.ravel() for v in np.mgrid[:rows, :columns].astype(float))
    angle = np.pi * np.arange(ANGLES)[:, None] / ANGLES
    bins = int(np.hypot(rows, columns)) + 3
    middle = ((rows - 1) / 2, (columns - 1) / 2)
    place = np.cos(angle) * (x - middle[1]) + np.sin(angle) * (y - middle[0]) + (bins - 1) / 2
    low = np.floor(place).astype(int)
    first = low + bins * np.arange(ANGLES)[:, None]
    pixel = np.broadcast_to(np.arange(rows * columns), low.shape)
    entries = np.concatenate([1 - (place - low), place - low]).ravel()
    where = (np.concatenate([pixel, pixel]).ravel(), np.concatenate([first, first + 1]).ravel())
    return sparse.csr_array((entries, where), shape=(rows * columns, ANGLES * bins))


def scattering(split: Split, _: str) -> np.ndarray:
    """kymatio with torch: wavelet scattering of two orders, J = 3, and a ridge classifier.

    Of linear discriminants, support vector machines and ridge classifiers on features or their
    logarithms, this was the best on digits of another seed.
    """
    import scipy.special

    # kymatio 0.3 imports this name for volumes; SciPy 1.17 has it no more.
    if not hasattr(scipy.special, "sph_harm"):
        scipy.special.sph_harm = None  # type: ignore[attr-defined]
    import torch
    from kymatio.torch import Scattering2D

    transform = Scattering2D(J=3, shape=split.X.shape[1:])

    def features(images: np.ndarray) -> np.ndarray:
        parts = torch.tensor(images, dtype=torch.float32).split(64)
        return np.log(flat(np.concatenate([transform(part).numpy() for part in parts])) + 1e-4)

    judge = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(0, 6, 13)))
    return judge.fit(features(split.X), split.y).predict(features(split.X_test))
