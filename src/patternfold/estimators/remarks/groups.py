"""Do images form two groups? Aligned, they are looked at along the directions they vary in most."""

from __future__ import annotations

import numpy as np

from patternfold.estimators.remarks.evidence import Evidence

DIRECTIONS = 3
"""Principal components of the aligned images that are looked at."""

LEAST_SHARE, LEAST_IMAGES = 0.1, 3
"""Of the smaller group: fewer are strangers."""

APART, APART_FOR_FEW = 4.5, 40.0
"""How many standard deviations two groups are apart: a number, and so many over N. Halves of one
group that is normal, uniform or skewed come up to this once in a hundred times."""

NOTABLE = 0.03
"""Share of the energy of images by which groups must differ: formats and colours leave traces."""

FEW = 8
"""Images among which no groups are looked for."""


def two_groups(evidence: Evidence) -> np.ndarray | None:
    """Return the indices of the smaller of two groups of images, or None if they form one."""
    some = evidence.some
    if len(some) < FEW:
        return None
    values, weights = evidence.aligned
    scale = np.sqrt(np.mean((weights * values**2).sum(axis=1)))
    shares = np.sqrt(np.maximum(evidence.misfit[some], 0))
    best, smaller = 0.0, None
    for scores in (*_components(values, weights).T / max(scale, 1e-300), shares):
        apart, lower = split(scores)
        notable = (scores[~lower].mean() - scores[lower].mean()) ** 2 > NOTABLE
        if notable and apart > max(best, APART + APART_FOR_FEW / len(scores)):
            best, smaller = apart, lower if 2 * lower.sum() <= len(scores) else ~lower
    return None if smaller is None else some[smaller]


def split(scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Part numbers where the two parts vary least; return how far apart they are, and the lower.

    The distance is that of the means in units of the parts' common standard deviation.
    """
    n, order = len(scores), np.argsort(scores, kind="stable")
    values = scores[order].astype(np.float64)
    count = np.arange(1, n)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    low, high = sums[:-1] / count, (sums[-1] - sums[:-1]) / (n - count)
    within = squares[-1] - count * low**2 - (n - count) * high**2
    least = max(LEAST_IMAGES, int(np.ceil(LEAST_SHARE * n)))
    possible = (count >= least) & (n - count >= least)
    if not possible.any():
        return 0.0, np.zeros(n, bool)
    at = int(np.argmin(np.where(possible, within, np.inf)))
    parts = values[: at + 1], values[at + 1 :]
    width = np.sqrt(np.mean([part.var(ddof=1) for part in parts]))
    lower = np.zeros(n, bool)
    lower[order[: at + 1]] = True
    tiny = 1e-9 * np.abs(values).max(initial=0)
    return float((high[at] - low[at]) / max(width, tiny, 1e-300)), lower


def _components(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Scores of aligned images along the directions they vary in most."""
    total = weights.sum(axis=0)
    mean = (weights * values).sum(axis=0) / np.maximum(total, 1)
    # What an image does not say is taken to be as in the others.
    centred = weights * (values - mean)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    return (left * size)[:, :DIRECTIONS]
