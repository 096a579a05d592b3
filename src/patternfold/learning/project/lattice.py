"""Where the global stage looks: a lattice over Λ, and the blurred images it is compared on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled

BLUR = 0.8
"""Width s of the blur exp(−r²/s²), in coarse pixels: sampling loses little of what it leaves."""

MOST_TEMPLATES = 2**19
"""Points of a lattice, shifts included: 300 MB of templates on 144 coarse pixels."""

_RADIUS = 0.5
"""Root mean square distance from the origin at which displacements are measured."""


class CoarsePixels(NamedTuple):
    """Blurred images on fewer pixels: u becomes ``down`` · u · ``across``ᵀ.

    ``columns`` and ``rows`` are the coarse pixels' centres, ``step`` the distance between them and
    ``blur`` the width by which atoms blur alike; 0 where no pixel is left out.
    """

    down: np.ndarray
    across: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    step: float
    blur: float


class Lattice(NamedTuple):
    """Points of Λ with about equal displacement from one to the next.

    ``nodes`` (G, d) holds one λ per combination of the parameters that do not shift, with the shift
    in the middle of its bounds; ``counts`` says how many there are along each parameter, and
    ``periodic`` which of them close to a circle. ``margins`` are the numbers of coarse pixels by
    which templates are shifted down and across, ``shifts`` (S, 2) the shifts (t_x, t_y).
    """

    nodes: np.ndarray
    counts: tuple[int, ...]
    periodic: tuple[bool, ...]
    margins: tuple[int, int]
    shifts: np.ndarray
    shift_index: tuple[int, int] | None


@lru_cache(maxsize=64)
def coarse_pixels(grid: Grid, side: int) -> CoarsePixels:
    """Leave so few pixels that the longer side has ``side`` of them; small images stay as they are.

    A multiple of four leaves no odd pixels to vector units.
    """
    if max(grid.shape) <= side + side // 4:
        down, across = (np.eye(n) for n in grid.shape)
        return CoarsePixels(down, across, grid.columns, grid.rows, grid.pixel, 0.0)
    step = 2.0 / side
    rows, columns = (_centres(n * grid.pixel, step) for n in grid.shape)
    blur = BLUR * step
    down, across = (
        _gaussian_weights(coarse, axis, blur, grid.pixel)
        for coarse, axis in ((rows, grid.rows), (columns, grid.columns))
    )
    return CoarsePixels(down, across, columns, rows, step, blur)


def _centres(length: float, step: float) -> np.ndarray:
    """Centres of coarse pixels that cover a side of this length."""
    count = max(1, round(length / step))
    return (np.arange(count) - (count - 1) / 2) * step


def _gaussian_weights(
    coarse: np.ndarray, fine: np.ndarray, blur: float, pixel: float
) -> np.ndarray:
    gap = (coarse[:, None] - fine[None]) / blur
    return np.exp(-(gap**2)) * pixel / (np.sqrt(np.pi) * blur)


@lru_cache(maxsize=64)
def make_lattice(
    transformation: AbstractTransformation, coarse_step: float, spacing: float
) -> Lattice:
    """Lay a lattice over Λ; shifts go by whole coarse pixels."""
    box = transformation.parameters
    shift_index, margins = None, (0, 0)
    if transformation.translation is not None:
        kx, ky = (box.index(name) for name in transformation.translation)
        shift_index = (kx, ky)
        margins = (
            int(box.width[ky] / 2 / coarse_step + 1e-9),
            int(box.width[kx] / 2 / coarse_step + 1e-9),
        )
    shifted = dict(zip(shift_index or (), (2 * m + 1 for m in margins[::-1]), strict=False))
    paths = [None if k in shifted else _path(transformation, k) for k in range(box.dim)]
    most = _most_nodes(transformation)
    lengths = [
        shifted[k]
        if path is None
        else float(np.clip(np.round(path.length[-1] / spacing), 1, most[k]))
        for k, path in enumerate(paths)
    ]
    _require_small(box, lengths)
    counts = tuple(1 if k in shifted else int(n) for k, n in enumerate(lengths))
    # A single node is the identity where more are not allowed, else the middle.
    alone = np.where(most == 1, box.put_inside(transformation.identity), box.centre)
    axes = [
        alone[k : k + 1] if path is None or most[k] == 1 else path.nodes(counts[k])
        for k, path in enumerate(paths)
    ]
    index = np.indices(counts).reshape(box.dim, -1).T
    nodes = np.stack([axis[i] for axis, i in zip(axes, index.T, strict=True)], axis=1)
    dy, dx = (np.arange(m, -m - 1, -1.0) * coarse_step for m in margins)
    shifts = np.stack([np.tile(dx, len(dy)), np.repeat(dy, len(dx))], axis=1)
    return Lattice(nodes, counts, box.periodic, margins, shifts, shift_index)


def _most_nodes(transformation: AbstractTransformation) -> np.ndarray:
    """How many values of each parameter its family allows the search to try."""
    most = {name: n for part in transformation.parts for name, n in part.coarse_nodes.items()}
    return np.array([most.get(name, np.inf) for name in transformation.parameters.names])


def _require_small(box: Box, lengths: Sequence[float]) -> None:
    """Refuse a lattice of too many points, or of no number of them, before room is made for it."""
    total = float(np.prod(lengths))
    if not total <= MOST_TEMPLATES:
        k = int(np.argmax(np.nan_to_num(lengths, nan=np.inf)))
        name = box.names[k]
        raise ValueError(
            f"bounds of {name!r} are ({box.lower[k]:g}, {box.upper[k]:g}): with them the global "
            f"search would try {total:.3g} poses of the pattern, and at most {MOST_TEMPLATES} are "
            f"allowed. Narrow them with bounds={{{name!r}: (lower, upper)}}."
        )


class _Path(NamedTuple):
    """Values of a parameter, and how far the pattern has moved up to each of them."""

    values: np.ndarray
    length: np.ndarray

    def nodes(self, count: int) -> np.ndarray:
        """Values with equal displacement between them: a node in the middle of equal cells.

        Around a circle that is even spacing.
        """
        where = (np.arange(count) + 0.5) / count * self.length[-1]
        return np.interp(where, self.length, self.values)


def _path(transformation: AbstractTransformation, k: int, fine: int = 257) -> _Path:
    """Measure the arc length along parameter k, the others at the identity."""
    box = transformation.parameters
    values = np.linspace(box.lower[k], box.upper[k], fine)
    lam = np.tile(box.put_inside(transformation.identity), (fine, 1))
    lam[:, k] = values
    speeds = np.asarray(_speeds(transformation, lam.astype(np.float32)), np.float64)[:, k]
    length = np.concatenate([[0], np.cumsum(speeds[:-1])]) * box.width[k] / (fine - 1)
    return _Path(values, length)


@partial(compiled, small=True)
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
