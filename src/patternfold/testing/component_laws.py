"""Laws of what a component tells about itself: its options, and what it knows of its atoms."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.model.component import Component, Family
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.mothers import Gaussian
from patternfold.numerics.precision import precision
from patternfold.testing.laws import Laws

NODES = 40
"""Of the quadrature in each direction, for blurs no wider than atoms: exact to rounding."""


def check_options(laws: Laws, component: Component) -> None:
    """Require the options, on the same box, to make the component again."""
    if any(callable(getattr(component, field.name)) for field in fields(component)):
        return  # made of a function of the user's own, which no option can hold
    again = type(component)(**component.options())
    if isinstance(again, Family) and isinstance(component, Family):
        again = again.on(component.parameters)
    law = "options() make the component again"
    laws.require(bool(again == component), law, f"{component.options()} make {again}")


def check_affine(laws: Laws, component: Any) -> None:
    """Require the map of a component that says so to be affine in (x, y)."""
    if not component.is_affine:
        return
    x, y = laws.points
    corners = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    start, right, down = np.moveaxis(laws.evaluate(points=corners), -1, 0)
    start, right, down = start[..., None], right[..., None], down[..., None]
    laws.close("the map is affine", laws.values, start + (right - start) * x + (down - start) * y)


def check_positions(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require parameters that are said to shift the atom to do so."""
    if dictionary.positions is None:
        return
    i, j = (dictionary.parameters.index(name) for name in dictionary.positions)

    def shifted(gamma: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        at_origin = gamma.at[i].set(0).at[j].set(0)
        return dictionary.coordinates(at_origin, x - gamma[i], y - gamma[j])

    laws.close(f"{dictionary.positions} shift the atom", laws.evaluate(shifted), laws.values)


def check_shapes(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require what the search asks for to fit the box: a part of it, and atoms at the origin."""
    box, part = dictionary.parameters, dictionary.resolved(0.1)
    inside = part.names == box.names and box.contains(np.array([part.lower, part.upper])).all()
    laws.require(inside, "resolved(pixel) is a part of the box", f"it is {part}")
    for radial in (True, False):
        shapes = dictionary.shapes(0.1, 0.8, radial)
        if shapes is None:
            continue
        law = "shapes are atoms at the origin"
        fits = shapes.ndim == 2 and shapes.shape[1] == box.dim
        laws.require(fits, law, f"they have the shape {shapes.shape}, expected (n, {box.dim})")
        places = [box.index(name) for name in dictionary.positions or ()]
        laws.require(not shapes[:, places].any(), law, "some of them lie elsewhere")
    extent = dictionary.extent(laws.parameters)
    law = "extent gives one width for each atom"
    laws.require(extent.shape == (len(laws.parameters),), law, f"its shape is {extent.shape}")


def check_centred(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require B (x − c), where it is known, to be the map."""
    with precision(laws.dtype):
        gamma = jnp.asarray(laws.parameters, laws.dtype)
        if dictionary.centred(gamma[0]) is None:
            return
        rows = np.asarray(jax.vmap(dictionary.centred)(gamma), np.float64)
    matrix, centre = rows[:, :4].reshape(-1, 2, 2), rows[:, 4:, None]
    found = matrix @ (laws.points[None] - centre)
    laws.close("centred gives B and c of b = B (x − c)", found, laws.evaluate())


def check_ellipses(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require outlines to lie where ‖b(γ, x, y)‖ = 1."""
    ellipses = dictionary.ellipses(laws.parameters)
    if ellipses is None:
        return
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    for row, (x, y, a, b, angle) in zip(laws.parameters, ellipses, strict=True):
        along, across = a * np.cos(turns), b * np.sin(turns)
        c, s = np.cos(angle), np.sin(angle)
        points = np.stack([x + c * along - s * across, y + s * along + c * across])
        uv = laws.evaluate(parameters=row[None], points=points)[0]
        # Narrow atoms magnify the rounding of where they are.
        radius = 1 + (np.hypot(*uv) - 1) * min(a, b, 1.0)
        laws.close("ellipses are where ‖b‖ = 1", radius, np.ones_like(radius))


def check_frames(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require atoms in another frame, where there are some, to be those of p(D x + g)."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    for linear in (np.eye(2), 1.25 * np.eye(2), 0.75 * turn, np.array([[1.1, 0.3], [-0.2, 0.8]])):
        for radial in (True, False):
            shift = np.array([0.25, -0.5])
            gamma = dictionary.in_frame(laws.parameters, linear, shift, radial)
            if gamma is None:
                continue
            moved = linear @ laws.points + shift[:, None]
            expected, found = laws.evaluate(points=moved), laws.evaluate(parameters=gamma)
            if radial:  # a radial mother sees ‖b‖ alone
                expected, found = (np.hypot(v[:, 0], v[:, 1]) for v in (expected, found))
            laws.close(f"in_frame gives the atoms of p(D x + g), {radial=}", found, expected)


def check_blur(laws: Laws, dictionary: AbstractDictionary) -> None:
    """Require the blur of Gaussian atoms, where it is known, to be the integral."""
    mother = Gaussian()
    with precision(laws.dtype):
        gamma = jnp.asarray(laws.parameters[:1], laws.dtype)
        if dictionary.blurred(jnp.ones(1, laws.dtype), gamma, 0.1) is None:
            return
    nodes, shares = np.polynomial.hermite.hermgauss(NODES)
    widths = 0.7 * np.maximum(dictionary.extent(laws.parameters), 0.02)
    rows = np.column_stack([laws.parameters, widths])

    def atom(gamma: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return mother(*dictionary.coordinates(gamma, x, y))

    def blurred(row: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        known = dictionary.blurred(jnp.ones(1, row.dtype), row[None, :-1], row[-1])
        coef, gamma = known if known is not None else (row, row)
        return coef[0] * atom(gamma[0], x, y)

    def integral(row: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        offsets = row[-1] * jnp.asarray(nodes, row.dtype)
        dx, dy = jnp.meshgrid(offsets, offsets)
        share = jnp.asarray(np.outer(shares, shares) / np.pi, row.dtype)
        moved = jax.vmap(lambda x, y: (atom(row[:-1], x - dx, y - dy) * share).sum())
        return moved(x, y)

    law = "blurred gives Gaussian atoms convolved with a Gaussian"
    laws.close(law, laws.evaluate(blurred, rows), laws.evaluate(integral, rows))
