"""Sums of families: their coordinate maps composed, their parameters side by side.

In ``a + b`` the pattern is first changed by b, in its own frame, and then by a: similarity + bend
is a bent thing somewhere in the picture, at some angle. The map from the image to the pattern goes
the other way, a(λ_a, x, y) and then b(λ_b, x', y').
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import (
    AbstractAffineTransformation,
    AbstractTransformation,
    Points,
)

NEAREST_STEPS = 8
"""Gauss-Newton steps from the first family's λ to that of the sum, for given F and t."""


class AbstractSum(AbstractTransformation):
    """What all sums of families share.

    The box of the sum is the domain; those of its members are what they were made with.
    """

    members: eqx.AbstractVar[tuple[AbstractTransformation, ...]]

    @property
    def parts(self) -> tuple[AbstractTransformation, ...]:
        """The families, the outermost first."""
        return self.members

    def options(self) -> dict[str, Any]:
        """Return the families; files describe each of them by itself."""
        return {"members": self.members}

    @property
    def identity(self) -> np.ndarray:
        """The identities side by side."""
        return np.concatenate([part.identity for part in self.members])

    @property
    def has_inverse(self) -> bool:
        """Whether all families have one."""
        return all(part.has_inverse for part in self.members)

    @property
    def measured(self) -> Mapping[str, str]:
        """What the families say of theirs."""
        return {name: what for part in self.members for name, what in part.measured.items()}

    def prior_kinds(self) -> tuple[str, ...]:
        """What suits the families' parameters."""
        return tuple(kind for part in self.members for kind in part.prior_kinds())

    def default_prior(self) -> Mapping[str, tuple[float, float]] | None:
        """The families' own priors together."""
        known = [part.default_prior() or {} for part in self.members]
        return {name: pair for own in known for name, pair in own.items()} or None

    def check_limits(self, box: Box) -> None:
        """Refuse what one of the families refuses."""
        for part, where in zip(self.members, self.places(), strict=True):
            part.check_limits(box.part(where))

    def places(self) -> list[slice]:
        """Where the parameters of each family are in λ."""
        ends = np.cumsum([0, *(part.parameters.dim for part in self.members)]).tolist()
        return [slice(begin, end) for begin, end in pairwise(ends)]

    def split(self, lam: Float[Array, " d"]) -> Iterator[tuple[Any, Float[Array, " e"]]]:
        """Return each family with its own part of λ, the outermost first."""
        for part, where in zip(self.members, self.places(), strict=True):
            yield part, lam[where]

    def spread(self, lam: Float[Array, " d"]) -> Float[Array, ""] | None:
        """The sum of what the families add; None where none adds any."""
        found = [part.spread(own) for part, own in self.split(lam)]
        known = [spread for spread in found if spread is not None]
        return jnp.stack(known).sum() if known else None

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """The families' inverses, the innermost first."""
        for part, own in reversed(list(self.split(lam))):
            x, y = part.inverse_coordinates(own, x, y)
        return x, y

    def formula(self) -> str | None:
        """The families' formulas one after the other; None where one has none."""
        steps = []
        for part, where in zip(self.members, self.places(), strict=True):
            text = part.formula()
            if text is None:
                return None
            steps.append(f"[x, y] = ({text})(lam.slice({where.start}, {where.stop}), x, y);")
        body = "\n            ".join(steps)
        return f"(lam, x, y) => {{\n            {body}\n            return [x, y];\n        }}"

    def spread_formula(self) -> str | None:
        """The sum of the families' formulas; None where none has one."""
        terms = [
            f"({text})(lam.slice({where.start}, {where.stop}))"
            for part, where in zip(self.members, self.places(), strict=True)
            if (text := part.spread_formula()) is not None
        ]
        return f"(lam) => {' + '.join(terms)}" if terms else None


class Sum(AbstractSum):
    """Families composed, of which one at least is not affine.

    Tangents of the outermost, mostly the pose, are those of its own closed form, seen from the
    pattern through the others; those of the others are images.
    """

    members: tuple[AbstractTransformation, ...]
    parameters: Box
    translation: tuple[str, str] | None = eqx.field(static=True)

    def __init__(self, members: Sequence[AbstractTransformation]):
        self.members = tuple(members)
        self.parameters = _joined(self.members)
        self.translation = self.members[0].translation

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """One map after the other."""
        for part, own in self.split(lam):
            x, y = part.coordinates(own, x, y)
        return x, y

    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """Each family's own, carried on through those that follow."""
        dx, dy = [], []
        for part, own in self.split(lam):
            slopes = part.derivatives(own, x, y)
            if dx:
                push = jax.linearize(lambda u, v, p=part, o=own: p.coordinates(o, u, v), x, y)[1]
                pushed = jax.vmap(push)(jnp.concatenate(dx), jnp.concatenate(dy))
                dx, dy = [pushed[0]], [pushed[1]]
            dx.append(slopes[0])
            dy.append(slopes[1])
            x, y = part.coordinates(own, x, y)
        return jnp.concatenate(dx), jnp.concatenate(dy)

    def tangent_products(
        self,
        lam: Float[Array, " d"],
        x: Float[Array, " n"],
        y: Float[Array, " n"],
        along_x: Float[Array, " n"],
        along_y: Float[Array, " n"],
        w: Float[Array, " n"],
    ) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        """Return TᵀT and Tᵀw: the outermost family's by its own means, with images of the rest."""
        (first, own), *rest = self.split(lam)
        steps, place = [], first.coordinates(own, x, y)
        for part, its in rest:
            steps.append((part, its, place))
            place = part.coordinates(its, *place)
        gradient, images = (along_x, along_y), []
        for part, its, place in reversed(steps):
            dx, dy = part.derivatives(its, *place)
            images.append(gradient[0][None] * dx + gradient[1][None] * dy)
            gradient = jax.vjp(lambda u, v, p=part, o=its: p.coordinates(o, u, v), *place)[1](
                gradient
            )
        vectors = jnp.concatenate(images[::-1])

        def along(image: Float[Array, " n"]) -> tuple[Array, Array]:
            return first.tangent_products(own, x, y, *gradient, image)

        metric, slope = along(w)
        cross = jax.vmap(lambda image: along(image)[1])(vectors)
        both = jnp.block([[metric, cross.T], [cross, vectors @ vectors.T]])
        return both, jnp.concatenate([slope, vectors @ w])


class AffineSum(AbstractSum, AbstractAffineTransformation):
    """Affine families composed: F = F_a F_b and t = F_a t_b + t_a; in general no group."""

    members: tuple[AbstractTransformation, ...]
    parameters: Box
    translation: tuple[str, str] | None = eqx.field(static=True)
    is_group: ClassVar[bool] = False

    def __init__(self, members: Sequence[AbstractTransformation]):
        self.members = tuple(members)
        self.parameters = _joined(self.members)
        self.translation = self.members[0].translation

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """The product of all F."""
        return self._motion(lam)[0]

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """Where the origin goes."""
        return self._motion(lam)[1]

    def _motion(self, lam: Float[Array, " d"]) -> tuple[Float[Array, "2 2"], Float[Array, " 2"]]:
        linear, shift = jnp.eye(2, dtype=lam.dtype), jnp.zeros(2, lam.dtype)
        for part, own in self.split(lam):
            f, t = part.linear(own), part.shift(own)
            shift = shift + (linear * t[None, :]).sum(axis=1)
            linear = (linear[:, :, None] * f[None, :, :]).sum(axis=1)
        return linear, shift

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """Gauss-Newton steps from the outermost family's λ, the others at their identity."""
        first: Any = self.members[0]
        rest = [jnp.asarray(part.identity, linear.dtype) for part in self.members[1:]]
        lam = jnp.concatenate([first.from_linear(linear, shift), *rest])
        wanted = jnp.concatenate([linear.reshape(4), shift])

        def motion(lam: Float[Array, " d"]) -> Float[Array, " 6"]:
            f, t = self._motion(lam)
            return jnp.concatenate([f.reshape(4), t])

        def step(_: Any, lam: Float[Array, " d"]) -> Float[Array, " d"]:
            slopes = jax.jacfwd(motion)(lam)
            return lam + jnp.linalg.pinv(slopes) @ (wanted - motion(lam))

        return jax.lax.fori_loop(0, NEAREST_STEPS, step, lam)


def sum_of(members: Sequence[AbstractTransformation]) -> AbstractTransformation:
    """Return the sum of families, the outermost first; one alone is itself."""
    if len(members) == 1:
        return members[0]
    affine = all(isinstance(part, AbstractAffineTransformation) for part in members)
    return AffineSum(members) if affine else Sum(members)


def _joined(members: Sequence[AbstractTransformation]) -> Box:
    """The boxes side by side; refuses parameters of one name."""
    owner: dict[str, str] = {}
    for part in members:
        for name in part.parameters.names:
            if name in owner:
                raise ValueError(
                    f"{owner[name]} and {type(part).__name__} both have a parameter {name!r}, and "
                    "the parameters of a sum must differ; leave one of the two families out."
                )
            owner[name] = type(part).__name__
    return Box.joined([part.parameters for part in members])
