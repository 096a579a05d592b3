"""Keep the best end of each image, and say how it was reached and how well it fits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.chunk import Chunk, counted
from patternfold.learning.distance import Distance
from patternfold.learning.project.apart import apart
from patternfold.learning.project.found import (
    AMBIGUOUS,
    BLANK,
    BOUND,
    CONVERGED,
    DEGENERATE,
    MODES,
    UNFINISHED,
    Found,
)
from patternfold.learning.project.modes import count_modes, noise_variance
from patternfold.learning.project.refine import Ends, Rows
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.numerics.least_squares import solve_definite

FLAT = 1e-5
"""A direction in Λ, in units of the box, along which the metric is below this share of its size
leaves the rendered pattern as it is."""

NORMAL_SQUARE = np.pi / 2
"""Mean square of a normal variable over the square of its mean size."""


def best_ends(
    distance: Distance,
    chunk: Chunk,
    grid: Grid,
    rows: Rows,
    ends: Ends,
    shape: tuple[int, ...],
    describe: bool,
) -> Found | tuple[Float[Array, "B M d"], Float[Array, "B M"]]:
    """Keep the best end of each image and pattern, and say how it was reached."""
    n_images, n_patterns, count = shape
    best = ends.cost.reshape(shape).argmin(axis=2)
    place = (jnp.arange(n_images * n_patterns) * count + best.reshape(-1)).astype(jnp.int32)
    chosen: Ends = jax.tree.map(lambda a: a[place], ends)
    box = distance.transformation.parameters
    lam = box.put_inside(chosen.lam)
    which = None if rows.pattern is None else rows.pattern[place]
    two, square = (n_images, n_patterns), jnp.maximum(chosen.cost, 0)
    ends_of_images = lam.reshape(*two, -1), square.reshape(two)
    if not describe:
        return ends_of_images
    image = rows.image[place]
    images, roots = chunk.images[image], None if chunk.roots is None else chunk.roots[image]
    fit = distance.fit(images, roots, distance.values(lam, which), which)
    seen = distance.lighting.seen(images, roots)
    energies = distance.lighting.energies(images, roots)
    misfit = misfit_of(fit.residual, energies, counted(chunk)[image], grid)
    modes, mode_squares = _modes(box, ends.lam.reshape(*shape, -1), ends.cost.reshape(shape))
    noise = noise_variance(square, counted(chunk)[image], box.dim, distance.lighting)
    n_modes = count_modes(mode_squares, noise.reshape(two), energies.reshape(two))
    return Found(
        *ends_of_images,
        status=_status(box, chosen, seen, n_modes.reshape(-1)).reshape(two),
        misfit=misfit.reshape(two),
        gain=fit.gain.reshape(two),
        offset=fit.offset.reshape(two),
        modes=modes,
        mode_squares=mode_squares,
        n_modes=n_modes.astype(jnp.int8),
    )


def _modes(
    box: Box, lam: Float[Array, "B M F d"], cost: Float[Array, "B M F"]
) -> tuple[Float[Array, "B M P d"], Float[Array, "B M P"]]:
    """The best ends that are different poses, and their costs."""
    picked, least = apart(box, box.put_inside(lam), cost, MODES)
    picked = jnp.where(jnp.isfinite(least)[..., None], picked, jnp.nan)
    return _filled_up(picked, jnp.nan), _filled_up(jnp.maximum(least, 0), jnp.inf)


def _filled_up(some: Array, value: float) -> Array:
    """Fill the third axis up to `MODES`."""
    return (
        jnp.full((*some.shape[:2], MODES, *some.shape[3:]), value, some.dtype)
        .at[:, :, : some.shape[2]]
        .set(some)
    )


def _status(box: Box, ends: Ends, seen: Bool[Array, " R"], n_modes: Int[Array, " R"]) -> Array:
    """Describe how each search ended; the first that applies is taken."""
    dtype = ends.lam.dtype
    width = jnp.asarray(box.width, dtype)[None]
    # Degenerate: some direction in Λ leaves the rendered pattern as it is.
    metric = ends.metric * width[:, :, None] * width[:, None, :]
    size = jnp.sqrt((metric**2).sum(axis=(1, 2)))
    extra = jnp.broadcast_to((-FLAT * size - jnp.finfo(dtype).tiny)[:, None], ends.lam.shape)
    _, definite = solve_definite(metric, extra, jnp.zeros_like(ends.lam))
    on_bound = box.at_bounds(ends.lam).any(axis=1)
    conditions = [~seen, ~definite, n_modes > 1, ~ends.done, on_bound]
    codes = [jnp.full((), code) for code in (BLANK, DEGENERATE, AMBIGUOUS, UNFINISHED, BOUND)]
    return jnp.select(conditions, codes, jnp.full((), CONVERGED)).astype(jnp.int8)


def misfit_of(
    residuals: Float[Array, "R n"],
    energy: Float[Array, " R"],
    n_pixels: Float[Array, " R"],
    grid: Grid,
) -> Float[Array, " R"]:
    """Share of each image's energy that is left over at λ, white noise not counted.

    White noise leaves products of neighbouring pixels near 0 on average, and it is spread evenly:
    the mean size of residuals tells their mean square. What has structure fails in one of the two:
    blots have neighbours alike, and the thin lines beside a stroke have few pixels.
    """
    w = residuals.reshape(-1, *grid.shape)
    across = (w[:, :, 1:] * w[:, :, :-1]).sum(axis=(1, 2))
    down = (w[:, 1:] * w[:, :-1]).sum(axis=(1, 2))
    size = jnp.abs(residuals).sum(axis=1)
    even = NORMAL_SQUARE * size**2 / jnp.maximum(n_pixels, 1)
    uneven = (residuals**2).sum(axis=1) - even
    return jnp.maximum((across + down) / 2, uneven) / jnp.maximum(energy, jnp.finfo(w.dtype).tiny)
