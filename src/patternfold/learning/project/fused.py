"""The local stage's sums over pixels and atoms as one kernel for GPUs.

XLA writes p, p_x and p_y of every row to memory and reads them again for each product; this kernel
keeps them in registers. It returns 25 sums per row, from which cost, slope and metric follow for
any affine family, and leaves out rows that are done. An image is read once per step, a few bytes
for hundreds of operations: keeping it on the chip between steps would gain nothing. Weights of
pixels and a loss make the sums weighted ones, a factor more at every pixel.

Written in Pallas for its Triton backend, which comes with JAX: no compiler has to be there. Where
that backend is missing, or a case is not covered, XLA does the work.
"""

from __future__ import annotations

import os
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.distance import Distance
from patternfold.learning.lighting import PLAIN
from patternfold.model.atoms import Atoms
from patternfold.model.losses import AbstractLoss
from patternfold.model.mothers import AbstractRadialMother
from patternfold.model.transformations import AbstractAffineTransformation
from patternfold.model.transformations.base import MOMENTS
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
"""Of a row: the cost, ∇p·w times (x, y, 1), and p_x², p_x p_y, p_y² times products of (x, y, 1)."""


class Inputs(NamedTuple):
    """What the kernel reads; None where pixels have no weights, or squares are the loss.

    ``rows`` are the index of the image and of the pattern, and whether the row is asked for.
    """

    count: Any  # (1,)
    rows: Any  # (R, 3)
    matrices: Any  # (R, 6)
    coef: Any  # (M, K)
    maps: Any  # (M, K, 6)
    x: Any  # (n,)
    y: Any  # (n,)
    images: Any  # (B, n)
    roots: Any = None  # (B, n)
    scales: Any = None  # (M,)


def is_covered(distance: Distance, dtype: Any) -> bool:
    """Tell whether the kernel does what this distance asks for, on this device."""
    if not isinstance(distance.atoms, Atoms):  # a mixture compares with pictures
        return False
    atoms, loss = distance.atoms.family, _loss(distance)
    device = jax.default_backend() == "gpu" or _interpreted()
    return (
        device
        and os.environ.get(SWITCH) != "off"
        and _pallas() is not None
        and distance.lighting == PLAIN
        and dtype == jnp.float32
        # Arrays of a loss would have to be handed over.
        and (loss is None or (loss.is_elementary and not jax.tree.leaves(loss)))
        and isinstance(distance.transformation, AbstractAffineTransformation)
        and isinstance(atoms.mother, AbstractRadialMother)
        and atoms.mother.is_elementary
        and _maps(distance) is not None
    )


def first_order(
    distance: Distance,
    images: Float[Array, "B n"],
    roots: Float[Array, "B n"] | None,
    image: Int[Array, " R"],
    which: Int[Array, " R"] | None,
    lam: Float[Array, "R d"],
    asked: Bool[Array, " R"],
) -> Model:
    """The cost of w = u − U_λ(p), Tᵀw and TᵀT of the rows asked for; of others, anything."""
    family = distance.transformation
    assert isinstance(family, AbstractAffineTransformation)
    matrices = jax.vmap(family.matrix)(lam).reshape(-1, 6)
    mother, several = distance.atoms.family.mother, distance.atoms.coef.ndim == 2
    assert isinstance(mother, AbstractRadialMother)
    which = jnp.zeros(len(lam), jnp.int32) if which is None else which
    coef, maps = jnp.asarray(distance.atoms.coef), _maps(distance)
    terms, loss = distance.terms, _loss(distance)
    inputs = Inputs(
        jnp.asarray(distance.atoms.count).reshape(1),
        jnp.stack([part.astype(jnp.int32) for part in (image, which, asked)], axis=1),
        matrices,
        *((coef, maps) if several else (coef[None], maps[None])),
        jnp.asarray(distance.x),
        jnp.asarray(distance.y),
        images,
        roots,
        None if terms is None or loss is None else jnp.asarray(terms.scale).reshape(-1),
    )
    sums = _call(mother, loss, inputs)
    along_w, metric = sums[:, 1:7], sums[:, 7:][:, MOMENTS]
    metric, slope = jax.vmap(family.products_from_moments)(lam, metric, along_w)
    model = Model(sums[:, 0], slope, metric)
    terms = distance.terms_of(which if several else None)
    return model if terms is None else terms.with_penalty(model, lam)


def _loss(distance: Distance) -> AbstractLoss | None:
    return None if distance.terms is None else distance.terms.loss


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


def _call(mother: AbstractRadialMother, loss: AbstractLoss | None, inputs: Inputs) -> Array:
    """Run the kernel, one program for each row."""
    modules, n_rows = _pallas(), len(inputs.rows)
    assert modules is not None
    pl, plgpu = modules
    return pl.pallas_call(
        partial(_row_sums, modules=modules, mother=mother, loss=loss),
        out_shape=jax.ShapeDtypeStruct((n_rows, N_SUMS), inputs.images.dtype),
        grid=(n_rows,),
        compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=1),
        interpret=_interpreted(),
        name="first_order",
    )(inputs)


def _row_sums(
    of: Inputs,
    out: Any,
    *,
    modules: tuple[Any, Any],
    mother: AbstractRadialMother,
    loss: AbstractLoss | None,
) -> None:
    """Write the sums of one row."""
    pl, plgpu = modules
    row, n_pixels = pl.program_id(0), of.images.shape[1]
    image, pattern = of.rows[row, 0], of.rows[row, 1]

    def field(x: Array, y: Array) -> tuple[Array, Array, Array]:
        """p, p_x' and p_y' at some pixels."""
        m = [of.matrices[row, k] for k in range(6)]
        across, down = m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]

        def add(j: Any, total: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            b, c = [of.maps[pattern, j, k] for k in range(6)], of.coef[pattern, j]
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

        zero, n_turns = jnp.zeros_like(x), (of.count[0] + ATOMS - 1) // ATOMS
        return jax.lax.fori_loop(0, n_turns, turn, (zero, zero, zero))

    def some_pixels(block: Any, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        begin = block * PIXELS
        inside, span = begin + jnp.arange(PIXELS) < n_pixels, pl.ds(begin, PIXELS)

        def load(ref: Any) -> Array:
            return plgpu.load(ref, mask=inside, other=0.0)

        x, y = load(of.x.at[span]), load(of.y.at[span])
        p, px, py = field(x, y)
        w = jnp.where(inside, load(of.images.at[image, span]) - p, 0)
        px, py = jnp.where(inside, px, 0), jnp.where(inside, py, 0)
        root = None if of.roots is None else load(of.roots.at[image, span])
        scale = None if of.scales is None else of.scales[pattern]
        products = _products(x, y, px, py, w, *_weighed(w, root, loss, scale))
        return tuple(s + q for s, q in zip(sums, products, strict=True))

    @pl.when(of.rows[row, 2] != 0)
    def _() -> None:
        # Each pixel of a block has sums of its own: adding them up takes time, and is done once.
        zero, n_blocks = jnp.zeros(PIXELS, of.images.dtype), -(-n_pixels // PIXELS)
        sums = jax.lax.fori_loop(0, n_blocks, some_pixels, (zero,) * N_SUMS)
        for k, value in enumerate(sums):
            out[row, k] = value.sum()


def _weighed(
    w: Array, root: Array | None, loss: AbstractLoss | None, scale: Array | None
) -> tuple[Array, Array | None]:
    """What residuals cost, and the weights of their pixels, None for 1."""
    cost, weight = w * w, None
    if loss is not None and scale is not None:
        ratio = w * (1 / scale)  # one quotient for all pixels
        cost, weight = loss.pixels(ratio * ratio)
        cost = (scale * scale) * cost
    if root is not None:
        own = root * root
        cost, weight = own * cost, own if weight is None else own * weight
    return cost, weight


def _products(
    x: Array, y: Array, px: Array, py: Array, w: Array, cost: Array, weight: Array | None
) -> list[Array]:
    """What the 25 sums are made of, in the order of `N_SUMS`."""
    heavy_x, heavy_y = (px, py) if weight is None else (weight * px, weight * py)
    along = [part for slope in (heavy_x * w, heavy_y * w) for part in (x * slope, y * slope, slope)]
    second = []
    for square in (heavy_x * px, heavy_x * py, heavy_y * py):
        by_x, by_y = x * square, y * square
        second += [x * by_x, x * by_y, by_x, y * by_y, by_y, square]
    return [cost, *along, *second]
