"""The background of a mixture: images that fit no group, told by what is usual in their group."""

from __future__ import annotations

import numpy as np

UNUSUAL = 4.0
"""Standard deviations, told by the median, that the logarithm of an image's misfit may lie above
that of its group."""

LEAST_SPREAD = 0.1
"""Least standard deviation of these logarithms: images of a group that fit all alike are not told
apart by rounding."""


def usual_limits(left: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Largest share of an image's energy that may be left over, for each group."""
    limits = np.full(n_groups, np.inf)
    logs = np.log(np.maximum(left, 1e-12))
    for g in range(n_groups):
        own = logs[group == g]
        if len(own) > 2:
            middle = np.median(own)
            spread = max(1.4826 * float(np.median(np.abs(own - middle))), LEAST_SPREAD)
            limits[g] = np.exp(middle + UNUSUAL * spread)
    return limits
