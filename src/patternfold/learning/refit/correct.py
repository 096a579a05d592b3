"""Correction: improve atoms already chosen, their coefficients and all λ_i together.

Greedy selection never revisits an atom. Here E is minimised over everything at once by
Levenberg-Marquardt. The parameters of the atoms are common to all images while λ_i concerns only
image i, so that the normal equations are an arrow: the λ_i are eliminated image by image, inside
each chunk, and a system in the atoms' parameters alone travels, as in the bundle adjustment of
photogrammetry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.learning.observations import Chunk, Observations
from patternfold.model.atoms import AtomFamily, Atoms, evaluate_field, pad_atoms, padded_size
from patternfold.model.box import Box
from patternfold.model.manifold import tangent_vectors, warped_pixels
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import descend, held_at_bounds, inverse_definite

MANY_IMAGES = 100
"""So many images take longer to compute than another number of atoms takes to compile."""

DERIVATIVE_BYTES = {"cpu": 2**23, "gpu": 2**29, "tpu": 2**29}
"""Size of the derivatives by all atoms' parameters that exist at a time. They are gone over several
times: on a CPU they should stay in the cache."""


class Normal(NamedTuple):
    """Normal equations of E over a chunk; m = K·(s+1) parameters of atoms, d of each λ_i.

    ``own`` holds inner products of the tangents and the residual of each image, ``cross`` those of
    the atoms' derivatives with them, ``atoms`` those of the derivatives with one another, summed
    over images. They stay on the device.
    """

    atoms: Float[Array, "m m"]
    cross: Float[Array, "B m e"]
    own: Float[Array, "B e e"]


class Reduced(NamedTuple):
    """What travels: the system in the atoms' parameters with all λ_i eliminated."""

    matrix: Float[Array, "m m"]
    slope: Float[Array, " m"]


@dataclass(frozen=True)
class Equations:
    """E with its normal equations at a pattern and λ, as a point of `descend`."""

    observations: Observations
    transformation: AbstractTransformation
    pixels: np.ndarray
    box: Box
    pattern: Pattern
    lam: np.ndarray
    move_lam: bool = True

    @cached_property
    def cost(self) -> float:
        """Σ_i w_i ‖u_i − U_λi(p)‖²."""
        dim = self.lam.shape[1]
        chunks = zip(self._normal, self.observations.counts, strict=True)
        return float(sum(np.asarray(n.own[:k, dim, dim], np.float64).sum() for n, k in chunks))

    @cached_property
    def atoms_matrix(self) -> np.ndarray:
        """Second derivatives by the atoms' parameters, one block per atom."""
        order = self._order
        return self._sum(n.atoms for n in self._normal)[np.ix_(order, order)]

    @cached_property
    def atoms_slope(self) -> np.ndarray:
        """Half of the negative gradient by the atoms' parameters."""
        dim = self.lam.shape[1]
        return self._sum(n.cross[:, :, dim].sum(axis=0) for n in self._normal)[self._order]

    def step(self, damping: float) -> Equations:
        """Solve the damped arrow system and move the atoms, and λ as far as it may."""
        delta = self._solve(damping)
        by_atom = delta.reshape(self.pattern.n_atoms, -1)
        gamma = self.box.put_inside(self.pattern.gamma + by_atom[:, :-1])
        pattern = self.pattern.replace(self.pattern.coef + by_atom[:, -1], gamma)
        lam = self._moved_lam(delta, damping) if self.move_lam else self.lam
        return Equations(
            self.observations,
            self.transformation,
            self.pixels,
            self.box,
            pattern,
            lam,
            self.move_lam,
        )

    @cached_property
    def _normal(self) -> list[Normal]:
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        dtype = self.observations.dtype
        coef, gamma = pad_atoms(self.pattern.coef, self.pattern.gamma, n_padded)
        count = np.asarray(self.pattern.n_atoms, np.int32)
        atoms = Atoms(coef.astype(dtype), gamma.astype(dtype), count, self.pattern.family)
        grid = self.observations.grid
        x, y = (c[self.pixels].astype(dtype) for c in (grid.x, grid.y))
        stage = partial(_assemble, atoms=atoms, transformation=self.transformation, x=x, y=y)
        return self.observations.each(stage, self.lam.astype(dtype))

    @property
    def _order(self) -> np.ndarray:
        """From one block per parameter, padding included, to one block per atom."""
        size = self.pattern.gamma.shape[1] + 1
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        index = np.arange(n_padded * size).reshape(size, n_padded)
        return index.T[: self.pattern.n_atoms].ravel()

    def _solve(self, damping: float) -> np.ndarray:
        matrix, slope = self.atoms_matrix.copy(), self.atoms_slope.copy()
        diagonal = np.diag(matrix).copy()
        ridge = 1e-12 * diagonal.max(initial=0) + np.finfo(np.float64).tiny
        held = _held(self.box, self.pattern.gamma, slope)
        matrix[np.diag_indices_from(matrix)] += damping * diagonal + ridge
        if self.move_lam:
            reduced = self._over_chunks(partial(_eliminated, damping=self._as_scalar(damping)))
            order = self._order
            matrix -= self._sum(r.matrix for r in reduced)[np.ix_(order, order)]
            slope -= self._sum(r.slope for r in reduced)[order]
        matrix[held], matrix[:, held], slope[held] = 0, 0, 0
        matrix[held, held] = 1
        try:
            return linalg.cho_solve(linalg.cho_factor(matrix), slope)
        except linalg.LinAlgError:
            # Rounding has made the matrix indefinite; the caller will raise the damping.
            return slope / np.maximum(diagonal, ridge) * min(1.0, 1 / damping)

    def _moved_lam(self, delta: np.ndarray, damping: float) -> np.ndarray:
        padded = np.zeros(self._normal[0].atoms.shape[0], self.observations.dtype)
        padded[self._order] = delta
        stage = partial(_substituted, delta=padded, damping=self._as_scalar(damping))
        moved = [np.asarray(part) for part in self._over_chunks(stage)]
        counts = self.observations.counts
        return np.concatenate([part[:k] for part, k in zip(moved, counts, strict=True)])

    def _over_chunks(self, stage: Any) -> list[Any]:
        """Call a stage of the assembled equations for every chunk."""
        lam = self.observations.rows(self.lam.astype(self.observations.dtype))
        return [
            stage(normal, rows, transformation=self.transformation)
            for normal, rows in zip(self._normal, lam, strict=True)
        ]

    def _as_scalar(self, value: float) -> np.ndarray:
        return np.asarray(value, self.observations.dtype)

    @staticmethod
    def _sum(parts: Any) -> np.ndarray:
        return sum(np.asarray(part, np.float64) for part in parts)  # pyright: ignore


def correct_all(
    start: Equations, max_iter: int = 10, tol: float = 1e-5
) -> tuple[Pattern, np.ndarray, float]:
    """Minimise E over all atoms, coefficients and λ from where they are; E never rises.

    Parameters
    ----------
    start : Equations
        Where to start, on which images and pixels.
    max_iter : int
        Most steps.
    tol : float
        Stop when a step lowers E by less than this share of it.

    Returns
    -------
    pattern, lam, error
        The error is Σ_i w_i ‖u_i − U_λi(p)‖², not normalised.
    """
    here: Equations = [start, *descend(start, max_iter, tol)][-1]
    return here.pattern, here.lam.astype(start.observations.dtype), here.cost


@compiled
def _assemble(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    atoms: Atoms,
    transformation: AbstractTransformation,
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> Normal:
    """Normal equations of a chunk, some images at a time."""
    n_images, n_pixels = chunk.images.shape
    size = atoms.gamma.shape[1] + 1
    per_image = len(atoms.coef) * size * n_pixels * chunk.images.dtype.itemsize
    most = max(1, DERIVATIVE_BYTES.get(jax.default_backend(), 2**23) // per_image)
    at_once = min(2 ** (most.bit_length() - 1), n_images)
    while n_images % at_once:  # chunks have 2^k or 3·2^k rows
        at_once //= 2

    def add(total: Array, part: tuple[Chunk, Array]) -> tuple[Array, tuple[Array, Array]]:
        products, cross, own = _products(part[0], part[1], atoms, transformation, x, y)
        return total + products, (cross, own)

    split = jax.tree.map(
        lambda a: a.reshape(n_images // at_once, at_once, *a.shape[1:]), (chunk, lam)
    )
    m = len(atoms.coef) * size
    total, (cross, own) = jax.lax.scan(add, jnp.zeros((m, m), lam.dtype), split)
    return Normal(
        total, cross.reshape(n_images, *cross.shape[2:]), own.reshape(n_images, *own.shape[2:])
    )


def _products(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    atoms: Atoms,
    transformation: AbstractTransformation,
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, "m m"], Float[Array, "B m e"], Float[Array, "B e e"]]:
    """Inner products of the images' derivatives by atoms and by λ, and of the residuals.

    All are multiplied by √|w|: weights of either sign are told apart where sums are used.
    """
    warped = warped_pixels(transformation, lam, x, y)
    root = jnp.sqrt(jnp.abs(chunk.weights))[:, None]
    if chunk.roots is not None:
        root = root * chunk.roots

    def by_parameter(c: Any, g: Any) -> list[Float[Array, "B n"]]:
        phi, by_gamma = atoms.family.derivatives(g, *warped)
        return [*(c * root * part for part in by_gamma), root * phi]

    # Each parameter's images are computed before they are put together: fused into the
    # concatenation they take ten times as long on a CPU.
    columns = jax.lax.optimization_barrier(jax.vmap(by_parameter)(atoms.coef, atoms.gamma))
    of_atoms = jax.lax.optimization_barrier(jnp.concatenate(columns))
    value, along_x, along_y = evaluate_field(atoms, *warped)
    vectors = tangent_vectors(transformation, lam, x, y, root * along_x, root * along_y)
    own = jnp.concatenate([vectors, (root * (chunk.images - value))[:, None]], axis=1)
    flat = of_atoms.reshape(len(of_atoms), -1)
    return (
        flat @ flat.T,
        jnp.einsum("min,ien->ime", of_atoms, own),
        jnp.einsum("ien,ifn->ief", own, own),
    )


@compiled
def _eliminated(
    normal: Normal, lam: Float[Array, "B d"], damping: Array, transformation: AbstractTransformation
) -> Reduced:
    """Σ C_i H_i⁻¹ C_iᵀ and Σ C_i H_i⁻¹ b_i: what eliminating the λ_i takes off."""
    inverse = _inverse_metric(normal, lam, damping, transformation.parameters)
    dim = lam.shape[1]
    solved = jnp.einsum("imd,ide->ime", normal.cross[:, :, :dim], inverse)
    flat, cross = (
        jnp.moveaxis(a, 1, 0).reshape(a.shape[1], -1) for a in (solved, normal.cross[:, :, :dim])
    )
    return Reduced(flat @ cross.T, flat @ normal.own[:, :dim, dim].reshape(-1))


@compiled
def _substituted(
    normal: Normal,
    lam: Float[Array, "B d"],
    delta: Float[Array, " m"],
    damping: Array,
    transformation: AbstractTransformation,
) -> Float[Array, "B d"]:
    """λ_i after the step that goes with the atoms' step ``delta``."""
    box, dim = transformation.parameters, lam.shape[1]
    inverse = _inverse_metric(normal, lam, damping, box)
    right = normal.own[:, :dim, dim] - jnp.einsum("imd,m->id", normal.cross[:, :, :dim], delta)
    return box.put_inside(lam + jnp.einsum("ide,ie->id", inverse, right))


def _inverse_metric(
    normal: Normal, lam: Float[Array, "B d"], damping: Array, box: Box
) -> Float[Array, "B d d"]:
    """H_i⁻¹, damped, with λ on a bound held there."""
    dim = lam.shape[1]
    held = held_at_bounds(box, lam, normal.own[:, :dim, dim])
    # Units of the box make the parameters comparable.
    width = jnp.where(held, 0, jnp.asarray(box.width, lam.dtype)[None])
    units = width[:, :, None] * width[:, None, :]
    metric = normal.own[:, :dim, :dim] * units
    diagonal = jnp.einsum("idd->id", metric)
    # Images that weigh nothing have no curvature: their λ stays.
    ridge = jnp.finfo(lam.dtype).eps * diagonal.max(axis=1, keepdims=True)
    ridge = ridge + jnp.finfo(lam.dtype).tiny ** 0.5
    extra = jnp.where(held, 1, damping * diagonal + ridge)
    return inverse_definite(metric, extra) * units


def correct_coefficients(
    pattern: Pattern,
    lam: np.ndarray,
    observations: Observations,
    transformation: AbstractTransformation,
) -> tuple[Pattern, float]:
    """Solve for all coefficients with atoms and λ as they are: linear least squares."""
    dtype, n_atoms = observations.dtype, pattern.n_atoms
    gamma = pad_atoms(pattern.coef, pattern.gamma, padded_size(n_atoms))[1].astype(dtype)
    grid = observations.grid
    stage = partial(
        _atom_products,
        family=pattern.family,
        gamma=gamma,
        transformation=transformation,
        x=grid.x.astype(dtype),
        y=grid.y.astype(dtype),
    )
    gram, along = observations.total(stage, lam.astype(dtype))
    matrix, right = gram[:n_atoms, :n_atoms], along[:n_atoms]
    energy = observations.energy

    def cost(coef: np.ndarray) -> float:
        return max(0.0, energy - 2 * float(coef @ right) + float(coef @ matrix @ coef))

    ridge = 1e-7 * np.trace(matrix) / max(1, n_atoms) * np.eye(n_atoms)
    coef = linalg.solve(matrix + ridge, right, assume_a="sym")
    best = min((pattern.coef, coef), key=cost)
    return pattern.replace(best, pattern.gamma), cost(best)


@compiled
def _atom_products(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    family: AtomFamily,
    gamma: Float[Array, "K s"],
    transformation: AbstractTransformation,
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, "K K"], Float[Array, " K"]]:
    """Σ w_i⟨U_λi(φ_j), U_λi(φ_k)⟩ and Σ w_i⟨U_λi(φ_j), u_i⟩, image by image."""

    def add(total: tuple[Array, Array], row: tuple[Any, ...]) -> tuple[tuple[Array, Array], None]:
        image, weight, root, lam = row
        warped = transformation.coordinates(lam, x, y)
        phi = jax.vmap(family.value, in_axes=(0, None, None))(gamma, *warped)
        if root is not None:
            phi, image = phi * root[None], image * root
        return (total[0] + weight * (phi @ phi.T), total[1] + weight * (phi @ image)), None

    k = len(gamma)
    zero = (jnp.zeros((k, k), lam.dtype), jnp.zeros(k, lam.dtype))
    rows = (chunk.images, chunk.weights, chunk.roots, lam)
    return jax.lax.scan(add, zero, rows)[0]


def least_useful(equations: Equations) -> int:
    """Return the atom whose loss costs least, the other coefficients adapting."""
    pattern = equations.pattern
    size = pattern.gamma.shape[1] + 1
    rows = np.arange(pattern.n_atoms) * size + size - 1
    matrix = equations.atoms_matrix[np.ix_(rows, rows)]
    inverse = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    return int(np.argmin(pattern.coef**2 / np.maximum(np.diag(inverse), 1e-300)))


def padded_atoms(n_atoms: int, n_images: int) -> int:
    """Number of atoms with padding: fine steps where computing outweighs compiling."""
    step = 8 if n_atoms <= 8 or n_images >= MANY_IMAGES else 24
    return -(-n_atoms // step) * step


def _held(box: Box, gamma: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Mark parameters of atoms, coefficients included, that are held at a bound."""
    by_atom = slope.reshape(len(gamma), -1)[:, :-1]
    return np.pad(held_at_bounds(box, gamma, by_atom), ((0, 0), (0, 1))).ravel()
