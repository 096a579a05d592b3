"""Matching pursuit over a sampled dictionary: one loop for MP, SMP and SAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from patternfold.baselines.sampled_dictionary import SampledDictionary

Criterion = Callable[[np.ndarray], np.ndarray]
"""From products ⟨r_i, φ⟩, shape (D, N), to the merit of each atom, shape (D,)."""

PART = 4096
"""Atoms at a time where a matrix of all atoms and images is changed in place."""


class Pursued(NamedTuple):
    """Chosen atoms, their coefficients in each image (N, K), and Σ‖r_i‖² after each atom."""

    chosen: list[int]
    coef: np.ndarray
    squares: np.ndarray


def pursue(
    dictionary: SampledDictionary, images: np.ndarray, n_atoms: int, criterion: Criterion
) -> Pursued:
    """Choose atoms one by one; each takes its share ⟨r_i, φ⟩ of every residual r_i.

    The products of residuals and atoms follow from those of the images and the atoms among
    themselves, so that an atom costs O(nD + ND) in place of the O(nND) of computing them anew.
    """
    products = dictionary.products(images)
    left = float((images.astype(np.float64) ** 2).sum())
    chosen: list[int] = []
    coef, squares = [], []
    for _ in range(n_atoms):
        best = int(criterion(products).argmax())
        share = products[best].copy()
        _subtract_outer(products, dictionary.products(dictionary.atoms([best])), share)
        left -= float((share.astype(np.float64) ** 2).sum())
        chosen.append(best)
        coef.append(share)
        squares.append(max(left, 0.0))
    return Pursued(chosen, np.stack(coef, axis=1), np.array(squares))


def _subtract_outer(matrix: np.ndarray, column: np.ndarray, row: np.ndarray) -> None:
    """Subtract column · row in place, without a second matrix of that size."""
    for start in range(0, len(matrix), PART):
        matrix[start : start + PART] -= column[start : start + PART] * row


def shared_energy(products: np.ndarray) -> np.ndarray:
    """Σ_i ⟨r_i, φ⟩²: what an atom takes from all residuals together."""
    return np.einsum("dn,dn->d", products, products)


def separating_energy(labels: np.ndarray, n_classes: int, weight: float) -> Criterion:
    """Σ_i c_i² + λ (between − within): energy, and how the coefficients c_i separate the classes.

    The scatter between classes is Σ_m N_m (c̄_m − c̄)², that within them Σ_i (c_i − c̄_m(i))².
    """
    means = class_means(labels, n_classes)
    counts = np.bincount(labels, minlength=n_classes).astype(means.dtype)

    def merit(products: np.ndarray) -> np.ndarray:
        energy, by_class = shared_energy(products), products @ means
        explained = by_class**2 @ counts
        common = (by_class @ counts) ** 2 / len(labels)
        between, within = explained - common, energy - explained
        return energy + weight * (between - within)

    return merit


def class_means(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Matrix of shape (N, M) that averages a row of N values over each class."""
    member = (labels[:, None] == np.arange(n_classes)).astype(np.float32)
    return member / member.sum(axis=0)
