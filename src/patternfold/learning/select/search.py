"""Global search of the next atom: all positions of many shapes, for all images at once.

Σ_i w_i⟨v_i, U_λi(φ_γ)⟩ is linear in φ_γ. With the residual pixels gathered once on a grid in the
pattern's frame, its value for every position of an atom is a correlation, and so is the atom's
energy Σ_i w_i‖U_λi(φ_γ)‖². The cost is O(nN) for gathering and O(m log m) for each shape.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.fft import next_fast_len

from patternfold.learning.objectives import Scalar, frozen_gain
from patternfold.learning.select.points import Points
from patternfold.learning.select.refine import refine_frozen
from patternfold.model.atoms import AtomFamily, evaluate_each
from patternfold.model.box import Box
from patternfold.numerics.compilation import compiled

N_CANDIDATES = 8
"""Atoms from the global search that are improved on Ẽ."""

STEPS = 16
"""Most steps of each."""

WIDEST = 0.8
"""Largest width of an atom that is tried: half the window is 1."""


class Shapes(NamedTuple):
    """Atoms at the origin, one for each shape: their γ and the spectra of φ and φ²."""

    gamma: np.ndarray
    phi: Array
    phi_squared: Array


def search_atom(
    nodes: Points, family: AtomFamily, box: Box, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return γ and c of the next atom: the best candidate of the global search, improved on Ẽ.

    ``nodes`` are residuals gathered on a square grid, see `gather`.
    """
    candidates = search_atoms(nodes, family, N_CANDIDATES, rng)
    gammas, coefs, gains = refine_frozen(candidates, nodes, family, box, max_iter=STEPS)
    best = gains.argmax()
    return gammas[best], float(coefs[best])


def search_atoms(
    points: Points, family: AtomFamily, n_candidates: int, rng: np.random.Generator
) -> np.ndarray:
    """Return γ of the most promising atoms, best first, for points gathered on a square grid."""
    side, dictionary = math.isqrt(len(points.x)), family.dictionary
    cell = float(points.x[1] - points.x[0])
    shapes = _shapes(family, side, cell, points.x.dtype.name)
    if shapes is None or dictionary.positions is None:
        return _search_samples(points, family, n_candidates, rng)
    box = dictionary.parameters
    i, j = (box.index(name) for name in dictionary.positions)
    signed, centred = bool((points.weights < 0).any()), points.offset > 0
    sums, spectra = (*points[2:5], points.offset), (shapes.phi, shapes.phi_squared)
    gain, best_shape = jax.device_get(_gains(sums, points.max_coef, *spectra, signed, centred))
    gain = gain.reshape(side, side)
    x, y = points.x.reshape(side, side), points.y.reshape(side, side)
    allowed = (x >= box.lower[i]) & (x <= box.upper[i]) & (y >= box.lower[j]) & (y <= box.upper[j])
    gain = np.where(allowed, gain, -1.0)
    chosen = []
    for _ in range(n_candidates):
        node = int(gain.argmax())
        gamma = shapes.gamma[best_shape[node]].copy()
        gamma[i], gamma[j] = x.flat[node], y.flat[node]
        chosen.append(gamma)
        # Neighbours within the atom's narrow width would be refined to the same one.
        radius = max(2 * cell, float(dictionary.extent(gamma[None])[0]))
        gain[(x - gamma[i]) ** 2 + (y - gamma[j]) ** 2 <= radius**2] = -1.0
    return np.array(chosen)


@partial(compiled, static_argnames=("signed", "centred"))
def _gains(
    sums: tuple[Array, Array, Array, Scalar],
    max_coef: Scalar,
    phi: Array,
    phi_squared: Array,
    signed: bool,
    centred: bool,
) -> tuple[Float[Array, " m"], Int[Array, " m"]]:
    """Largest decrease of Ẽ over the shapes at each node, and the shape that has it."""
    weighted, weights, sizes, offset = sums
    side, size = math.isqrt(len(weights)), phi.shape[1]

    def correlate(values: Array, spectrum: Array) -> Float[Array, "S m"]:
        image = jnp.fft.rfft2(values.reshape(side, side), (size, size))
        result = jnp.fft.irfft2(image[None] * jnp.conj(spectrum), (size, size))
        return result[:, :side, :side].reshape(len(spectrum), -1)

    along, energy = correlate(weighted, phi), correlate(weights, phi_squared)
    data = correlate(sizes, phi_squared) if signed else energy
    if centred:
        energy = energy - jnp.asarray(offset, energy.dtype) * correlate(weights, phi) ** 2
    # An atom where there is hardly any data has no sound gain.
    sound = data > 1e-3 * data.max(axis=1, keepdims=True)
    gains = jnp.where(sound, frozen_gain(along, energy, data, max_coef)[0], 0)
    return gains.max(axis=0), gains.argmax(axis=0)


@lru_cache(maxsize=16)
def _shapes(family: AtomFamily, side: int, cell: float, dtype: str) -> Shapes | None:
    """Spectra of all shapes, where the dictionary knows some."""
    gamma = family.dictionary.shapes(cell, WIDEST, family.mother.is_radial)
    if gamma is None:
        return None
    size: Any = next_fast_len(2 * side, real=True)  # whose own annotation is wrong
    # Offsets in the order of the FFT, negative ones at the end.
    offsets = cell * np.fft.fftfreq(size, 1 / size)
    x, y = np.tile(offsets, size).astype(dtype), np.repeat(offsets, size).astype(dtype)
    phi = evaluate_each(family, gamma.astype(dtype), x, y)
    return Shapes(gamma, *_spectra(phi, size))


@partial(compiled, static_argnames="size")
def _spectra(phi: Float[Array, "S n"], size: int) -> tuple[Array, Array]:
    phi = phi.reshape(-1, size, size)
    return jnp.fft.rfft2(phi), jnp.fft.rfft2(phi**2)


def _search_samples(
    points: Points,
    family: AtomFamily,
    n_candidates: int,
    rng: np.random.Generator,
    n_samples: int = 4096,
) -> np.ndarray:
    """Score atoms drawn from the box of a dictionary of the user's own."""
    gamma = family.dictionary.parameters.sample(rng, n_samples)
    gains = np.empty(n_samples)
    for part in np.array_split(np.arange(n_samples), 32):
        rows = gamma[part].astype(points.x.dtype)
        phi = np.asarray(evaluate_each(family, rows, points.x, points.y))
        energy = phi**2 @ points.weights - points.offset * (phi @ points.weights) ** 2
        sums = phi @ points.weighted, energy, phi**2 @ points.sizes
        along, energy, size = (jnp.asarray(a) for a in sums)
        gains[part] = frozen_gain(along, energy, size, points.max_coef)[0]
    return gamma[np.argsort(-gains)[:n_candidates]]
