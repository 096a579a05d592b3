"""Correction: improve atoms already chosen, their coefficients and all λ_i together.

Greedy selection never revisits an atom. Here E is minimised over everything at once by
Levenberg-Marquardt. The parameters of the atoms are common to all images while λ_i concerns only
image i, so that the normal equations are an arrow: the λ_i are eliminated image by image and a
system in the atoms' parameters alone remains, as in the bundle adjustment of photogrammetry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.model.atoms import (
    Atoms,
    atom_derivatives,
    evaluate_atom,
    evaluate_field,
    pad_atoms,
    padded_size,
)
from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.manifold import tangent_vectors, warped_pixels
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.chunks import map_chunks, rows_at_once
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import held_at_bounds

MANY_IMAGES = 100
"""So many images take longer to compute than another number of atoms takes to compile."""

_START_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-10, 1e8


class Normal(NamedTuple):
    """Normal equations of E at a point; m = K·(s+1) parameters of atoms, d of each λ_i."""

    cost: float
    atoms: np.ndarray  # (m, m)
    atoms_slope: np.ndarray  # (m,)
    cross: np.ndarray  # (N, m, d)
    lam: np.ndarray  # (N, d, d)
    lam_slope: np.ndarray  # (N, d)


class Data(NamedTuple):
    """What stays the same while the pattern and λ change: images, and where their pixels are."""

    images: np.ndarray
    weights: np.ndarray
    transformation: AbstractTransformation
    x: np.ndarray
    y: np.ndarray


def correct_all(
    pattern: Pattern,
    lam: np.ndarray,
    data: Data,
    box: Box,
    max_iter: int = 10,
    tol: float = 1e-5,
    move_lam: bool = True,
) -> tuple[Pattern, np.ndarray, float]:
    """Minimise E over all atoms, coefficients and λ from where they are; E never rises.

    Parameters
    ----------
    pattern, lam
        Where to start.
    data : Data
        Images, weights, transformation and pixels.
    box : Box
        Bounds of the atoms' parameters γ.
    max_iter : int
        Most steps.
    tol : float
        Stop when a step lowers E by less than this share of it.
    move_lam : bool
        Whether the λ_i move too.

    Returns
    -------
    pattern, lam, error
        The error is Σ_i w_i ‖u_i − U_λi(p)‖², not normalised.
    """
    gamma, coef = pattern.gamma.copy(), pattern.coef.copy()
    lam = np.asarray(lam, np.float64)
    here = assemble(pattern, lam, data)
    damping = _START_DAMPING
    for _ in range(max_iter):
        before, tries = here.cost, 0
        while damping <= _MOST_DAMPING:
            step, lam_step = _solve(here, damping, _held(box, gamma, here), data, lam, move_lam)
            step = step.reshape(len(coef), -1)
            trial_gamma = box.put_inside(gamma + step[:, :-1])
            trial_coef = coef + step[:, -1]
            trial_lam = data.transformation.parameters.put_inside(lam + lam_step)
            trial = assemble(pattern.replace(trial_coef, trial_gamma), trial_lam, data)
            if trial.cost < here.cost:
                here, gamma, coef, lam = trial, trial_gamma, trial_coef, trial_lam
                # Where less damping has just failed, it would fail again.
                damping = damping if tries else max(damping / 10, _LEAST_DAMPING)
                break
            damping, tries = 5 * damping, tries + 1
        if before - here.cost <= tol * here.cost:
            break
    return pattern.replace(coef, gamma), lam.astype(data.images.dtype), here.cost


def correct_coefficients(pattern: Pattern, lam: np.ndarray, data: Data) -> tuple[Pattern, float]:
    """Solve for all coefficients with atoms and λ as they are: linear least squares."""
    dtype, n_atoms = data.images.dtype, pattern.n_atoms
    gamma = pad_atoms(pattern.coef, pattern.gamma, padded_size(n_atoms))[1].astype(dtype)

    def chunk(images: np.ndarray, lam: np.ndarray, weights: np.ndarray) -> tuple[Array, Array]:
        atoms = (pattern.mother, pattern.dictionary, gamma)
        return _atom_products(*atoms, data.transformation, images, lam, weights, data.x, data.y)

    rows = (data.images, lam.astype(dtype), data.weights.astype(dtype))
    gram, slope = map_chunks(chunk, rows, 2 * len(gamma) * len(data.x) * dtype.itemsize)
    matrix = gram.sum(axis=0, dtype=np.float64)[:n_atoms, :n_atoms]
    right = slope.sum(axis=0, dtype=np.float64)[:n_atoms]
    energy = float((data.weights * (data.images.astype(np.float64) ** 2).sum(axis=1)).sum())

    def cost(coef: np.ndarray) -> float:
        return max(0.0, energy - 2 * float(coef @ right) + float(coef @ matrix @ coef))

    ridge = 1e-7 * np.trace(matrix) / max(1, n_atoms) * np.eye(n_atoms)
    coef = linalg.solve(matrix + ridge, right, assume_a="sym")
    best = min((pattern.coef, coef), key=cost)
    return pattern.replace(best, pattern.gamma), cost(best)


@compiled
def _atom_products(
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    gamma: Float[Array, "K s"],
    transformation: AbstractTransformation,
    images: Float[Array, "N n"],
    lam: Float[Array, "N d"],
    weights: Float[Array, " N"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, "N K K"], Float[Array, "N K"]]:
    """w_i⟨U_λi(φ_j), U_λi(φ_k)⟩ and w_i⟨U_λi(φ_j), u_i⟩."""

    def of_image(
        image: Float[Array, " n"], lam: Float[Array, " d"], weight: Float[Array, ""]
    ) -> tuple[Array, Array]:
        warped = transformation.coordinates(lam, x, y)
        phi = jax.vmap(lambda g: evaluate_atom(mother, dictionary, g, *warped))(gamma)
        return weight * (phi @ phi.T), weight * (phi @ image)

    return jax.vmap(of_image)(images, lam, weights)


def least_useful(pattern: Pattern, lam: np.ndarray, data: Data) -> int:
    """Return the atom whose loss costs least, the other coefficients adapting."""
    normal = assemble(pattern, lam, data)
    size = pattern.gamma.shape[1] + 1
    rows = np.arange(pattern.n_atoms) * size + size - 1
    inverse = np.linalg.pinv(normal.atoms[np.ix_(rows, rows)], rcond=1e-10, hermitian=True)
    return int(np.argmin(pattern.coef**2 / np.maximum(np.diag(inverse), 1e-300)))


def assemble(pattern: Pattern, lam: np.ndarray, data: Data) -> Normal:
    """Compute E and its normal equations, in chunks of images."""
    dtype, dim = data.images.dtype, data.transformation.parameters.dim
    n_atoms, size = pattern.n_atoms, pattern.gamma.shape[1] + 1
    n_padded = _padded_atoms(n_atoms, len(lam))
    coef, gamma = (a.astype(dtype) for a in pad_atoms(pattern.coef, pattern.gamma, n_padded))
    count = np.asarray(n_atoms, np.int32)
    atoms = Atoms(coef, gamma, count, pattern.mother, pattern.dictionary)
    # The derivatives are gone over several times: a chunk of them should stay in the cache.
    bytes_per_row = 8 * dtype.itemsize * n_padded * size * len(data.x)
    rows = _whole_chunks(
        (data.images, np.sqrt(data.weights).astype(dtype), lam.astype(dtype)),
        rows_at_once(len(lam), bytes_per_row),
    )
    shared = np.zeros((n_padded * size, n_padded * size))

    def chunk(*rows: np.ndarray) -> tuple[Array, Array]:
        nonlocal shared
        products, with_atoms, own = _products(atoms, data.transformation, *rows, data.x, data.y)
        shared += np.asarray(products, np.float64)
        return with_atoms, own

    parts = map_chunks(chunk, rows, bytes_per_row)
    with_atoms, own = (part[: len(lam)].astype(np.float64) for part in parts)
    # From one block per parameter, padding included, to one block per atom.
    order = np.arange(n_padded * size).reshape(size, n_padded).T[:n_atoms].ravel()
    return Normal(
        float(own[:, dim, dim].sum()),
        shared[np.ix_(order, order)],
        with_atoms[:, order, dim].sum(axis=0),
        with_atoms[:, order, :dim],
        own[:, :dim, :dim],
        own[:, :dim, dim],
    )


@compiled
def _products(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "N n"],
    roots: Float[Array, " N"],
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, "m m"], Float[Array, "N m e"], Float[Array, "N e e"]]:
    """Inner products of the images' derivatives by atoms and by λ, and of the residuals.

    All are multiplied by √w_i. Returns the products of atoms with atoms, summed over images, and
    for each image those of atoms with [tangents, residual] and of these with each other.
    """
    warped = warped_pixels(transformation, lam, x, y)
    root = roots[:, None]

    def by_parameter(c: Any, g: Any) -> list[Float[Array, "N n"]]:
        phi, by_gamma = atom_derivatives(atoms.mother, atoms.dictionary, g, *warped)
        return [*(c * root * part for part in by_gamma), root * phi]

    # Each parameter's images are computed before they are put together: fused into the
    # concatenation they take ten times as long on a CPU.
    columns = jax.lax.optimization_barrier(jax.vmap(by_parameter)(atoms.coef, atoms.gamma))
    of_atoms = jax.lax.optimization_barrier(jnp.concatenate(columns))
    value, along_x, along_y = evaluate_field(atoms, *warped)
    vectors = tangent_vectors(transformation, lam, x, y, root * along_x, root * along_y)
    own = jnp.concatenate([vectors, (root * (images - value))[:, None]], axis=1)
    flat = of_atoms.reshape(len(of_atoms), -1)
    return (
        flat @ flat.T,
        jnp.einsum("min,ien->ime", of_atoms, own),
        jnp.einsum("ien,ifn->ief", own, own),
    )


def _padded_atoms(n_atoms: int, n_images: int) -> int:
    """Number of atoms with padding: fine steps where computing outweighs compiling."""
    step = 8 if n_atoms <= 8 or n_images >= MANY_IMAGES else 24
    return -(-n_atoms // step) * step


def _whole_chunks(rows: tuple[np.ndarray, ...], size: int) -> tuple[np.ndarray, ...]:
    """Fill up the last chunk with images that weigh nothing, since sums over images are taken."""
    images, roots, lam = rows
    missing = -len(images) % size
    if not missing:
        return rows
    index = np.minimum(np.arange(len(images) + missing), len(images) - 1)
    return images[index], np.pad(roots, (0, missing)), lam[index]


def _held(box: Box, gamma: np.ndarray, here: Normal) -> np.ndarray:
    """Mark parameters of atoms, coefficients included, that are held at a bound."""
    slope = here.atoms_slope.reshape(len(gamma), -1)[:, :-1]
    return np.pad(held_at_bounds(box, gamma, slope), ((0, 0), (0, 1))).ravel()


def _solve(
    here: Normal, damping: float, held: np.ndarray, data: Data, lam: np.ndarray, move_lam: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the damped arrow system: eliminate the λ_i, solve for the atoms, substitute back."""
    matrix = here.atoms.copy()
    diagonal = np.diag(matrix)
    ridge = 1e-12 * diagonal.max(initial=0) + np.finfo(np.float64).tiny
    matrix[np.diag_indices_from(matrix)] += damping * diagonal + ridge
    slope = here.atoms_slope.copy()
    backward, lam_part = None, None
    if move_lam:
        backward, lam_part = _eliminate(here, damping, data, lam)
        cross = here.cross.transpose(1, 0, 2).reshape(len(matrix), -1)
        matrix -= cross @ backward.reshape(-1, len(matrix))
        slope -= cross @ lam_part.ravel()
    matrix[held], matrix[:, held], slope[held] = 0, 0, 0
    matrix[held, held] = 1
    try:
        step = linalg.cho_solve(linalg.cho_factor(matrix), slope)
    except linalg.LinAlgError:
        # Rounding has made the matrix indefinite; the caller will raise the damping.
        step = slope / np.maximum(np.diag(here.atoms), ridge) * min(1.0, 1 / damping)
    if backward is None or lam_part is None:
        return step, np.zeros_like(lam)
    return step, lam_part - backward @ step


def _eliminate(
    here: Normal, damping: float, data: Data, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return H_i⁻¹ C_iᵀ and H_i⁻¹ b_i for every image, with λ on a bound held there."""
    box = data.transformation.parameters
    held = held_at_bounds(box, lam, here.lam_slope)
    # Units of the box make the parameters comparable.
    width = box.width * ~held
    metric = here.lam * width[:, :, None] * width[:, None, :]
    diagonal = np.einsum("idd->id", metric)
    ridge = 1e-9 * diagonal.max(axis=1, keepdims=True) + np.finfo(np.float64).tiny
    metric = metric + np.einsum("id,de->ide", damping * diagonal + ridge + held, np.eye(box.dim))
    right = np.concatenate(
        [
            here.cross.transpose(0, 2, 1) * width[:, :, None],
            (here.lam_slope * width)[:, :, None],
        ],
        axis=2,
    )
    solved = np.linalg.solve(metric, right) * width[:, :, None]
    return solved[:, :, :-1], solved[:, :, -1]
