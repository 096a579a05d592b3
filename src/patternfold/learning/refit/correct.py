"""Correction: improve atoms already chosen, their coefficients and all λ_i together.

Greedy selection never revisits an atom. Here E is minimised over everything at once by
Levenberg-Marquardt. The parameters of the atoms are common to all images while λ_i concerns only
image i, so that the normal equations are an arrow: the λ_i are eliminated image by image, inside
each chunk, and a system in the atoms' parameters alone travels, as in the bundle adjustment of
photogrammetry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.learning.distance import Distance
from patternfold.learning.lighting import Fit
from patternfold.learning.observations import Chunk, Observations
from patternfold.learning.terms import Terms
from patternfold.model.atoms import Atoms, evaluate_field, pad_atoms
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
    """E and its normal equations in the m = K·(s+1) parameters of the atoms."""

    cost: np.ndarray
    atoms: np.ndarray
    slope: np.ndarray


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


class Reduced(NamedTuple):
    """Normal equations in the atoms' parameters with λ eliminated: sums over any set of images.

    ``diagonal`` is that of the equations before, which damping is in units of; ``alone`` by how
    much E falls where the λ_i move alone.
    """

    cost: np.ndarray
    diagonal: np.ndarray
    matrix: np.ndarray
    slope: np.ndarray
    alone: np.ndarray


class Eliminated(NamedTuple):
    """What eliminating the λ_i takes off the atoms' equations, and the H_i⁻¹ that do it.

    ``gain`` is by how much E falls where the λ_i move alone.
    """

    matrix: Float[Array, "m m"]
    slope: Float[Array, " m"]
    gain: Float[Array, ""]
    inverse: Float[Array, "B d d"]


@dataclass(frozen=True)
class Sampling:
    """The images at some pixels, in parts that have equally many of them.

    Sums over the parts are sums over all these pixels, by the same compiled code for few and many.
    """

    parts: tuple[Observations, ...]
    pixels: tuple[np.ndarray, ...]

    @cached_property
    def coordinates(self) -> list[tuple[Array, Array]]:
        """The x and y of each part's pixels, on the device."""
        grid, dtype = self.parts[0].grid, self.parts[0].dtype
        # Put there as they are: `jnp.asarray` would compile something for it.
        return jax.device_put(
            [(grid.x[some].astype(dtype), grid.y[some].astype(dtype)) for some in self.pixels]
        )


@dataclass(frozen=True)
class Equations:
    """E with its normal equations at a pattern and λ, as a point of `descend`.

    λ of the image ``anchor`` is held: the pattern's frame is its own.
    """

    sampling: Sampling
    transformation: AbstractTransformation
    box: Box
    pattern: Pattern
    lam: np.ndarray
    move_lam: bool = True
    known_cost: float | None = None
    promised: float = np.inf
    terms: Terms | None = None
    anchor: int | None = None

    @cached_property
    def cost(self) -> float:
        """Σ_i |w_i| ‖u_i − U_λi(p)‖²."""
        return float(self.normal.cost) if self.known_cost is None else self.known_cost

    @cached_property
    def normal(self) -> Normal:
        """The normal equations in the atoms' parameters, one block per atom."""
        order = self._order
        parts = jax.device_get([(n.cost, n.atoms, n.slope) for n in self._assembled])
        cost, matrix, slope = (_float_sum(part) for part in zip(*parts, strict=True))
        return Normal(cost, matrix[np.ix_(order, order)], slope[order])

    def step(self, damping: float) -> Equations:
        """Solve the damped arrow system and move the atoms, and λ as far as it may."""
        eliminated = self._eliminate(damping) if self.move_lam else []
        delta, promised = self._solve(damping, eliminated)
        by_atom = delta.reshape(self.pattern.n_atoms, -1)
        gamma = self.box.put_inside(self.pattern.gamma + by_atom[:, :-1])
        pattern = self.pattern.replace(self.pattern.coef + by_atom[:, -1], gamma)
        lam, cost = self._tried(pattern, delta, [e.inverse for e in eliminated])
        return replace(self, pattern=pattern, lam=lam, known_cost=cost, promised=promised)

    @property
    def _images(self) -> Observations:
        return self.sampling.parts[0]

    @cached_property
    def _rows(self) -> list[Array]:
        """λ of each chunk, on its device."""
        return self._images.on_devices(self.lam)

    @property
    def _dtype(self) -> np.dtype:
        return self._images.dtype

    @cached_property
    def _assembled(self) -> list[Assembled]:
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        coef, gamma = pad_atoms(self.pattern.coef, self.pattern.gamma, n_padded)
        count = np.asarray(self.pattern.n_atoms, np.int32)
        atoms = Atoms(
            coef.astype(self._dtype), gamma.astype(self._dtype), count, self.pattern.family
        )
        parts = [
            [
                _assemble(chunk, lam, distance)
                for chunk, lam in zip(part.chunks, self._rows, strict=True)
            ]
            for part, distance in zip(self.sampling.parts, self._distances(atoms), strict=True)
        ]
        return self._held([reduce(_added, same) for same in zip(*parts, strict=True)])

    def _held(self, assembled: list[Assembled]) -> list[Assembled]:
        """The equations with the anchor's λ as it is."""
        if self.anchor is None:
            return assembled
        free = (np.arange(len(self.lam)) != self.anchor).astype(self._dtype)
        rows = self._images.on_devices(free)
        return [_without_tangents(a, part) for a, part in zip(assembled, rows, strict=True)]

    def _distances(self, atoms: Atoms) -> list[Distance]:
        """The distance on the pixels of each part."""
        lighting, places = self._images.lighting, self.sampling.coordinates
        n_pixels = self._images.grid.n_pixels
        return [
            Distance(
                atoms,
                self.transformation,
                x,
                y,
                lighting,
                terms=self.terms and self.terms.on(len(x) / n_pixels),
            )
            for x, y in places
        ]

    @property
    def _order(self) -> np.ndarray:
        """From one block per parameter, padding included, to one block per atom."""
        size = self.pattern.gamma.shape[1] + 1
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        index = np.arange(n_padded * size).reshape(size, n_padded)
        return index.T[: self.pattern.n_atoms].ravel()

    def _eliminate(self, damping: float) -> list[Eliminated]:
        """Eliminate the λ_i inside each chunk."""
        box, scalar = self.transformation.parameters, np.asarray(damping, self._dtype)
        pairs = zip(self._assembled, self._rows, strict=True)
        return [_eliminated(assembled, lam, scalar, box) for assembled, lam in pairs]

    def _solve(self, damping: float, eliminated: list[Eliminated]) -> tuple[np.ndarray, float]:
        """Step of the atoms, and the decrease of E that it promises together with that of λ."""
        held = held_parameters(self.box, self.pattern.gamma, self.normal.slope)
        return solve_damped(self._reduced(eliminated), held, damping)

    def reduced(self, damping: float) -> Reduced:
        """The equations with the λ_i eliminated, these damped by so much."""
        return self._reduced(self._eliminate(damping))

    def _reduced(self, eliminated: list[Eliminated]) -> Reduced:
        cost, matrix, slope = self.normal
        diagonal, matrix, slope = np.diag(matrix).copy(), matrix.copy(), slope.copy()
        alone = np.zeros(())
        if eliminated:
            taken = jax.device_get([e[:3] for e in eliminated])
            less_matrix, less_slope, alone = (_float_sum(p) for p in zip(*taken, strict=True))
            matrix -= less_matrix[np.ix_(self._order, self._order)]
            slope -= less_slope[self._order]
        return Reduced(cost, diagonal, matrix, slope, alone)

    def _tried(
        self, pattern: Pattern, delta: np.ndarray, inverses: list[Array]
    ) -> tuple[np.ndarray, float]:
        """λ after the step, and the cost there."""
        padded = np.zeros(self._assembled[0].slope.shape[0], self._dtype)
        padded[self._order] = delta
        atoms = pattern.atoms(self._dtype)
        lam, total = self._rows, 0.0
        if self.move_lam:
            pairs = zip(self._assembled, lam, inverses, strict=True)
            box = self.transformation.parameters
            lam = [_moved(a, rows, inverse, padded, box) for a, rows, inverse in pairs]
        costs = [
            _cost(chunk, rows, distance)
            for part, distance in zip(self.sampling.parts, self._distances(atoms), strict=True)
            for chunk, rows in zip(part.chunks, lam, strict=True)
        ]
        costs, lam = jax.device_get((costs, lam if self.move_lam else []))
        total = float(np.sum(costs, dtype=np.float64))
        if not self.move_lam:
            return self.lam, total
        counts = self._images.counts
        return np.concatenate([part[:k] for part, k in zip(lam, counts, strict=True)]), total


def solve_damped(equations: Reduced, held: np.ndarray, damping: float) -> tuple[np.ndarray, float]:
    """Step of the atoms, some parameters held, and the decrease of E that it promises with λ's."""
    _, diagonal, matrix, slope, alone = equations
    matrix, slope = matrix.copy(), slope.copy()
    ridge = 1e-12 * diagonal.max(initial=0) + np.finfo(np.float64).tiny
    matrix[np.diag_indices_from(matrix)] += damping * diagonal + ridge
    matrix[held], matrix[:, held], slope[held] = 0, 0, 0
    matrix[held, held] = 1
    try:
        delta = linalg.cho_solve(linalg.cho_factor(matrix), slope)
    except linalg.LinAlgError:
        # Rounding has made the matrix indefinite; the caller will raise the damping.
        return slope / np.maximum(diagonal, ridge) * min(1.0, 1 / damping), np.inf
    # (M + μD) δ = b, so that 2 δᵀb − δᵀM δ = δᵀb + μ δᵀD δ.
    damped = damping * float(np.where(held, 0, diagonal) @ delta**2)
    return delta, float(delta @ slope) + damped + float(alone)


def _float_sum(parts: Any) -> Any:
    """Sum over chunks, in their order, in float64."""
    return np.sum(np.asarray(parts, np.float64), axis=0)


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
    return here.pattern, here.lam.astype(start.lam.dtype), here.cost


@compiled
def _assemble(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Assembled:
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


def counted(chunk: Chunk) -> Float[Array, " B"]:
    """Number of pixels that count, of each image."""
    n_images, n_pixels = chunk.images.shape
    if chunk.roots is None:
        return jnp.full(n_images, n_pixels, chunk.images.dtype)
    return jnp.maximum((chunk.roots**2).sum(axis=1), 1)


@compiled
def reweighted_chunk(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Chunk:
    """The chunk with pixels and images weighing as the loss says at the residuals."""
    fit = distance.fit(chunk.images, chunk.roots, distance.values(lam))
    weights, terms = chunk.weights, distance.terms
    assert terms is not None
    costs = fit.cost if terms.penalty is None else fit.cost + terms.penalty(lam)[0]
    return Chunk(chunk.images, weights * terms.of_images(costs, counted(chunk))[1], fit.roots)


@partial(compiled, small=True)
def _eliminated(
    assembled: Assembled, lam: Float[Array, "B d"], damping: Array, box: Box
) -> Eliminated:
    """Σ C_i H_i⁻¹ C_iᵀ and Σ C_i H_i⁻¹ b_i."""
    dim = lam.shape[1]
    inverse = _inverse_metric(assembled.own, lam, damping, box)
    cross = assembled.cross[:, :, :dim]
    solved = jnp.einsum("imd,ide->ime", cross, inverse)
    flat, cross = (jnp.moveaxis(a, 1, 0).reshape(a.shape[1], -1) for a in (solved, cross))
    own = assembled.own[:, :dim, dim]
    alone = jnp.einsum("ide,ie->id", inverse, own)
    left = 2 * own - jnp.einsum("ide,ie->id", assembled.own[:, :dim, :dim], alone)
    gain = (alone * left).sum()
    return Eliminated(flat @ cross.T, flat @ own.reshape(-1), gain, inverse)


@partial(compiled, small=True)
def _moved(
    assembled: Assembled,
    lam: Float[Array, "B d"],
    inverse: Float[Array, "B d d"],
    delta: Float[Array, " m"],
    box: Box,
) -> Float[Array, "B d"]:
    """λ_i after the steps that go with the atoms' step ``delta``."""
    dim = lam.shape[1]
    along = jnp.einsum("imd,m->id", assembled.cross[:, :, :dim], delta)
    step = jnp.einsum("ide,ie->id", inverse, assembled.own[:, :dim, dim] - along)
    return box.put_inside(lam + step)


@partial(compiled, hot=True)
def _cost(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Float[Array, ""]:
    """Σ |w_i| ‖u_i − U_λi(p)‖²."""
    squares = distance.squares(chunk.images, chunk.roots, lam)
    if distance.terms is not None:
        squares, _ = distance.terms.of_images(squares, counted(chunk))
    return (jnp.abs(chunk.weights) * squares).sum()


def _inverse_metric(
    own: Float[Array, "B e e"], lam: Float[Array, "B d"], damping: Array, box: Box
) -> Float[Array, "B d d"]:
    """H_i⁻¹, damped, with λ on a bound held there."""
    dim = lam.shape[1]
    held = held_at_bounds(box, lam, own[:, :dim, dim])
    # Units of the box make the parameters comparable.
    width = jnp.where(held, 0, jnp.asarray(box.width, lam.dtype)[None])
    units = width[:, :, None] * width[:, None, :]
    metric = own[:, :dim, :dim] * units
    diagonal = jnp.einsum("idd->id", metric)
    # Images that weigh nothing have no curvature: their λ stays.
    ridge = jnp.finfo(lam.dtype).eps * diagonal.max(axis=1, keepdims=True)
    ridge = ridge + jnp.finfo(lam.dtype).tiny ** 0.5
    extra = jnp.where(held, 1, damping * diagonal + ridge)
    return inverse_definite(metric, extra) * units


@partial(compiled, small=True)
def _added(one: Assembled, other: Assembled) -> Assembled:
    return jax.tree.map(jnp.add, one, other)


@compiled
def _without_tangents(assembled: Assembled, free: Float[Array, " B"]) -> Assembled:
    """The equations of images that are not free as if no λ changed them: theirs then stays."""
    dim = assembled.own.shape[1] - 1
    factor = jnp.ones((len(free), dim + 1), free.dtype).at[:, :dim].set(free[:, None])
    cross = assembled.cross * factor[:, None, :]
    own = assembled.own * factor[:, None, :] * factor[:, :, None]
    return assembled._replace(cross=cross, own=own)


@partial(compiled, hot=True)
def squares_of(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> Float[Array, " B"]:
    """‖u_i − U_λi(p)‖² of a chunk."""
    return distance.squares(chunk.images, chunk.roots, lam)


def least_useful(equations: Equations) -> int:
    """Return the atom whose loss costs least, the other coefficients adapting."""
    pattern = equations.pattern
    size = pattern.gamma.shape[1] + 1
    rows = np.arange(pattern.n_atoms) * size + size - 1
    matrix = equations.normal.atoms[np.ix_(rows, rows)]
    inverse = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    return int(np.argmin(pattern.coef**2 / np.maximum(np.diag(inverse), 1e-300)))


def padded_atoms(n_atoms: int, n_images: int) -> int:
    """Number of atoms with padding: fine steps where computing outweighs compiling."""
    slow = n_images >= MANY_IMAGES and jax.default_backend() == "cpu"
    step = 8 if n_atoms <= 8 or slow else 24
    return -(-n_atoms // step) * step


def held_parameters(box: Box, gamma: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Mark parameters of atoms, coefficients included, that are held at a bound."""
    by_atom = slope.reshape(len(gamma), -1)[:, :-1]
    return np.pad(held_at_bounds(box, gamma, by_atom), ((0, 0), (0, 1))).ravel()
