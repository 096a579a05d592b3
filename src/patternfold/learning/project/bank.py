"""Global stage of the projection: score a grid over Λ, keep a few candidates per image.

The distance to a grid point splits into ‖u‖² − 2⟨u, U_λ(p)⟩ + ‖U_λ(p)‖². Shifts by whole coarse
pixels are windows into one larger rendering, so all of them at once are a correlation, done as a
matrix product: for images this small it is several times faster than by FFT. What has left the
window is not counted in the norm, exactly as in the distance itself.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.model.atoms import Atoms, evaluate
from patternfold.model.grid import Grid
from patternfold.model.manifold import warped_pixels
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.chunks import chunk_rows, padded_rows
from patternfold.numerics.compilation import compiled

COARSE_SIDE = 20
"""Longer side of the images in the global stage, about; larger ones are averaged in blocks."""

SPACING, FINE_SPACING = 0.13, 0.1
"""Mean displacement between neighbours of the grid, where the image spans 2."""

SPREAD = 6
"""The first so many candidates are not neighbours of one another on the grid."""

_RADIUS = 0.5
"""Root mean square distance from the origin at which displacements are measured."""


class CoarseGrid(NamedTuple):
    """The grid over Λ and the sampling it is scored with.

    ``nodes`` holds one λ per combination of the parameters that do not shift, with the shift in
    the middle of its bounds; ``multi_index`` says where a node lies along each parameter, and
    ``periods`` how many nodes go once around (0 where the parameter is not periodic).
    ``shifts`` are the offsets (t_x, t_y) tried at each node.
    """

    nodes: np.ndarray
    multi_index: np.ndarray
    periods: np.ndarray
    shifts: np.ndarray
    factors: tuple[int, int]
    margins: tuple[int, int]
    shift_index: tuple[int, int] | None


@lru_cache(maxsize=32)
def make_coarse_grid(
    transformation: AbstractTransformation, grid: Grid, spacing: float = SPACING
) -> CoarseGrid:
    """Lay a grid over Λ with about equal displacement from node to node."""
    box = transformation.parameters
    factor = max(1, round(max(grid.shape) / COARSE_SIDE))
    factors = (min(factor, grid.height), min(factor, grid.width))
    shift_index, margins = None, (0, 0)
    if transformation.translation is not None:
        kx, ky = (box.index(name) for name in transformation.translation)
        shift_index = (kx, ky)
        margins = (
            int(box.width[ky] / 2 / (factors[0] * grid.pixel) + 1e-9),
            int(box.width[kx] / 2 / (factors[1] * grid.pixel) + 1e-9),
        )
    axes = [
        np.array([box.centre[k]]) if k in (shift_index or ()) else _axis(transformation, k, spacing)
        for k in range(box.dim)
    ]
    counts = [len(axis) for axis in axes]
    multi_index = np.indices(counts).reshape(box.dim, -1).T
    nodes = np.stack([axis[i] for axis, i in zip(axes, multi_index.T, strict=True)], axis=1)
    periods = np.where(box.periodic, counts, 0)
    dy, dx = (np.arange(m, -m - 1, -1.0) for m in margins)
    shifts = np.stack(
        [
            np.tile(dx * factors[1] * grid.pixel, len(dy)),
            np.repeat(dy * factors[0] * grid.pixel, len(dx)),
        ],
        axis=1,
    )
    return CoarseGrid(nodes, multi_index, periods, shifts, factors, margins, shift_index)


def _axis(
    transformation: AbstractTransformation, k: int, spacing: float, fine: int = 257
) -> np.ndarray:
    """Values of parameter k with equal displacement between them: equal steps of arc length."""
    box = transformation.parameters
    values = np.linspace(box.lower[k], box.upper[k], fine)
    lam = np.tile(box.put_inside(transformation.identity), (fine, 1))
    lam[:, k] = values
    speeds = np.asarray(_speeds(transformation, lam.astype(np.float32)), np.float64)[:, k]
    length = np.concatenate([[0], np.cumsum(speeds[:-1])]) * box.width[k] / (fine - 1)
    count = max(1, round(length[-1] / spacing))
    # Cells of equal length, a node in the middle of each; around a circle that is even spacing.
    return np.interp((np.arange(count) + 0.5) / count * length[-1], length, values)


@compiled
def _speeds(
    transformation: AbstractTransformation, lam: Float[Array, "m d"]
) -> Float[Array, "m d"]:
    """Displacement in the pattern's frame per unit of each λ_k, averaged over a ring of points."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ring_x = jnp.asarray(_RADIUS * np.cos(angles), lam.dtype)
    ring_y = jnp.asarray(_RADIUS * np.sin(angles), lam.dtype)

    def speed(row: Float[Array, " d"]) -> Float[Array, " d"]:
        try:
            x, y = transformation.inverse_coordinates(row, ring_x, ring_y)
        except TypeError:  # a custom transformation without inverse: points of the image serve
            x, y = ring_x, ring_y
        dx, dy = transformation.derivatives(row, x, y)
        return jnp.sqrt((dx**2 + dy**2).mean(axis=1))

    return jax.vmap(speed)(lam)


def coarse_candidates(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: np.ndarray,
    grid: Grid,
    coarse: CoarseGrid,
    n_candidates: int,
) -> np.ndarray:
    """Return the best few λ of the grid for each image, shape (N, C, d).

    The first few are picked best first, and picking one rules out its neighbours on the grid, which
    mostly lead to the same place. The others are the best of what is left, neighbours or not.
    """
    cost, best_shift = _score(atoms, transformation, images, grid, coarse)
    chosen = _choose(cost, coarse, min(n_candidates, cost.shape[1]))
    lam = coarse.nodes[chosen]
    if coarse.shift_index is not None:
        shift = coarse.shifts[np.take_along_axis(best_shift, chosen, axis=1)]
        lam[..., list(coarse.shift_index)] += shift
    return lam


def _choose(cost: np.ndarray, coarse: CoarseGrid, count: int) -> np.ndarray:
    """Indices of ``count`` good nodes for each image; ``cost`` is used up."""
    spread = min(count, SPREAD)
    chosen = np.empty((len(cost), count), np.int64)
    open_cost = cost.copy() if count > spread else cost
    for c in range(spread):
        chosen[:, c] = open_cost.argmin(axis=1)
        open_cost[_neighbours(coarse, chosen[:, c])] = np.inf
    if count > spread:
        np.put_along_axis(cost, chosen[:, :spread], np.inf, axis=1)
        rest = np.argpartition(cost, count - spread - 1, axis=1)[:, : count - spread]
        chosen[:, spread:] = np.sort(rest, axis=1)
    return chosen


def _neighbours(coarse: CoarseGrid, chosen: np.ndarray) -> np.ndarray:
    """Mark for each image the nodes at most one step from the chosen one in every parameter."""
    near = np.ones((len(chosen), len(coarse.nodes)), bool)
    for index, period in zip(coarse.multi_index.T, coarse.periods, strict=True):
        gap = np.abs(index[None] - index[chosen][:, None])
        if period:
            gap = np.minimum(gap, period - gap)
        near &= gap <= 1
    return near


def _score(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: np.ndarray,
    grid: Grid,
    coarse: CoarseGrid,
) -> tuple[np.ndarray, np.ndarray]:
    """Least cost over the shifts, and the shift that has it, for every image and node."""
    (fy, fx), (my, mx) = coarse.factors, coarse.margins
    hc, wc = grid.height // fy, grid.width // fx
    top, left = (grid.height - hc * fy) // 2, (grid.width - wc * fx) // 2
    pooled = images.reshape(-1, *grid.shape)[:, top : top + hc * fy, left : left + wc * fx]
    pooled = pooled.reshape(-1, hc, fy, wc, fx).mean(axis=(2, 4), dtype=images.dtype)
    # Pixel centres of the window, widened on each side by the largest shift.
    columns = grid.columns[left] + grid.pixel * np.arange(-mx * fx, (wc + mx) * fx)
    rows = grid.rows[top] + grid.pixel * np.arange(-my * fy, (hc + my) * fy)
    x = np.tile(columns, len(rows)).astype(images.dtype)
    y = np.repeat(rows, len(columns)).astype(images.dtype)

    n_nodes, n_shifts, item = len(coarse.nodes), len(coarse.shifts), images.dtype.itemsize
    nodes_at_once = min(
        chunk_rows(2 * item * max(n_shifts * hc * wc, 3 * len(x))), padded_rows(n_nodes)
    )
    images_at_once = min(
        chunk_rows(item * nodes_at_once * n_shifts * 2), padded_rows(max(1, len(images)))
    )
    cost = np.empty((len(images), n_nodes), images.dtype)
    shift = np.empty((len(images), n_nodes), np.int32)
    for i in range(0, n_nodes, nodes_at_once):
        index = np.minimum(np.arange(i, i + nodes_at_once), n_nodes - 1)
        canvas = _canvases(
            atoms,
            transformation,
            coarse.nodes[index].astype(images.dtype),
            x,
            y,
            (len(rows) // fy, fy, len(columns) // fx, fx),
        )
        for j in range(0, len(images), images_at_once):
            some = np.minimum(np.arange(j, j + images_at_once), len(images) - 1)
            c, s = _best_shifts(canvas, pooled[some])
            n, m = len(images[j : j + images_at_once]), min(nodes_at_once, n_nodes - i)
            cost[j : j + n, i : i + m] = np.asarray(c)[:n, :m]
            shift[j : j + n, i : i + m] = np.asarray(s)[:n, :m]
    return cost, shift


@partial(compiled, static_argnames="blocks")
def _canvases(
    atoms: Atoms,
    transformation: AbstractTransformation,
    nodes: Float[Array, "g d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    blocks: tuple[int, int, int, int],
) -> Float[Array, "g h w"]:
    """Render the pattern at each node on the widened window and average in blocks."""
    values = evaluate(atoms, *warped_pixels(transformation, nodes, x, y))
    return values.reshape(-1, *blocks).mean(axis=(2, 4))


@compiled
def _best_shifts(
    canvas: Float[Array, "g h w"], images: Float[Array, "N hc wc"]
) -> tuple[Float[Array, "N g"], Int[Array, "N g"]]:
    """‖U_λ(p)‖² − 2⟨u, U_λ(p)⟩, least over the shifts."""
    inner = jax.lax.conv_general_dilated(canvas[:, None], images[:, None], (1, 1), "VALID")
    window = jnp.ones((1, 1, *images.shape[1:]), canvas.dtype)
    energy = jax.lax.conv_general_dilated((canvas**2)[:, None], window, (1, 1), "VALID")
    cost = (energy - 2 * inner).reshape(len(canvas), len(images), -1)
    best = cost.argmin(axis=-1)
    least = jnp.take_along_axis(cost, best[..., None], axis=-1)[..., 0]
    return least.T, best.T.astype(jnp.int32)
