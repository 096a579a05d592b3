"""The local stage's sums over pixels and atoms as one kernel for GPUs.

XLA writes p, p_x and p_y of every row to memory and reads them again for each product; this kernel
keeps them in registers. It returns 25 sums per row, from which cost, slope and metric follow for
any affine family, and leaves out rows that are done. An image is read once per step, a few bytes
for hundreds of operations: keeping it on the chip between steps would gain nothing.

Written in Pallas for its Triton backend, which comes with JAX: no compiler has to be there. Where
that backend is missing, or a case is not covered, XLA does the work.
"""

from __future__ import annotations

import os
from functools import cache, partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.distance import Distance
from patternfold.learning.lighting import PLAIN
from patternfold.model.atoms import Atoms
from patternfold.model.mothers import AbstractRadialMother
from patternfold.model.transformations import AbstractAffineTransformation
from patternfold.numerics.least_squares import Model

SWITCH = "PATTERNFOLD_FUSED"
"""Environment variable: "off" leaves the work to XLA; "interpret" runs the kernel's steps in plain
JAX, for tests where there is no GPU."""

PIXELS, WARPS = 64, 1
"""Pixels that a row works on at a time, and groups of 32 threads that do it: their sums fit into
registers, and one group waits for no other. Best of nine pairs that were timed on an H200."""

ATOMS = 4
"""Atoms per turn of the loop, whose numbers are loaded together. Sums are padded to more atoms."""

N_SUMS = 25
"""Of a row: ‖w‖², ∇p·w times (x, y, 1), and p_x², p_x p_y, p_y² times products of (x, y, 1)."""

PLACE = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
"""Where the product of two of (x, y, 1) stands among xx, xy, x, yy, y, 1."""


def is_covered(distance: Distance, roots: Any, dtype: Any) -> bool:
    """Tell whether the kernel does what this distance asks for, on this device."""
    if not isinstance(distance.atoms, Atoms):  # a mixture compares with pictures
        return False
    atoms, terms = distance.atoms.family, distance.terms
    device = jax.default_backend() == "gpu" or _interpreted()
    plain = distance.lighting == PLAIN and roots is None and (terms is None or terms.loss is None)
    return (
        device
        and os.environ.get(SWITCH) != "off"
        and _pallas() is not None
        and plain
        and dtype == jnp.float32
        and isinstance(distance.transformation, AbstractAffineTransformation)
        and isinstance(atoms.mother, AbstractRadialMother)
        and atoms.mother.is_elementary
        and _maps(distance) is not None
    )


def first_order(
    distance: Distance,
    images: Float[Array, "B n"],
    image: Int[Array, " R"],
    which: Int[Array, " R"] | None,
    lam: Float[Array, "R d"],
    asked: Bool[Array, " R"],
) -> Model:
    """‖w‖² with w = u − U_λ(p), Tᵀw and TᵀT of the rows asked for; of others, anything."""
    family = distance.transformation
    assert isinstance(family, AbstractAffineTransformation)
    matrices = jax.vmap(family.matrix)(lam).reshape(-1, 6)
    mother, several = distance.atoms.family.mother, distance.atoms.coef.ndim == 2
    assert isinstance(mother, AbstractRadialMother)
    which = jnp.zeros(len(lam), jnp.int32) if which is None else which
    coef, maps = jnp.asarray(distance.atoms.coef), _maps(distance)
    atoms = (coef, maps) if several else (coef[None], maps[None])
    sums = _call(
        mother,
        jnp.asarray(distance.atoms.count).reshape(1),
        jnp.stack([image.astype(jnp.int32), which.astype(jnp.int32), asked.astype(jnp.int32)], 1),
        matrices,
        *atoms,
        jnp.asarray(distance.x),
        jnp.asarray(distance.y),
        images,
    )
    xx, xy, yy = (sums[:, k : k + 6][:, jnp.asarray(PLACE)] for k in (7, 13, 19))
    metric = jnp.concatenate(
        [jnp.concatenate([xx, xy], axis=2), jnp.concatenate([xy, yy], axis=2)], axis=1
    )
    metric, slope = jax.vmap(family.products_from_moments)(lam, metric, sums[:, 1:7])
    model = Model(sums[:, 0], slope, metric)
    terms = distance.terms_of(which if several else None)
    return model if terms is None else terms.with_penalty(model, lam)


def _maps(distance: Distance) -> Any:
    """u = B x' + b of every atom as rows (B_11, B_12, b_1, B_21, B_22, b_2), or None."""
    gamma = jnp.asarray(distance.atoms.gamma)
    dictionary = distance.atoms.family.dictionary
    if dictionary.centred(gamma.reshape(-1, gamma.shape[-1])[0]) is None:
        return None
    centred = jnp.vectorize(dictionary.centred, signature="(s)->(t)")(gamma)
    a, b, c, d, x, y = jnp.moveaxis(centred, -1, 0)
    return jnp.stack([a, b, -(a * x + b * y), c, d, -(c * x + d * y)], axis=-1)


@cache
def _pallas() -> tuple[Any, Any] | None:
    """Pallas and its Triton backend, imported when first used, or None in a JAX without them."""
    try:
        return import_module("jax.experimental.pallas"), import_module(
            "jax.experimental.pallas.triton"
        )
    except ImportError:
        return None


def _interpreted() -> bool:
    return os.environ.get(SWITCH) == "interpret"


def _call(mother: AbstractRadialMother, count: Array, rows: Array, *arrays: Array) -> Array:
    """Run the kernel, one program for each row."""
    modules, images = _pallas(), arrays[-1]
    assert modules is not None
    pl, plgpu = modules
    kernel = partial(_row_sums, modules=modules, mother=mother, n_pixels=images.shape[1])
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((len(rows), N_SUMS), images.dtype),
        grid=(len(rows),),
        compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=1),
        interpret=_interpreted(),
        name="first_order",
    )(count, rows, *arrays)


def _row_sums(
    count: Any,
    rows: Any,
    matrices: Any,
    coef: Any,
    maps: Any,
    x: Any,
    y: Any,
    images: Any,
    out: Any,
    *,
    modules: tuple[Any, Any],
    mother: AbstractRadialMother,
    n_pixels: int,
) -> None:
    """Write the sums of one row."""
    pl, plgpu = modules
    row = pl.program_id(0)
    image, pattern = rows[row, 0], rows[row, 1]

    def field(x: Array, y: Array) -> tuple[Array, Array, Array]:
        """p, p_x' and p_y' at some pixels."""
        m = [matrices[row, k] for k in range(6)]
        across, down = m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]

        def add(j: Any, total: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            b, c = [maps[pattern, j, k] for k in range(6)], coef[pattern, j]
            u, v = b[0] * across + b[1] * down + b[2], b[3] * across + b[4] * down + b[5]
            value, slope = mother.profile(u * u + v * v)
            p, px, py = total
            along = (2 * c) * slope
            return (
                p + c * value,
                px + along * (b[0] * u + b[3] * v),
                py + along * (b[1] * u + b[4] * v),
            )

        def turn(i: Any, total: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            for k in range(ATOMS):
                total = add(i * ATOMS + k, total)
            return total

        zero, n_turns = jnp.zeros_like(x), (count[0] + ATOMS - 1) // ATOMS
        return jax.lax.fori_loop(0, n_turns, turn, (zero, zero, zero))

    def some_pixels(block: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        begin = block * PIXELS
        inside = begin + jnp.arange(PIXELS) < n_pixels

        def load(ref: Any) -> Array:
            return plgpu.load(ref, mask=inside, other=0.0)

        span = pl.ds(begin, PIXELS)
        here = load(x.at[span]), load(y.at[span])
        p, px, py = field(*here)
        w = jnp.where(inside, load(images.at[image, span]) - p, 0)
        px, py = jnp.where(inside, px, 0), jnp.where(inside, py, 0)
        return tuple(s + q for s, q in zip(sums, _products(*here, px, py, w), strict=True))

    @pl.when(rows[row, 2] != 0)
    def _() -> None:
        # Each pixel of a block has sums of its own: adding them up takes time, and is done once.
        zero, n_blocks = jnp.zeros(PIXELS, images.dtype), -(-n_pixels // PIXELS)
        sums = jax.lax.fori_loop(0, n_blocks, some_pixels, (zero,) * N_SUMS)
        for k, value in enumerate(sums):
            out[row, k] = value.sum()


def _products(x: Array, y: Array, px: Array, py: Array, w: Array) -> list[Array]:
    """What the 25 sums are made of, in the order of `N_SUMS`."""
    along = [part for slope in (px * w, py * w) for part in (x * slope, y * slope, slope)]
    second = []
    for square in (px * px, px * py, py * py):
        by_x, by_y = x * square, y * square
        second += [x * by_x, x * by_y, by_x, y * by_y, by_y, square]
    return [w * w, *along, *second]
