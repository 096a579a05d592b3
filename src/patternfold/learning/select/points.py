"""Images seen from the pattern: every pixel's residual and weight at its place a_λi(x, y)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from patternfold.model.grid import Grid
from patternfold.model.manifold import warped_pixels
from patternfold.model.transformations import AbstractTransformation

_warped_pixels = jax.jit(warped_pixels)


class Points(NamedTuple):
    """Weighted values scattered in the pattern's frame, all of shape (P,).

    ``weighted`` holds w·v and ``weights`` w: sums of these are all that Ẽ needs, and both may
    be gathered in cells. ``sizes`` holds |w|, which tells where weights of both signs cancel.
    """

    x: np.ndarray
    y: np.ndarray
    weighted: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray


def pull_back(
    residuals: np.ndarray,
    weights: np.ndarray,
    lam: np.ndarray,
    transformation: AbstractTransformation,
    grid: Grid,
) -> Points:
    """Carry the pixels of all residual images to the pattern's frame."""
    dtype = residuals.dtype
    x, y = _warped_pixels(transformation, lam, grid.x.astype(dtype), grid.y.astype(dtype))
    per_pixel = np.broadcast_to(weights.astype(dtype)[:, None], residuals.shape)
    return Points(
        np.asarray(x).ravel(),
        np.asarray(y).ravel(),
        (residuals * per_pixel).ravel(),
        per_pixel.ravel(),
        np.abs(per_pixel).ravel(),
    )


def gather(points: Points, cell: float, half_width: float) -> tuple[Points, int]:
    """Share the points among the nodes of a square grid, bilinearly.

    Returns the nodes as points, in row-major order, and the number of nodes along a side.
    Points outside the square are left out.
    """
    side = 2 * round(half_width / cell) + 1
    column = points.x / cell + (side - 1) / 2
    row = points.y / cell + (side - 1) / 2
    inside = (column >= 0) & (column < side - 1) & (row >= 0) & (row < side - 1)
    column, row = column[inside], row[inside]
    left, top = column.astype(np.int64), row.astype(np.int64)
    right_share, low_share = column - left, row - top
    sums = np.zeros((3, side * side))
    for i, share_y in ((0, 1 - low_share), (1, low_share)):
        for j, share_x in ((0, 1 - right_share), (1, right_share)):
            node, share = (top + i) * side + left + j, share_y * share_x
            for total, values in zip(sums, points[2:], strict=True):
                total += np.bincount(node, share * values[inside], side * side)
    axis = (np.arange(side) - (side - 1) / 2) * cell
    dtype = points.x.dtype
    return (
        Points(
            np.tile(axis, side).astype(dtype),
            np.repeat(axis, side).astype(dtype),
            *sums.astype(dtype),
        ),
        side,
    )
