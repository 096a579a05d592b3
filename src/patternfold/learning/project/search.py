"""The search of one projection, as one stage: candidates from the bank, improved and pruned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.distance import Distance
from patternfold.learning.effort import Effort
from patternfold.learning.observations import Chunk
from patternfold.learning.project.bank import Bank, choose_candidates, pool
from patternfold.learning.project.modes import count_modes, counted, noise_variance
from patternfold.learning.project.refine import (
    Ends,
    Pixels,
    Rows,
    make_rows,
    refine,
    single,
)
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import solve_definite

CONVERGED, BOUND, DEGENERATE, BLANK, EMPTY, UNFINISHED, AMBIGUOUS = range(7)
"""How a search ended; `STATUS` in project.py has the words, in this order."""

SAME_POSE = 0.02
"""Ends that differ by less than this share of the box in every parameter are one."""

FLAT = 1e-5
"""A direction in Λ, in units of the box, along which the metric is below this share of its size
leaves the rendered pattern as it is."""

LARGE_SIDE = 24
"""Images of so many pixels along the shorter side have a stage on every other row and column."""

MODES = 6
"""Most poses of an image that are told, the best one among them."""

NORMAL_SQUARE = np.pi / 2
"""Mean square of a normal variable over the square of its mean size."""

SCORED = {"cpu": 2**24, "gpu": 2**29, "tpu": 2**29}
"""Bytes of template scores that exist at a time."""


class Found(NamedTuple):
    """λ*, the squared distance, how the search ended, and the misfit, by image and pattern.

    The misfit is the share of the image's energy that is left over, white noise not counted. Gain
    and offset are those of the image at λ*. ``modes`` are the best ends that are different poses,
    λ* first, no number where there is none, and ``mode_squares`` their squared distances; the first
    ``n_modes`` are as good as λ* within the noise. Arrays of JAX inside a stage, of NumPy outside.
    """

    lam: Float[Any, "B M d"]
    square: Float[Any, "B M"]
    status: Int[Any, "B M"]
    misfit: Float[Any, "B M"]
    gain: Float[Any, "B M"]
    offset: Float[Any, "B M"]
    modes: Float[Any, "B M P d"]
    mode_squares: Float[Any, "B M P"]
    n_modes: Int[Any, "B M"]

    @classmethod
    def undescribed(cls, lam: np.ndarray, square: np.ndarray) -> Found:
        """Return ends of which no more is known, outside a stage."""
        none = np.zeros_like(square)
        modes = np.full((*square.shape, MODES, lam.shape[-1]), np.nan, lam.dtype)
        mode_squares = np.full((*square.shape, MODES), np.inf, square.dtype)
        modes[:, :, 0], mode_squares[:, :, 0] = lam, square
        status, single = (np.full(square.shape, n, np.int8) for n in (UNFINISHED, 1))
        return cls(lam, square, status, none, none + 1, none, modes, mode_squares, single)

    def with_modes(self, other: Found, box: Box) -> Found:
        """Return the same ends with the poses that another search, outside a stage, came upon.

        λ* itself comes first, in place of what that search has made of it.
        """
        apart = np.abs(box.difference(other.modes, self.lam[:, :, None])) / box.width
        apart = np.nan_to_num(apart.max(axis=-1), nan=np.inf)
        own = apart.argmin(axis=-1)[..., None]
        order = np.argsort(np.arange(apart.shape[-1]) != own, axis=-1, kind="stable")
        modes = np.take_along_axis(other.modes, order[..., None], axis=2)
        squares = np.take_along_axis(other.mode_squares, order, axis=2)
        known = apart.min(axis=-1) < SAME_POSE
        modes[known, 0], squares[known, 0] = self.lam[known], self.square[known]
        sure = np.isin(self.status, (CONVERGED, BOUND, UNFINISHED))
        status = np.where(sure & (other.n_modes > 1), AMBIGUOUS, self.status)
        return self._replace(
            status=status, modes=modes, mode_squares=squares, n_modes=other.n_modes
        )


def filled_up(some: Array, value: float) -> Array:
    """Fill the third axis up to `MODES`."""
    return (
        jnp.full((*some.shape[:2], MODES, *some.shape[3:]), value, some.dtype)
        .at[:, :, : some.shape[2]]
        .set(some)
    )


class Scope(NamedTuple):
    """What is searched: the whole box, the neighbourhood of known λ, or both; and for how long.

    ``steps`` on all pixels are taken at most, and never more than the effort allows. At most
    ``finalists`` go on to all pixels; code has room for those of the effort.
    """

    everywhere: Bool[Array | np.ndarray, ""]
    start: Bool[Array | np.ndarray, ""]
    steps: Int[Array | np.ndarray, ""]
    finalists: Int[Array | np.ndarray, ""]


@partial(compiled, hot=True, static_argnames=("effort", "grid", "describe"))
def search(
    chunk: Chunk,
    start: Float[Array, "B M d"],
    bank: Bank | None,
    distance: Distance,
    scope: Scope,
    effort: Effort,
    grid: Grid,
    describe: bool = True,
) -> Found | tuple[Float[Array, "B M d"], Float[Array, "B M"]]:
    """Project the images of a chunk on every pattern.

    Without a bank the search is local. Flags, not shapes, say what is searched: the same compiled
    code serves a global search, one that also knows λ, and a local one. λ that is no number is not
    known. Unless asked to ``describe`` its ends, the search tells λ and the distance alone.
    """
    starts, wanted = _finalists(chunk, start, bank, distance, scope, effort, grid)
    pixels = _pixels(distance, chunk.images, chunk.roots)
    rows = make_rows(starts, wanted)
    own = distance if starts.shape[1] > 1 else single(distance)
    steps = jnp.minimum(scope.steps, effort.max_iter)
    first = jnp.minimum(effort.newton_after, steps) if effort.newton else steps
    ends = refine(own, pixels, rows, first, steps - first, effort.newton)
    return _best(own, chunk, grid, rows, ends, starts.shape[:3], describe)


def _finalists(
    chunk: Chunk,
    start: Float[Array, "B M d"],
    bank: Bank | None,
    distance: Distance,
    scope: Scope,
    effort: Effort,
    grid: Grid,
) -> tuple[Float[Array, "B M F d"], Bool[Array, "B M F"]]:
    """Points from which to go on with all pixels, and which of them are worth it.

    Known λ always are: whatever the other stages say, no image ends worse than it began.
    """
    known = jnp.broadcast_to(scope.start, (*start.shape[:2], 1))
    known = known & (chunk.weights != 0)[:, None, None] & jnp.isfinite(start).all(2, keepdims=True)
    known_start = (start[:, :, None], known)
    if bank is None:
        return known_start

    def from_bank() -> tuple[Array, Array]:
        return _rivals(chunk, bank, effort)

    def nothing() -> tuple[Array, Array]:
        count = min(effort.n_candidates, bank.shape[2])
        count = min(effort.n_rivals, count) if effort.coarse_steps else count
        none = jnp.zeros((*start.shape[:2], count), bool)
        return jnp.zeros((*none.shape, start.shape[2]), start.dtype), none

    rivals = jax.lax.cond(scope.everywhere, from_bank, nothing)
    stride = 2 if min(grid.shape) >= LARGE_SIDE else 1
    if stride > 1 and effort.middle_steps:
        rivals = _middle(chunk, _joined(rivals, known_start), distance, effort, grid, stride)
        place = jnp.arange(rivals[1].shape[2], dtype=jnp.int32)[None, None]
        rivals = rivals[0], rivals[1] & (place < scope.finalists)
    return _joined(rivals, known_start)


def _joined(*parts: tuple[Array, Array]) -> tuple[Array, Array]:
    """Starts and whether they are wanted, put together."""
    lam, wanted = (jnp.concatenate(part, axis=2) for part in zip(*parts, strict=True))
    return lam, wanted


def _middle(
    chunk: Chunk,
    rivals: tuple[Array, Array],
    distance: Distance,
    effort: Effort,
    grid: Grid,
    stride: int,
) -> tuple[Float[Array, "B M F d"], Bool[Array, "B M F"]]:
    """Improve the rivals on part of the pixels; return the better ends."""
    index = np.arange(grid.n_pixels).reshape(grid.shape)
    some = index[stride // 2 :: stride, stride // 2 :: stride].ravel()
    terms = None if distance.terms is None else distance.terms.on(len(some) / grid.n_pixels)
    part = replace(distance, x=distance.x[some], y=distance.y[some], terms=terms)
    own = part if rivals[0].shape[1] > 1 else single(part)
    roots = None if chunk.roots is None else chunk.roots[:, some]
    pixels = _pixels(own, chunk.images[:, some], roots)
    ends = refine(own, pixels, make_rows(*rivals), effort.middle_steps)
    shape = rivals[1].shape
    share = effort.finalist_share * pixels.energies[:, None]
    share = share if effort.finalist_share else jnp.zeros((), ends.cost.dtype)
    return _best_apart(
        distance.transformation.parameters,
        ends.lam.reshape(*shape, -1),
        ends.cost.reshape(shape),
        (effort.finalist_ratio, share),
        effort.n_finalists,
    )


def _rivals(
    chunk: Chunk, bank: Bank, effort: Effort
) -> tuple[Float[Array, "B M R d"], Bool[Array, "B M R"]]:
    """Improve the best templates on blurred images; return the better ends."""
    n_patterns, n_shifts, n_nodes = bank.shape
    pooled, roots = pool(bank, chunk.images, chunk.roots)
    bytes_per_image = n_patterns * n_shifts * n_nodes * pooled.dtype.itemsize
    at_once = max(1, SCORED.get(jax.default_backend(), 2**24) // bytes_per_image)
    at_once = min(2 ** (at_once.bit_length() - 1), len(pooled))

    def choose(part: tuple[Array, Array | None]) -> Array:
        return choose_candidates(bank, *part, effort.n_candidates)

    if len(pooled) % at_once == 0 and at_once < len(pooled):
        split = jax.tree.map(lambda a: a.reshape(-1, at_once, a.shape[1]), (pooled, roots))
        candidates = jax.lax.map(choose, split)
        candidates = candidates.reshape(len(pooled), *candidates.shape[2:])
    else:
        candidates = choose((pooled, roots))
    if effort.coarse_steps == 0:
        return candidates, jnp.broadcast_to(
            (chunk.weights != 0)[:, None, None], candidates.shape[:3]
        )
    pixels = _pixels(bank.coarse, pooled, roots)
    coarse = bank.coarse if n_patterns > 1 else single(bank.coarse)
    wanted = jnp.broadcast_to((chunk.weights != 0)[:, None, None], candidates.shape[:3])
    ends = refine(coarse, pixels, make_rows(candidates, wanted), effort.coarse_steps)
    return _best_apart(
        coarse.transformation.parameters,
        ends.lam.reshape(candidates.shape),
        ends.cost.reshape(candidates.shape[:3]),
        (effort.rival_ratio, effort.rival_share * pixels.energies[:, None]),
        effort.n_rivals,
    )


def _best_apart(
    box: Box,
    lam: Float[Array, "B M C d"],
    cost: Float[Array, "B M C"],
    limit: tuple[float, Array],
    count: int,
) -> tuple[Float[Array, "B M R d"], Bool[Array, "B M R"]]:
    """Keep each image's best end, and others elsewhere that cost little more."""
    most = limit[0] * cost.min(axis=2) + limit[1]
    picked, least = _apart(box, lam, cost, count)
    return picked, jnp.isfinite(least) & (least <= most[:, :, None])


def _apart(
    box: Box, lam: Float[Array, "B M C d"], cost: Float[Array, "B M C"], count: int
) -> tuple[Float[Array, "B M R d"], Float[Array, "B M R"]]:
    """The best ends that are different poses, and their costs, infinite where there are no more."""

    def pick(open_cost: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        best = open_cost.argmin(axis=2)[..., None]
        least = jnp.take_along_axis(open_cost, best, axis=2)[..., 0]
        own = jnp.take_along_axis(lam, best[..., None], axis=2)
        closed = jnp.where(_same_pose(box, lam, own), jnp.inf, open_cost)
        return closed, (own[:, :, 0], least)

    _, (picked, least) = jax.lax.scan(pick, cost, length=min(count, cost.shape[2]))
    return jnp.moveaxis(picked, 0, 2), jnp.moveaxis(least, 0, 2)


def _same_pose(
    box: Box, lam: Float[Array, "B M C d"], other: Float[Array, "B M #C d"]
) -> Bool[Array, "B M C"]:
    """Tell points that are within `SAME_POSE` of others."""
    width = jnp.asarray(box.width, lam.dtype).reshape(1, 1, 1, -1)
    periodic = jnp.asarray(box.periodic).reshape(1, 1, 1, -1)
    gap = jnp.abs(lam - other) / width
    return jnp.where(periodic, jnp.minimum(gap, 1 - gap), gap).max(axis=3) <= SAME_POSE


def _best(
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
    best_ends: Ends = jax.tree.map(lambda a: a[place], ends)
    box = distance.transformation.parameters
    lam = box.put_inside(best_ends.lam)
    which = None if rows.pattern is None else rows.pattern[place]
    two, square = (n_images, n_patterns), jnp.maximum(best_ends.cost, 0)
    ends_of_images = lam.reshape(*two, -1), square.reshape(two)
    if not describe:
        return ends_of_images
    image = rows.image[place]
    images, roots = chunk.images[image], None if chunk.roots is None else chunk.roots[image]
    fit = distance.fit(images, roots, distance.values(lam, which), which)
    seen = distance.lighting.seen(images, roots)
    energies = distance.lighting.energies(images, roots)
    misfit = _misfit(fit.residual, energies, counted(chunk)[image], grid)
    modes, mode_squares = _modes(box, ends.lam.reshape(*shape, -1), ends.cost.reshape(shape))
    noise = noise_variance(square, counted(chunk)[image], box.dim, distance.lighting)
    n_modes = count_modes(mode_squares, noise.reshape(two), energies.reshape(two))
    return Found(
        *ends_of_images,
        status=_status(box, best_ends, seen, n_modes.reshape(-1)).reshape(two),
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
    picked, least = _apart(box, box.put_inside(lam), cost, MODES)
    picked = jnp.where(jnp.isfinite(least)[..., None], picked, jnp.nan)
    return filled_up(picked, jnp.nan), filled_up(jnp.maximum(least, 0), jnp.inf)


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


def _misfit(
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


def _pixels(distance: Distance, images: Array, roots: Array | None) -> Pixels:
    return Pixels(images, roots, distance.lighting.energies(images, roots))
