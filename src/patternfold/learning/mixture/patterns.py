"""Pictures of parts as patterns of atoms: all parts at once, an atom at a time.

Hundreds of parts would take longer one after the other than finding them. The next atom of each is
the best of many shapes and places for what is left of its picture, improved by a few steps with its
coefficient in closed form; now and then all atoms are improved again in turn.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.observations import Observations
from patternfold.learning.pats import learn
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.select.search import WIDEST
from patternfold.learning.state import INTERRUPTED, State
from patternfold.model.atoms import AtomFamily
from patternfold.model.box import Box
from patternfold.model.pattern import Pattern
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.compilation import compiled
from patternfold.numerics.interrupts import check_interrupts
from patternfold.numerics.least_squares import Model, minimise
from patternfold.numerics.threads import one_blas_thread

PIXELS_PER_ATOM = 8
"""Least pixels for each atom: with fewer, atoms tell nothing that the pixels do."""

CORRECT_EVERY, LAST_SWEEPS = 4, 3
"""Atoms after which all are improved in turn, and how often they are in the end."""

STEPS = 10
"""Steps that improve an atom."""

PLACES, SAMPLES = 16, 24
"""Places along the longer side where an atom is tried, and pixels on which it is: a few steps
from there find the best place on all of them."""

AT_ONCE = 2**28
"""Bytes of atoms on the pixels that exist at a time."""


def as_patterns(
    problem: Problem, pictures: np.ndarray, n_atoms: int, seed: int = 0
) -> tuple[Pattern, ...]:
    """Approximate each picture by atoms, in its own frame."""
    family = problem.family
    n_atoms = min(n_atoms, max(1, problem.grid.n_pixels // PIXELS_PER_ATOM))
    shapes = family.dictionary.shapes(problem.grid.pixel, WIDEST, family.mother.is_radial)
    if shapes is None or family.dictionary.positions is None:
        return _one_by_one(problem, pictures, n_atoms, seed)
    dtype = problem.observations.dtype
    size = max(1, AT_ONCE // (n_atoms * pictures.shape[1] * dtype.itemsize))
    patterns: list[Pattern] = []
    for begin in range(0, len(pictures), size):
        some = pictures[begin : begin + size].astype(dtype)
        coef, gamma = _all_at_once(problem, some, n_atoms, shapes)
        patterns += [
            Pattern(c, g, family.mother, family.dictionary)
            for c, g in zip(coef, gamma, strict=True)
        ]
    return tuple(patterns)


def _all_at_once(
    problem: Problem, pictures: np.ndarray, n_atoms: int, shapes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (P, K) and parameters (P, K, s) of the atoms of each picture."""
    grid, box, dtype = problem.grid, problem.atom_box, pictures.dtype
    filled = pictures[np.minimum(np.arange(padded_rows(len(pictures))), len(pictures) - 1)]
    stride = -(-max(grid.shape) // SAMPLES)
    pixels = np.arange(grid.n_pixels).reshape(grid.shape)[::stride, ::stride].ravel()
    improve = partial(
        _improve,
        pictures=filled,
        family=problem.family,
        box=box,
        place=(grid.x.astype(dtype), grid.y.astype(dtype)),
        tried=_tried(problem, shapes).astype(dtype),
        some=pixels.astype(np.int32),
    )
    middle = box.put_inside(shapes[:1]).astype(dtype)
    gamma = jnp.asarray(np.tile(middle[None], (len(filled), n_atoms, 1)))
    coef = jnp.zeros(gamma.shape[:2], gamma.dtype)
    for k in range(n_atoms):
        check_interrupts()
        gamma, coef = improve(gamma, coef, np.int32(k), np.int32(k + 1), search=True)
        last = k + 1 == n_atoms
        sweeps = LAST_SWEEPS if last else (k + 1) % CORRECT_EVERY == 0
        for j in [*range(k + 1)] * sweeps:
            gamma, coef = improve(gamma, coef, np.int32(j), np.int32(k + 1), search=False)
    found = (np.asarray(v, np.float64)[: len(pictures)] for v in (coef, gamma))
    coef, gamma = found
    return coef, box.put_inside(gamma.reshape(-1, gamma.shape[2])).reshape(gamma.shape)


def _tried(problem: Problem, shapes: np.ndarray) -> np.ndarray:
    """γ (S, Q, s) of all shapes at all places."""
    grid, box = problem.grid, problem.atom_box
    step = 2 / PLACES
    rows, columns = (
        (np.arange(count) - (count - 1) / 2) * step
        for count in (max(1, round(n * grid.pixel / step)) for n in grid.shape)
    )
    tried = np.tile(shapes[:, None], (1, len(rows) * len(columns), 1))
    names = problem.family.dictionary.positions
    assert names is not None
    tried[:, :, box.index(names[0])] = np.tile(columns, len(rows))
    tried[:, :, box.index(names[1])] = np.repeat(rows, len(columns))
    return box.put_inside(tried.reshape(-1, tried.shape[2])).reshape(tried.shape)


@partial(compiled, static_argnames=("search",))
def _improve(
    gamma: Float[Array, "P K s"],
    coef: Float[Array, "P K"],
    atom: Array,
    count: Array,
    pictures: Float[Array, "P n"],
    family: AtomFamily,
    box: Box,
    place: tuple[Array, Array],
    tried: Float[Array, "S Q s"],
    some: Array,
    search: bool,
) -> tuple[Float[Array, "P K s"], Float[Array, "P K"]]:
    """One atom of each picture, found or improved, and then all coefficients of the first few."""
    x, y = (jnp.asarray(v) for v in place)
    number = jnp.arange(coef.shape[1], dtype=jnp.int32)
    known = (number < count).astype(coef.dtype)

    def values(gamma: Float[Array, " s"]) -> Float[Array, " n"]:
        return family.value(gamma, x, y)

    phi = jax.vmap(jax.vmap(values))(gamma)
    others = coef * (known * (number != atom).astype(coef.dtype))[None]
    left = pictures - jnp.einsum("pk,pkn->pn", others, phi)
    start = gamma[:, atom]
    if search:
        start = _best_tried(left[:, some], family, tried, x[some], y[some])
    end = minimise(partial(_model, left=left, family=family, x=x, y=y), start, box, STEPS)
    gamma = gamma.at[:, atom].set(end.point)
    phi = phi.at[:, atom].set(jax.vmap(values)(end.point)) * known[None, :, None]
    gram, along = jnp.einsum("pkn,pln->pkl", phi, phi), jnp.einsum("pkn,pn->pk", phi, pictures)
    trace = jnp.einsum("pkk->p", gram)
    # Atoms that are yet to come have no place in the equations; those alike share a coefficient.
    ridge = 1e-6 * trace[:, None] + (1 - known)[None] * jnp.maximum(trace, 1e-30)[:, None] + 1e-30
    gram = gram + ridge[:, :, None] * jnp.eye(len(known), dtype=gram.dtype)[None]
    return gamma, jnp.linalg.solve(gram, along[..., None])[..., 0] * known[None]


def _best_tried(
    left: Float[Array, "P m"], family: AtomFamily, tried: Float[Array, "S Q s"], x: Array, y: Array
) -> Float[Array, "P s"]:
    """The atom that takes most away from each picture."""

    def of_shape(best: tuple[Array, Array], gamma: Float[Array, "Q s"]) -> tuple[Any, None]:
        phi = jax.vmap(lambda own: family.value(own, x, y))(gamma)
        energy = (phi**2).sum(axis=1)
        sound = energy > 1e-3 * energy.max()
        gain = jnp.where(sound[None], (left @ phi.T) ** 2 / jnp.maximum(energy, 1e-30)[None], 0)
        most, where = gain.max(axis=1), gamma[gain.argmax(axis=1)]
        better = most > best[0]
        return (jnp.where(better, most, best[0]), jnp.where(better[:, None], where, best[1])), None

    none = jnp.full(len(left), -1.0, left.dtype), jnp.zeros((len(left), tried.shape[2]), left.dtype)
    return jax.lax.scan(of_shape, none, tried)[0][1]


def _model(
    gamma: Float[Array, "P s"],
    left: Float[Array, "P n"],
    family: AtomFamily,
    x: Array,
    y: Array,
) -> Model:
    """‖r − c φ_γ‖² with the best c, and its derivatives in γ to first order (Kaufman)."""

    def both(gamma: Float[Array, " s"]) -> tuple[Array, Array]:
        value, slopes = family.derivatives(gamma, x, y)
        return value, jnp.stack(slopes)

    phi, slopes = jax.vmap(both)(gamma)
    energy = jnp.maximum((phi**2).sum(axis=1), 1e-30)
    coef = (phi * left).sum(axis=1) / energy
    rest = left - coef[:, None] * phi
    along = jnp.einsum("psn,pn->ps", slopes, phi) / energy[:, None]
    slopes = coef[:, None, None] * (slopes - along[:, :, None] * phi[:, None])
    metric = jnp.einsum("psn,ptn->pst", slopes, slopes)
    return Model((rest**2).sum(axis=1), jnp.einsum("psn,pn->ps", slopes, rest), metric)


def _one_by_one(
    problem: Problem, pictures: np.ndarray, n_atoms: int, seed: int
) -> tuple[Pattern, ...]:
    """The same for dictionaries that know neither shapes nor places of their atoms."""
    images = problem.observations
    settings = Settings(
        n_atoms,
        tangent_refinement=False,
        projection="fixed",
        settle=False,
        correct_every=CORRECT_EVERY,
        seed=seed,
    )
    identity = problem.transformation.parameters.put_inside(problem.transformation.identity)
    lam = identity[None].astype(images.dtype)
    patterns = []
    with one_blas_thread():
        for picture in pictures.astype(images.dtype):
            alone = Observations.put(picture[None], images.grid)
            own = replace(problem, observations=alone, anchor=0)
            learned = learn(own, settings, State(problem.empty, lam, own.energy))
            if learned.reason == INTERRUPTED:
                raise KeyboardInterrupt
            patterns.append(learned.state.pattern)
    return tuple(patterns)
