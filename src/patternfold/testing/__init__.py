"""Laws that every component must keep, ours or a user's.

Each check returns nothing and raises an ``AssertionError`` that names the law and by how much
it is broken. Run them on a component of your own before learning with it:

>>> from patternfold import Box, CustomTransformation
>>> def shear(lam, x, y):
...     return x - lam[0] * y, y
>>> check_transformation(CustomTransformation(shear, Box(["k"], [-1.0], [1.0]), identity=[0.0]))
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary, as_dictionary
from patternfold.model.manifold import render, tangents
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import (
    AbstractAffineTransformation,
    AbstractTransformation,
)
from patternfold.testing.component_laws import (
    check_affine,
    check_blur,
    check_centred,
    check_ellipses,
    check_frames,
    check_options,
    check_positions,
    check_shapes,
)
from patternfold.testing.dc_laws import check_dc
from patternfold.testing.laws import Laws, Map, sample_interior, spatial_jacobian
from patternfold.testing.loss_laws import check_loss

__all__ = [
    "check_dc",
    "check_dictionary",
    "check_loss",
    "check_mother",
    "check_pattern_operator",
    "check_transformation",
]


def check_transformation(
    transformation: AbstractTransformation, dtype: Any = np.float64, seed: int = 0
) -> None:
    """Check the laws of a transformation family a(λ, x, y) at some λ of its box.

    The identity lies in the box and maps (x, y) to itself; points are mapped one by one, in
    their own dtype; ``derivatives`` are the derivatives of the map and ``tangent_products`` those
    of the tangents made of them; the map is a bijection, undone by ``inverse_coordinates``, where
    there is one; periodic parameters are periodic; parameters named in ``translation`` shift the
    image; a map that says it is affine is; groups compose and invert. Its ``options`` make it
    again.

    Parameters
    ----------
    transformation : transformation
        The family.
    dtype : dtype, default=float64
        Precision in which the laws must hold.
    seed : int, default=0
        Seed of the random λ and points.
    """
    box, coordinates = transformation.parameters, transformation.coordinates
    laws = Laws(transformation, coordinates, box, dtype, seed)

    def derivatives(lam: jax.Array, x: jax.Array, y: jax.Array) -> list[jax.Array]:
        return [jnp.moveaxis(d, 0, -1) for d in transformation.derivatives(lam, x, y)]

    _check_identity(laws, transformation)
    laws.pointwise()
    slopes = laws.evaluate(derivatives)
    laws.derivatives("derivatives", derivatives, slopes)
    _check_tangent_products(laws, transformation, slopes)
    laws.bijective(laws.evaluate(spatial_jacobian(coordinates)))
    _check_inverse_map(laws, transformation)
    laws.periodic()
    _check_translation(laws, transformation)
    check_affine(laws, transformation)
    check_options(laws, transformation)
    if isinstance(transformation, AbstractAffineTransformation) and transformation.is_group:
        _check_group(laws, transformation)


def check_mother(mother: AbstractMother, dtype: Any = np.float64, seed: int = 0) -> None:
    """Check the laws of a mother function φ.

    Points are mapped one by one, in their own dtype; ``field`` returns φ and its gradient,
    smooth also at the origin, ``field_through`` the same by the chain rule; φ is finite
    everywhere and decays far away; one that says it is radial is. Its ``options`` make it again.

    Parameters
    ----------
    mother : mother function
        φ.
    dtype : dtype, default=float64
        Precision in which the laws must hold.
    seed : int, default=0
        Seed of the random points.
    """

    # As a family of maps: φ seen from (a, b), whose derivatives in (a, b) are its gradient.
    def phi(origin: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return mother(x + origin[0], y + origin[1])

    def field(origin: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return mother.field(x + origin[0], y + origin[1])

    def gradient(origin: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.stack(field(origin, x, y)[1:], axis=-1)

    laws = Laws(mother, phi, Box(["x", "y"], [-0.5, -0.5], [0.5, 0.5]), dtype, seed)
    laws.pointwise()
    fields = laws.evaluate(field)
    laws.close("field returns φ first", fields[:, :1], laws.values)
    slopes = np.moveaxis(fields[:, None, 1:], 2, -1)
    laws.derivatives("slopes in field", gradient, slopes)
    _check_chain_rule(laws, mother, fields[0])  # the first origin is (0, 0)
    _check_decay(laws, field)
    if mother.is_radial:
        _check_radial(laws, mother)
    check_options(laws, mother)


def check_dictionary(
    dictionary: AbstractDictionary, dtype: Any = np.float64, seed: int = 0
) -> None:
    """Check the laws of a dictionary b(γ, x, y) at some γ of its box.

    Points are mapped one by one, in their own dtype; ``derivatives`` and ``jacobian`` are the
    derivatives of the map in γ and in (x, y); it is a bijection; periodic parameters are
    periodic. What the dictionary knows beyond that is true: ``positions`` shift the atom,
    ``shapes`` lie at the origin, ``centred`` is the map, ``ellipses`` where ‖b‖ = 1, ``in_frame``
    gives the atoms of p(D x + g), and ``blurred`` those convolved with a Gaussian. Its ``options``
    make it again.

    Parameters
    ----------
    dictionary : dictionary
        The family.
    dtype : dtype, default=float64
        Precision in which the laws must hold.
    seed : int, default=0
        Seed of the random γ and points.
    """
    laws = Laws(dictionary, dictionary.coordinates, dictionary.parameters, dtype, seed)

    def derivatives(gamma: jax.Array, x: jax.Array, y: jax.Array) -> list[jax.Array]:
        return [jnp.stack(d, axis=-1) for d in dictionary.derivatives(gamma, x, y)]

    def jacobian(gamma: jax.Array, x: jax.Array, y: jax.Array) -> list[jax.Array]:
        rows = dictionary.jacobian(gamma, x, y)
        return [jnp.broadcast_to(entry, x.shape) for row in rows for entry in row]

    laws.pointwise()
    laws.derivatives("derivatives", derivatives, laws.evaluate(derivatives))
    differentiated = laws.evaluate(spatial_jacobian(dictionary.coordinates))
    laws.close("jacobian is that of coordinates", laws.evaluate(jacobian), differentiated)
    laws.bijective(differentiated)
    laws.periodic()
    check_affine(laws, dictionary)
    known = (check_positions, check_shapes, check_centred, check_ellipses, check_frames, check_blur)
    for check in known:
        check(laws, dictionary)
    check_options(laws, dictionary)


def check_pattern_operator(
    transformation: AbstractTransformation,
    mother: AbstractMother,
    dictionary: AbstractDictionary | None = None,
    dtype: Any = np.float64,
    seed: int = 0,
) -> None:
    """Check that components work together in the operator U_λ and its tangents.

    U_λ is linear, U_λ(a p + q) = a U_λ(p) + U_λ(q); the identity renders p itself; ``tangents``
    are the derivatives of U_λ(p) in λ.

    Parameters
    ----------
    transformation : transformation
        The family a(λ, x, y).
    mother : mother function
        φ.
    dictionary : dictionary, optional
        b; the paper's by default.
    dtype : dtype, default=float64
        Precision in which the laws must hold.
    seed : int, default=0
        Seed of the random patterns and λ.
    """
    box, coordinates = transformation.parameters, transformation.coordinates
    laws = Laws(transformation, coordinates, box, dtype, seed)
    dictionary = as_dictionary(dictionary)
    gamma = sample_interior(dictionary.parameters, laws.rng, 5)
    p = Pattern([1.0, -1.0, 2.0], gamma[:3], mother, dictionary)
    q = Pattern([0.5, 1.0], gamma[3:], mother, dictionary)
    mixed = Pattern(np.concatenate([-2 * p.coef, q.coef]), gamma, mother, dictionary)

    shape, identity = (5, 6), transformation.identity
    lam = np.concatenate([laws.parameters, identity[None]]).astype(laws.dtype)
    of_p, of_q, of_mixed = (render(each, lam, transformation, shape) for each in (p, q, mixed))
    laws.require(np.any(of_p), "U_λ(p) shows p", "all its pixels are 0")
    laws.close("U_λ(a p + q) = a U_λ(p) + U_λ(q)", of_mixed, -2 * of_p + of_q)
    laws.close("the identity renders p itself", of_p[-1], p.render(shape, laws.dtype).ravel())
    slopes = np.moveaxis(tangents(p, laws.parameters, transformation, shape), 1, -1)
    laws.taylor("tangents", render(p, laws.taylor_rows, transformation, shape), slopes)


def _check_identity(laws: Laws, transformation: AbstractTransformation) -> None:
    identity = transformation.identity[None]
    law = "the identity lies in the box"
    laws.require(transformation.parameters.contains(identity).all(), law, f"it is {identity[0]}")
    found = laws.evaluate(parameters=np.repeat(identity, len(laws.parameters), axis=0))
    unmoved = np.broadcast_to(laws.points, found.shape)
    laws.close("the identity maps (x, y) to itself", found, unmoved)


def _check_tangent_products(
    laws: Laws, transformation: AbstractTransformation, slopes: np.ndarray
) -> None:
    """Compare with the products of tangents made of `derivatives`, for a random ∇p and w."""
    images = laws.rng.normal(size=(3, laws.points.shape[1])).astype(np.float32)

    def products(lam: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        given = jnp.asarray(images, x.dtype)
        metric, along_w = transformation.tangent_products(lam, x, y, given[0], given[1], given[2])
        return jnp.concatenate([metric, along_w[None]])

    vectors = np.einsum("ip,ripk->rkp", images[:2], slopes)
    metric, along_w = vectors @ np.swapaxes(vectors, 1, 2), vectors @ images[2]
    expected = np.concatenate([metric, along_w[:, None]], axis=1)[:, None]
    law = "tangent_products are those of the tangents"
    laws.close(law, laws.evaluate(products), expected)


def _check_inverse_map(laws: Laws, transformation: AbstractTransformation) -> None:
    if not transformation.has_inverse:
        return
    there, back = transformation.coordinates, transformation.inverse_coordinates
    unmoved = np.broadcast_to(laws.points, laws.values.shape)
    found = laws.evaluate(lambda lam, x, y: back(lam, *there(lam, x, y)))
    laws.close("inverse_coordinates undoes coordinates", found, unmoved)
    found = laws.evaluate(lambda lam, x, y: there(lam, *back(lam, x, y)))
    laws.close("coordinates undoes inverse_coordinates", found, unmoved)


def _check_translation(laws: Laws, transformation: AbstractTransformation) -> None:
    if transformation.translation is None:
        return
    i, j = (transformation.parameters.index(name) for name in transformation.translation)

    def shifted(lam: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return transformation.coordinates(lam.at[i].set(0).at[j].set(0), x - lam[i], y - lam[j])

    law = f"{transformation.translation} shift the image"
    laws.close(law, laws.evaluate(shifted), laws.values)


def _check_group(laws: Laws, group: AbstractAffineTransformation) -> None:
    pairs = np.stack([laws.parameters, laws.parameters[::-1]], axis=1)

    def composed(pair: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return group.coordinates(group.compose(pair[0], pair[1]), x, y)

    def in_turn(pair: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return group.coordinates(pair[1], *group.coordinates(pair[0], x, y))

    law = "compose(outer, inner) maps like inner after outer"
    laws.close(law, laws.evaluate(composed, pairs), laws.evaluate(in_turn, pairs))
    inverse = laws.evaluate(lambda lam, x, y: group.coordinates(group.inverse(lam), x, y))
    law = "inverse maps like inverse_coordinates"
    laws.close(law, inverse, laws.evaluate(group.inverse_coordinates))


def _check_chain_rule(laws: Laws, mother: AbstractMother, field: np.ndarray) -> None:
    """Compare `field_through` linear maps m with the field times m."""

    def through(m: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return mother.field_through(x, y, ((m[0, 0], m[0, 1]), (m[1, 0], m[1, 1])))

    matrices = laws.rng.uniform(-1, 1, size=(4, 2, 2))
    found = laws.evaluate(through, matrices)
    values = np.broadcast_to(field[:1], found[:, :1].shape)
    slopes = np.einsum("rki,kp->rip", matrices, field[1:])
    expected = np.concatenate([values, slopes], axis=1)
    laws.close("field_through follows the chain rule", found, expected)


def _check_radial(laws: Laws, mother: AbstractMother) -> None:
    """Compare φ with itself, turned."""

    def phi(angle: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        c, s = jnp.cos(angle[0]), jnp.sin(angle[0])
        return mother(c * x - s * y, s * x + c * y)

    values = laws.evaluate(phi, np.array([[0.0], [0.7], [2.0]]))
    laws.close("turning φ changes nothing", values, np.broadcast_to(values[:1], values.shape))


def _check_decay(laws: Laws, field: Map) -> None:
    """Compare the size of φ on wider and wider circles with its size near the origin."""
    angles, radii = np.linspace(0, 2 * np.pi, 64), np.array([[1e2], [1e4], [1e6]])
    circles = np.stack([radii * np.cos(angles), radii * np.sin(angles)])
    near = np.abs(laws.values).max()
    far = np.abs(laws.evaluate(field, points=circles)[:, 0]).max(axis=(0, 2))
    # (1 + r²)^μ has 90 % left on the last circle for μ = -0.004: any sensible decay passes.
    laws.require(
        far[0] >= far[1] >= far[2] and far[2] < 0.9 * near,
        "φ decays far away",
        f"|φ| is {near:.3g} near the origin and {far[0]:.3g}, {far[1]:.3g}, {far[2]:.3g} at "
        "distances 1e2, 1e4, 1e6",
    )
