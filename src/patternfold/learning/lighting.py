"""The light of an image: u = g·U_λ(p) + b, with a gain g ≥ 0 and an offset b of its own.

Both are linear, so that the best ones for given λ are known in closed form, and only λ is searched
for (variable projection). With the offset eliminated, images and patterns are compared less their
means; with the gain, by the part of the image along the pattern. Derivatives in λ then lose what g
and b would make up for: the parts of the tangents along the pattern and along a constant image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Batch = Float[Array, "B n"]
Scalars = Float[Array, " B"]

LARGEST_GAIN = 8.0
"""Most that an image may lift the pattern, as a multiple of what gives the pattern in its own frame
the energy of the image. Without a limit the faint tail of a pattern far outside the window, lifted
a million times, fits any slope of the background."""


class Fit(NamedTuple):
    """An image and a rendered pattern q at the best g and b; square roots of weights included.

    ``residual`` is u − g q − b. ``directions`` are orthonormal images that g and b can add: those
    along which tangents tell nothing. ``pull`` is 1/‖q‖ where the gain is free, else 0. ``own``
    tells whether images have a gain of their own, which multiplies derivatives of q. Where a loss
    has reweighted the pixels, ``roots`` are the new square roots, and ``robust`` is the cost.
    """

    gain: Scalars
    offset: Scalars
    residual: Batch
    directions: tuple[Batch, ...]
    pull: Scalars
    own: bool = False
    roots: Batch | None = None
    robust: Scalars | None = None

    @property
    def cost(self) -> Scalars:
        """Σ r² of each row, or what the loss makes of it."""
        return (self.residual**2).sum(axis=1) if self.robust is None else self.robust

    @classmethod
    def plain(cls, residual: Batch) -> Fit:
        """Return the fit of images that have no light of their own."""
        one = jnp.ones(len(residual), residual.dtype)
        return cls(one, 0 * one, residual, (), 0 * one)

    def raw(self, images: Batch, values: Batch) -> Batch:
        """u − g q − b, pixels not weighted."""
        return images - self.gain[:, None] * values - self.offset[:, None]

    def scale(self, roots: Batch | None) -> Float[Array, "B #n"] | None:
        """What multiplies derivatives of q in this light: g and the pixels' roots, None for 1."""
        roots = roots if self.roots is None else self.roots
        gain = self.gain[:, None] if self.own else None
        if gain is None or roots is None:
            return gain if roots is None else roots
        return gain * roots

    def without(self, vectors: Float[Array, "B k n"]) -> Float[Array, "B k n"]:
        """Derivatives of each row's image less what its light makes up for."""
        for direction in self.directions:
            along = jnp.einsum("bkn,bn->bk", vectors, direction)
            vectors = vectors - along[:, :, None] * direction[:, None]
        return vectors


@jax.tree_util.register_static
@dataclass(frozen=True)
class Lighting:
    """Which of the gain and the offset are an image's own; else g = 1 and b = 0."""

    gain: bool = False
    offset: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything to fit."""
        return self.gain or self.offset

    def less_mean(self, images: Batch, roots: Batch | None) -> tuple[Batch, Scalars]:
        """Weighted images less what an offset makes up for, and that offset."""
        zero = jnp.zeros(len(images), images.dtype)
        if not self.offset:
            return (images if roots is None else images * roots), zero
        if roots is None:
            mean = images.mean(axis=1)
            return images - mean[:, None], mean
        mass = jnp.maximum((roots**2).sum(axis=1), jnp.finfo(images.dtype).tiny)
        mean = (images * roots**2).sum(axis=1) / mass
        return (images - mean[:, None]) * roots, mean

    def energies(self, images: Batch, roots: Batch | None) -> Scalars:
        """‖u‖², less what an offset makes up for."""
        return (self.less_mean(images, roots)[0] ** 2).sum(axis=1)

    def evened(self, images: Batch, roots: Batch | None) -> Batch:
        """Images as if in one light: less their mean, of one norm, where these are their own."""
        images, _ = self.less_mean(images, roots)
        if not self.gain:
            return images
        size = jnp.sqrt((images**2).sum(axis=1, keepdims=True))
        return images / jnp.maximum(size, jnp.finfo(images.dtype).tiny)

    def seen(self, images: Batch, roots: Batch | None) -> Bool[Array, " B"]:
        """Tell images that hold anything from blank ones."""
        if not self.offset:
            return (images if roots is None else images * roots).any(axis=1)
        total = PLAIN.energies(images, roots)
        # A constant image less its mean is rounding.
        rounding = (8 * jnp.finfo(images.dtype).eps) ** 2
        return self.energies(images, roots) > rounding * total

    def fit(self, images: Batch, roots: Batch | None, values: Batch, reference: Scalars) -> Fit:
        """Best gain and offset of every row; ``reference`` is ‖p‖² in the pattern's own frame."""
        tiny = jnp.finfo(images.dtype).tiny
        u, mean = self.less_mean(images, roots)
        q, own_mean = self.less_mean(values, roots)
        one = jnp.ones_like(mean)
        gain, pull, directions = one, jnp.zeros_like(mean), []
        if self.offset:
            flat = one[:, None] * (jnp.ones_like(u) if roots is None else roots)
            size = jnp.sqrt(jnp.maximum((flat**2).sum(axis=1, keepdims=True), tiny))
            directions.append(flat / size)
        if self.gain:
            energy, along = (q**2).sum(axis=1), (u * q).sum(axis=1)
            most = largest_gain((u**2).sum(axis=1), reference)
            gain, free = bounded_gain(along, energy, most)
            pull = jnp.where(free, 1 / jnp.sqrt(jnp.where(free, energy, 1)), 0)
            directions.append(q * pull[:, None])
        residual = u - gain[:, None] * q
        offset = mean - gain * own_mean
        return Fit(gain, offset, residual, tuple(directions), pull, self.gain)


PLAIN = Lighting()
"""All images in the same light: the paper's model."""


def largest_gain(energy: Array, reference: Array) -> Array:
    """Bound of the gain of images of this energy, from that of the pattern in its own frame."""
    tiny = jnp.finfo(energy.dtype).tiny
    return LARGEST_GAIN * jnp.sqrt(energy / jnp.maximum(reference, tiny))


def bounded_gain(along: Array, energy: Array, most: Array) -> tuple[Array, Array]:
    """argmin ‖u − g q‖² over 0 ≤ g ≤ most from ⟨u, q⟩ and ‖q‖², and whether g is free to move.

    Where the pattern shows nothing the gain is 1.
    """
    some = energy > jnp.finfo(energy.dtype).tiny
    best = along / jnp.where(some, energy, 1)
    gain = jnp.where(some, jnp.clip(best, 0, most), 1)
    return gain, some & (best > 0) & (best < most)
