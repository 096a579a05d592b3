"""Sums of atoms inside compiled code: padded arrays, one loop over atoms.

A pattern of K atoms at P points costs K·P evaluations of the mother function. The loop runs
over atoms with all points at once, so that no array of size K·P ever exists, and its number of
turns is data, not shape: a pattern that grows reuses the compiled code until its padding is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.dictionaries.centred import CentredMaps
from patternfold.model.mothers import AbstractMother
from patternfold.numerics.compilation import compiled

Points = Float[Array, "*p"]

CENTRED = CentredMaps()
"""What sums over atoms of affine dictionaries are made of."""

BLOCK = {"cpu": 2, "gpu": 4}
"""Atoms per turn of a loop: the sums are read and written once per turn. More gain little, and
compiling takes longer."""


# Plain records, not equinox modules: stages are called often, and making modules is slow.
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AtomFamily:
    """What atoms are made of: φ_γ(x, y) = φ(b(γ, x, y)), with value, field and derivatives."""

    mother: AbstractMother
    dictionary: AbstractDictionary

    def value(self, gamma: Float[Array, " s"], x: Points, y: Points, spread: Any = None) -> Points:
        """φ_γ(x, y), widened by ``spread`` where there is one."""
        if spread is None:
            return self.mother(*self.dictionary.coordinates(gamma, x, y))
        return self.widened_value(gamma, x, y, self.dictionary.widening(gamma, spread))

    def field(
        self, gamma: Float[Array, " s"], x: Points, y: Points, spread: Any = None
    ) -> tuple[Points, ...]:
        """φ_γ and its gradient in (x, y), by the chain rule through b; and in ``spread``."""
        if spread is None:
            u, v = self.dictionary.coordinates(gamma, x, y)
            return self.mother.field_through(u, v, self.dictionary.jacobian(gamma, x, y))
        return self.widened_field(gamma, x, y, *widening_slopes(self.dictionary, gamma, spread))

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points, spread: Any = None
    ) -> tuple[Points, list[Points]]:
        """φ_γ and its derivatives ∂φ_γ/∂γ_k for every k."""
        u, v = self.dictionary.coordinates(gamma, x, y)
        u_gamma, v_gamma = self.dictionary.derivatives(gamma, x, y)
        if spread is None:
            value, du, dv = self.mother.field(u, v)
            return value, [du * a + dv * b for a, b in zip(u_gamma, v_gamma, strict=True)]
        height, across, along = self.dictionary.widening(gamma, spread)
        value, du, dv = self.mother.field(u * across, v * along)
        slopes = jax.jacfwd(self.dictionary.widening)(gamma, spread)
        by_gamma = zip(
            u_gamma, v_gamma, *(jnp.moveaxis(part, -1, 0) for part in slopes), strict=True
        )
        return height * value, [
            height * (du * (a * across + u * ka) + dv * (b * along + v * kb)) + kh * value
            for a, b, kh, ka, kb in by_gamma
        ]

    def widened_value(
        self, gamma: Float[Array, " s"], x: Points, y: Points, factors: Any
    ) -> Points:
        """h φ(k_u u, k_v v), for factors (h, k_u, k_v) as `widening` of the dictionary gives."""
        height, across, along = factors
        u, v = self.dictionary.coordinates(gamma, x, y)
        return height * self.mother(u * across, v * along)

    def widened_field(
        self, gamma: Float[Array, " s"], x: Points, y: Points, factors: Any, slopes: Any
    ) -> tuple[Points, Points, Points, Points]:
        """The same with its gradient in (x, y), and the slope that ``slopes`` of factors make."""
        (height, across, along), (by_height, by_across, by_along) = factors, slopes
        u, v = self.dictionary.coordinates(gamma, x, y)
        (ux, uy), (vx, vy) = self.dictionary.jacobian(gamma, x, y)
        value, du, dv = self.mother.field(u * across, v * along)
        to_u, to_v = height * across * du, height * along * dv
        by_spread = by_height * value + height * (by_across * u * du + by_along * v * dv)
        return height * value, to_u * ux + to_v * vx, to_u * uy + to_v * vy, by_spread


def widening_slopes(
    dictionary: AbstractDictionary, gamma: Float[Array, " s"], spread: Any
) -> tuple[Any, Any]:
    """Factors of widened atoms, and their derivatives in the spread."""
    return jax.jvp(lambda s: dictionary.widening(gamma, s), (spread,), (jnp.ones_like(spread),))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Atoms:
    """Coefficients c and parameters γ of a sum of atoms, padded with atoms of coefficient 0.

    Several patterns of one family have a leading axis; ``count`` is that of the longest.
    """

    coef: Any  # (K,) or (M, K)
    gamma: Any  # (K, s) or (M, K, s)
    count: Any  # a whole number
    family: AtomFamily

    def of(self, pattern: Any) -> Atoms:
        """Atoms of one pattern, or of one pattern per row of an index."""
        return Atoms(self.coef[pattern], self.gamma[pattern], self.count, self.family)

    def centred(self) -> Atoms:
        """The same atoms of one pattern as maps B (x − c), if they are such: quicker in loops."""
        gamma = jax.vmap(self.family.dictionary.centred)(jnp.asarray(self.gamma))
        if gamma is None:
            return self
        return Atoms(self.coef, gamma, self.count, AtomFamily(self.family.mother, CENTRED))

    def blurred(self, width: Any) -> Atoms:
        """The atoms blurred by exp(−r²/width²); as they are where no closed form is known."""
        blurred = self.family.dictionary.blurred(
            jnp.asarray(self.coef), jnp.asarray(self.gamma), width
        )
        return self if blurred is None else Atoms(*blurred, self.count, self.family)


def padded_size(n_atoms: int) -> int:
    """Smallest of 32, 128, 512, ... that holds ``n_atoms``; padding costs no time."""
    size = 32
    while size < n_atoms:
        size *= 4
    return size


def pad_atoms(coef: np.ndarray, gamma: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Append copies of the last atom with coefficient 0."""
    missing = size - len(coef)
    # A copy is finite where the atom itself is: other parameters might lie outside its domain.
    filler = gamma[-1:] if len(gamma) else np.ones((1, gamma.shape[1]))
    return np.pad(coef, (0, missing)), np.concatenate([gamma, filler.repeat(missing, axis=0)])


def make_atoms(coef: np.ndarray, gamma: np.ndarray, family: AtomFamily, dtype: Any) -> Atoms:
    """Pad a sum of atoms for compiled code; NumPy arrays, since handing them over is its task."""
    padded_coef, padded_gamma = pad_atoms(coef, gamma, padded_size(len(coef)))
    return Atoms(
        padded_coef.astype(dtype),
        padded_gamma.astype(dtype),
        np.asarray(len(coef), np.int32),
        family,
    )


def stack_atoms(patterns: Sequence[Any], dtype: Any) -> Atoms:
    """Atoms of several patterns of one family, with a leading axis, for compiled code."""
    most = max(len(p.coef) for p in patterns)
    size = padded_size(most)
    padded = [pad_atoms(p.coef, p.gamma, size) for p in patterns]
    coef, gamma = (np.stack(part).astype(dtype) for part in zip(*padded, strict=True))
    return Atoms(coef, gamma, np.asarray(most, np.int32), patterns[0].family)


def evaluate(atoms: Atoms, x: Points, y: Points, spread: Any = None) -> Points:
    """p(x, y) = Σ_j c_j φ_γj(x, y); ``spread`` has 1 for the last axis of the points."""
    if spread is None:
        atoms = atoms.centred()

        def value(j: Int[Array, ""]) -> Points:
            return atoms.family.value(atoms.gamma[j], x, y)
    else:
        widths = jax.vmap(lambda g: atoms.family.dictionary.widening(g, spread))
        factors, atoms = widths(jnp.asarray(atoms.gamma)), atoms.centred()

        def value(j: Int[Array, ""]) -> Points:
            own = [part[j] for part in factors]
            return atoms.family.widened_value(atoms.gamma[j], x, y, own)

    def add(j: Int[Array, ""], total: Points) -> Points:
        return total + atoms.coef[j] * value(j)

    return _sum_over_atoms(atoms, add, jnp.zeros_like(x))


def evaluate_field(atoms: Atoms, x: Points, y: Points, spread: Any = None) -> tuple[Points, ...]:
    """p and its gradient (p_x, p_y) in one pass over the atoms; with a ``spread``, p_s as well."""
    atoms, field = field_of(atoms, spread)

    def add(j: Int[Array, ""], totals: tuple[Points, ...]) -> tuple[Points, ...]:
        parts = field(j, x, y)
        return tuple(t + atoms.coef[j] * part for t, part in zip(totals, parts, strict=True))

    zero = jnp.zeros_like(x)
    return _sum_over_atoms(atoms, add, (zero,) * (3 if spread is None else 4))


def field_of(atoms: Atoms, spread: Any = None) -> tuple[Atoms, Callable[..., tuple[Points, ...]]]:
    """The atoms as loops take them, and the field of the j-th of them at (x, y)."""
    if spread is None:
        plain = atoms.centred()
        return plain, lambda j, x, y: plain.family.field(plain.gamma[j], x, y)
    dictionary = atoms.family.dictionary
    widths = jax.vmap(lambda gamma: widening_slopes(dictionary, gamma, spread))
    factors, slopes = widths(jnp.asarray(atoms.gamma))
    centred = atoms.centred()

    def widened(j: Int[Array, ""], x: Points, y: Points) -> tuple[Points, ...]:
        own = [part[j] for part in factors], [part[j] for part in slopes]
        return centred.family.widened_field(centred.gamma[j], x, y, *own)

    return centred, widened


def _sum_over_atoms(atoms: Atoms, add: Callable[[Any, Any], Any], zero: Any) -> Any:
    """Call ``add(j, total)`` for every atom, some of them per turn of a compiled loop."""
    size = BLOCK.get(jax.default_backend(), 2)

    def block(i: Int[Array, ""], total: Any) -> Any:
        for k in range(size):
            total = add(i * size + k, total)
        return total

    n_blocks = (atoms.count + size - 1) // size
    return jax.lax.fori_loop(0, n_blocks, block, zero)


evaluate_each = compiled(
    lambda family, gamma, x, y: jax.vmap(family.value, in_axes=(0, None, None))(gamma, x, y)
)
"""φ_γ(x, y) of many γ, one row for each."""
