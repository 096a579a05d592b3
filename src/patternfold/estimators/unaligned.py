"""What images are before and after alignment: the error of their mean, and their spread."""

from __future__ import annotations

import numpy as np

TOLD_BY_MOST = 0.5
"""Share of the images that must say something about a pixel for it to count."""

Masks = np.ndarray | None


def standardised(rows: np.ndarray, mask: Masks, gain: bool, offset: bool) -> np.ndarray:
    """Return images without the brightness and contrast that their model leaves free.

    Centred where an image has an offset of its own, to unit norm where it has a gain; pixels that
    do not count are 0.
    """
    counts = _counts(rows, mask)
    values = np.where(counts > 0, rows, 0).astype(np.float64)
    if offset:
        mean = values.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        values = (values - mean) * counts
    if gain:
        norm = np.linalg.norm(values, axis=1, keepdims=True)
        values = values / np.where(norm > 0, norm, 1)
    return values


def mean_error(rows: np.ndarray, mask: Masks = None, gain: bool = False, offset: bool = False):
    """Return the normalised error of the mean image, unaligned: what learning has to beat.

    Each image is compared with the mean at its own gain and offset where the model has them, and
    errors are divided by the same energy as those of the model.
    """
    counts, values = _counts(rows, mask), standardised(rows, mask, False, offset)
    shapes = standardised(rows, mask, gain, offset)
    mean = shapes.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    means = standardised(np.tile(mean, (len(rows), 1)), mask, False, offset)
    if gain:
        square = np.maximum(np.einsum("np,np->n", means, means), 1e-300)
        fitted = np.maximum(np.einsum("np,np->n", values, means) / square, 0)
        means = fitted[:, None] * means
    energy = float((values**2).sum())
    return float(((values - means) ** 2).sum()) / energy if energy else 0.0


def spread(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean standard deviation of pixels over images, where most say something."""
    total = weights.sum(axis=0)
    known = total >= max(TOLD_BY_MOST * len(values), 2)
    if not known.any():
        return 0.0
    values, weights, total = values[:, known], weights[:, known], total[known]
    mean = (weights * values).sum(axis=0) / total
    return float(np.sqrt((weights * (values - mean) ** 2).sum(axis=0) / total).mean())


def _counts(rows: np.ndarray, mask: Masks) -> np.ndarray:
    """Return 1 for pixels that count, else 0."""
    counts = np.isfinite(rows)
    return (counts if mask is None else counts & mask.reshape(rows.shape)).astype(np.float64)
