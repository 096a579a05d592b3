"""Local stage of the projection: batched Levenberg-Marquardt on the analytic tangents.

Minimises ‖u − U_λ(p)‖² over the box Λ for many rows, pairs of an image and a start, at once. Rows
are worked on in blocks: a block ends when its rows are done. Images near the manifold take about
four steps; what is not done then has a large residual, and goes on with the full Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.distance import Distance
from patternfold.learning.project import fused
from patternfold.numerics.least_squares import Descent, Model, minimise

BLOCK_BYTES = {"cpu": 2**19, "gpu": 2**26, "tpu": 2**26}
"""Size of one array of a block: on a CPU, the dozen that a pass over the atoms works on stay in the
cache; on an accelerator, they fill it."""


class Rows(NamedTuple):
    """What a row asks for: the index of its image, of its pattern, λ, and whether it is asked."""

    image: Int[Array, " R"]
    pattern: Int[Array, " R"] | None
    lam: Float[Array, "R d"]
    wanted: Bool[Array, " R"]


class Ends(NamedTuple):
    """Where rows ended; ``metric`` is TᵀT there."""

    lam: Float[Array, "R d"]
    cost: Float[Array, " R"]
    metric: Float[Array, "R d d"]
    damping: Float[Array, " R"]
    done: Bool[Array, " R"]


class Pixels(NamedTuple):
    """Images, the square roots of their pixels' weights or None, and their energies."""

    images: Float[Array, "B n"]
    roots: Float[Array, "B n"] | None
    energies: Float[Array, " B"]


def make_rows(starts: Float[Array, "B M R d"], wanted: Bool[Array, "B M R"]) -> Rows:
    """One row for every start of every image and pattern."""
    n_images, n_patterns, count, dim = starts.shape
    image = jnp.repeat(jnp.arange(n_images), n_patterns * count)
    pattern = jnp.tile(jnp.repeat(jnp.arange(n_patterns), count), n_images)
    lam = starts.reshape(-1, dim)
    return Rows(image, pattern if n_patterns > 1 else None, lam, wanted.reshape(-1))


def single(distance: Distance) -> Distance:
    """The distance to the only pattern, its atoms without their leading axis."""
    terms = None if distance.terms is None else distance.terms.of(0)
    return replace(distance, atoms=distance.atoms.of(0), terms=terms)


def refine(
    distance: Distance,
    pixels: Pixels,
    rows: Rows,
    first_steps: int | Array,
    newton_steps: int | Array = 0,
    newton: bool = False,
) -> Ends:
    """Improve λ of the wanted rows; the others come back as they are, at infinite cost.

    ``newton`` says whether second derivatives are compiled in: ``newton_steps`` more steps are then
    taken with them by the rows that are not done.
    """
    box, distance = distance.transformation.parameters, distance.with_reference()
    dtype = rows.lam.dtype
    # Rounding of the cost itself is no progress to wait for.
    rounding = 10 * float(jnp.finfo(dtype).eps) ** 1.5 * pixels.energies

    def descend(model: Callable[..., Model], rows: Rows, damping: Array | None, steps: Any) -> Ends:
        images = pixels.images[rows.image]
        roots = None if pixels.roots is None else pixels.roots[rows.image]

        def model_at(lam: Float[Array, "r d"]) -> Model:
            return model(images, roots, lam, rows.pattern)

        like = Model.blank(rows.lam, hessian=damping is not None)
        least = rounding[rows.image]
        return _ends(minimise(model_at, rows.lam, box, steps, least, damping=damping, like=like))

    def first_order(rows: Rows) -> Ends:
        return descend(distance.first_order, rows, None, first_steps)

    if fused.is_covered(distance, dtype):
        ends = _fused(distance, pixels, rows, first_steps, rounding)
    else:
        ends = over_blocks(first_order, rows, rows.wanted, len(distance.x))
    if not newton:
        return ends

    def second_order(pair: tuple[Rows, Ends]) -> Ends:
        rows, ends = pair
        return descend(distance.second_order, rows, ends.damping, newton_steps)

    unfinished = rows.wanted & ~ends.done
    again = (rows._replace(lam=ends.lam), ends)
    return over_blocks(second_order, again, unfinished, len(distance.x), ends)


def _fused(
    distance: Distance,
    pixels: Pixels,
    rows: Rows,
    steps: int | Array,
    rounding: Float[Array, " B"],
) -> Ends:
    """All rows at once, by the kernel: nothing of the size of their pixels exists."""

    def model_at(lam: Float[Array, "R d"], asked: Bool[Array, " R"]) -> Model:
        where = (pixels.images, pixels.roots, rows.image, rows.pattern)
        return fused.first_order(distance, *where, lam, asked)

    box, like = distance.transformation.parameters, Model.blank(rows.lam)
    least = rounding[rows.image]
    end = minimise(model_at, rows.lam, box, steps, least, like=like, wanted=rows.wanted)
    return _ends(end)


def _unreached(lam: Float[Array, "R d"]) -> Ends:
    """Ends that no search has reached."""
    zero = jnp.zeros_like(lam)
    cost, never = jnp.full_like(lam[:, 0], jnp.inf), jnp.zeros(len(lam), bool)
    return Ends(zero, cost, zero[:, :, None] * zero[:, None], zero[:, 0], never)


def _ends(end: Descent) -> Ends:
    return Ends(end.point, end.model.cost, end.model.metric, end.damping, end.done)


def over_blocks(
    function: Callable[[Any], Ends],
    rows: Any,
    wanted: Bool[Array, " R"],
    n_pixels: int,
    otherwise: Ends | None = None,
) -> Ends:
    """Apply ``function`` to blocks of the wanted rows; the others keep what they have.

    By default that is nothing, at infinite cost.
    """
    n_rows = len(wanted)
    size = min(block_rows(n_pixels), n_rows)
    n_blocks = -(-n_rows // size)
    order = jnp.argsort(~wanted, stable=True)
    # Rows past the end fall away when results are put back.
    order = jnp.concatenate([order, jnp.full(n_blocks * size - n_rows, n_rows, order.dtype)])
    if otherwise is None:
        otherwise = _unreached(rows.lam)

    def block(i: Array, out: Ends) -> Ends:
        index = jax.lax.dynamic_slice_in_dim(order, i * size, size)
        part = jax.tree.map(lambda a: a.at[index].get(mode="clip"), rows)
        ends = function(part)
        # A block may reach into rows that are not wanted: they keep what they have.
        asked = wanted.at[index].get(mode="fill", fill_value=False)
        place = jnp.where(asked, index, n_rows)
        return jax.tree.map(lambda o, e: o.at[place].set(e, mode="drop"), out, ends)

    n_wanted = (wanted.sum() + size - 1) // size
    return jax.lax.fori_loop(0, n_wanted, block, otherwise)


def block_rows(n_pixels: int, itemsize: int = 4) -> int:
    """Rows per block, a power of two."""
    fitting = max(1, BLOCK_BYTES.get(jax.default_backend(), 2**19) // (n_pixels * itemsize))
    return 2 ** (fitting.bit_length() - 1)
