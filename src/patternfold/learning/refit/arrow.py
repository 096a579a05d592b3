"""The normal equations of E over a chunk, an arrow: blocks of each image's λ and one of the atoms.

These are the compiled stages of the correction. The derivatives of all pixels exist some images at
a time; their inner products stay on the device.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk, counted
from patternfold.learning.distance import Distance
from patternfold.learning.lighting import Fit
from patternfold.model.atoms import evaluate_field
from patternfold.model.manifold import tangent_vectors, warped_pixels
from patternfold.numerics.compilation import compiled

DERIVATIVE_BYTES = {"cpu": 2**23, "gpu": 2**29, "tpu": 2**29}
"""Size of the derivatives by all atoms' parameters that exist at a time. They are gone over several
times: on a CPU they should stay in the cache."""


class Assembled(NamedTuple):
    """Normal equations of E over a chunk, which stay on the device.

    ``own`` holds inner products of the d tangents and the residual of each image, ``cross`` those
    of the atoms' derivatives with them; ``atoms`` those of the derivatives with one another,
    ``slope`` those with the residuals and ``cost`` those of the residuals, summed over images.
    """

    cost: Float[Array, ""]
    atoms: Float[Array, "m m"]
    slope: Float[Array, " m"]
    cross: Float[Array, "B m e"]
    own: Float[Array, "B e e"]


@compiled
def assemble(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Assembled:
    """Normal equations of a chunk, some images at a time."""
    n_images, n_pixels = chunk.images.shape
    atoms, distance = distance.atoms, distance.with_reference()
    size = atoms.gamma.shape[1] + 1
    per_image = len(atoms.coef) * size * n_pixels * chunk.images.dtype.itemsize
    most = max(1, DERIVATIVE_BYTES.get(jax.default_backend(), 2**23) // per_image)
    at_once = min(2 ** (most.bit_length() - 1), n_images)
    while n_images % at_once:  # chunks have 2^k or 3·2^k rows
        at_once //= 2

    def add(total: Array, part: tuple[Chunk, Array]) -> tuple[Array, tuple[Array, ...]]:
        products, *rows = _products(*part, distance)
        return total + products, tuple(rows)

    split = jax.tree.map(
        lambda a: a.reshape(n_images // at_once, at_once, *a.shape[1:]), (chunk, lam)
    )
    m = len(atoms.coef) * size
    total, rows = jax.lax.scan(add, jnp.zeros((m, m), lam.dtype), split)
    cross, own, *cost = (part.reshape(n_images, *part.shape[2:]) for part in rows)
    whole = cost[0].sum() if cost else own[:, -1, -1].sum()
    return Assembled(whole, total, cross[:, :, -1].sum(axis=0), cross, own)


def _products(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> tuple[Array, ...]:
    """Inner products of the images' derivatives by atoms and by λ, and of the residuals.

    All are multiplied by √|w|: weights of either sign are told apart where sums are used. What an
    image's own gain and offset make up for is taken out of them. With a loss or a prior the last
    result is the cost of each image.
    """
    atoms, transformation, x, y = distance.atoms, distance.transformation, distance.x, distance.y
    warped = warped_pixels(transformation, lam, x, y)
    value, *slopes = evaluate_field(atoms, *warped)
    fit = distance.fit(chunk.images, chunk.roots, value)
    weights, cost, prior = _under_terms(chunk, lam, distance, fit)
    weight, scale = jnp.sqrt(weights)[:, None], fit.scale(chunk.roots)
    root = weight if scale is None else weight * scale

    def by_parameter(c: Any, g: Any) -> list[Float[Array, "B n"]]:
        phi, by_gamma = atoms.family.derivatives(g, *warped)
        return [*(c * root * part for part in by_gamma), root * phi]

    # Each parameter's images are computed before they are put together: fused into the
    # concatenation they take ten times as long on a CPU.
    columns = jax.lax.optimization_barrier(jax.vmap(by_parameter)(atoms.coef, atoms.gamma))
    of_atoms = jax.lax.optimization_barrier(jnp.concatenate(columns))
    vectors = tangent_vectors(transformation, lam, x, y, *(root * slope for slope in slopes))
    if distance.lighting:
        vectors = fit.without(vectors)
        of_atoms = jnp.moveaxis(fit.without(jnp.moveaxis(of_atoms, 0, 1)), 1, 0)
    own = jnp.concatenate([vectors, (weight * fit.residual)[:, None]], axis=1)
    flat = of_atoms.reshape(len(of_atoms), -1)
    products = jnp.einsum("ien,ifn->ief", own, own)
    products = products if prior is None else products + prior
    return (flat @ flat.T, jnp.einsum("min,ien->ime", of_atoms, own), products, *cost)


def _under_terms(
    chunk: Chunk, lam: Float[Array, "B d"], distance: Distance, fit: Fit
) -> tuple[Float[Array, " B"], tuple[Array, ...], Float[Array, "B e e"] | None]:
    """Weights of the images, their costs, and what a prior adds to the products in λ."""
    weights, terms = jnp.abs(chunk.weights), distance.terms
    if terms is None:
        return weights, (), None
    penalty = None if terms.penalty is None else terms.penalty(lam)
    costs = fit.cost if penalty is None else fit.cost + penalty[0]
    costs, shares = terms.of_images(costs, counted(chunk))
    shared = weights * shares
    if penalty is None:
        return shared, (weights * costs,), None
    _, slope, curvature = penalty
    metric = curvature[:, :, None] * jnp.eye(lam.shape[1], dtype=lam.dtype)[None]
    upper = jnp.concatenate([metric, slope[:, :, None]], axis=2)
    lower = jnp.pad(slope, ((0, 0), (0, 1)))[:, None]
    return shared, (weights * costs,), shared[:, None, None] * jnp.concatenate([upper, lower], 1)


@partial(compiled, small=True)
def added(one: Assembled, other: Assembled) -> Assembled:
    """The equations of the images at more pixels."""
    return jax.tree.map(jnp.add, one, other)


@compiled
def without_tangents(assembled: Assembled, free: Float[Array, " B"]) -> Assembled:
    """The equations of images that are not free as if no λ changed them: theirs then stays."""
    dim = assembled.own.shape[1] - 1
    factor = jnp.ones((len(free), dim + 1), free.dtype).at[:, :dim].set(free[:, None])
    cross = assembled.cross * factor[:, None, :]
    own = assembled.own * factor[:, None, :] * factor[:, :, None]
    return assembled._replace(cross=cross, own=own)


@compiled
def reweighted_chunk(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Chunk:
    """The chunk with pixels and images weighing as the loss says at the residuals."""
    fit = distance.fit(chunk.images, chunk.roots, distance.values(lam))
    weights, terms = chunk.weights, distance.terms
    assert terms is not None
    costs = fit.cost if terms.penalty is None else fit.cost + terms.penalty(lam)[0]
    return Chunk(chunk.images, weights * terms.of_images(costs, counted(chunk))[1], fit.roots)


@partial(compiled, hot=True)
def cost_of(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Float[Array, ""]:
    """Σ |w_i| ‖u_i − U_λi(p)‖²."""
    squares = distance.squares(chunk.images, chunk.roots, lam)
    if distance.terms is not None:
        squares, _ = distance.terms.of_images(squares, counted(chunk))
    return (jnp.abs(chunk.weights) * squares).sum()


@partial(compiled, hot=True)
def squares_of(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Float[Array, " B"]:
    """‖u_i − U_λi(p)‖² of a chunk."""
    return distance.squares(chunk.images, chunk.roots, lam)
