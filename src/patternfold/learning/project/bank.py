"""Global stage of the projection: all images against a bank of templates, in one matrix product.

The squared distance to a template is ‖u‖² − 2⟨u, U_λ(p)⟩ + ‖U_λ(p)‖². Templates are the pattern
rendered at every node of a lattice over Λ, on a window widened by the largest shift, and all the
shifted windows cut out of it. What has left the window is not counted in the norm, just as in the
distance itself. Images and pattern are blurred alike, and compared on few pixels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.distance import Distance
from patternfold.learning.effort import Effort
from patternfold.learning.lighting import PLAIN, Lighting, bounded_gain, largest_gain
from patternfold.learning.project.lattice import (
    CoarsePixels,
    Lattice,
    coarse_pixels,
    make_lattice,
)
from patternfold.learning.terms import Terms
from patternfold.model.atoms import Atoms
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled


class Bank(eqx.Module):
    """Templates of all patterns, shifts and nodes, in this order (M·S·G, P), and their energies.

    ``coarse`` is the distance on blurred images, on which candidates are improved.
    """

    templates: Float[Array, "t P"]
    energies: Float[Array, " t"]
    coarse: Distance
    down: Float[Array, "h H"]
    across: Float[Array, "w W"]
    nodes: Float[Array, "G d"]
    shifts: Float[Array, "S 2"]
    penalties: Float[Array, " t"] | None
    counts: tuple[int, ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)
    shift_index: tuple[int, int] | None = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of patterns, shifts and nodes."""
        per_pattern = len(self.shifts) * len(self.nodes)
        return len(self.templates) // per_pattern, len(self.shifts), len(self.nodes)


def make_bank(
    atoms: Atoms,
    transformation: AbstractTransformation,
    grid: Grid,
    effort: Effort,
    lighting: Lighting = PLAIN,
    terms: Terms | None = None,
) -> Bank:
    """Render the templates of patterns (atoms with a leading axis) as the effort asks for.

    Blurred images are compared by squares, whatever the loss: outlying pixels are blurred, too.
    """
    pixels = coarse_pixels(grid, effort.coarse_side)
    lattice = make_lattice(transformation, pixels.step, effort.spacing)
    arrays = as_arrays(pixels, lattice, atoms.coef.dtype)
    squared = None if terms is None else terms.squared
    if squared is not None:
        squared = squared.on(len(pixels.columns) * len(pixels.rows) / grid.n_pixels)
    return _make_bank(atoms, transformation, lighting, *arrays, squared)


def as_arrays(pixels: CoarsePixels, lattice: Lattice, dtype: Any) -> tuple[Any, ...]:
    """Numbers of both records, ready for compiled code; what shapes it is static."""
    (my, mx), step = lattice.margins, pixels.step
    wide_x = pixels.columns[0] + step * np.arange(-mx, len(pixels.columns) + mx)
    wide_y = pixels.rows[0] + step * np.arange(-my, len(pixels.rows) + my)
    numbers = (pixels.down, pixels.across, pixels.columns, pixels.rows, wide_x, wide_y)
    numbers = tuple(np.asarray(a, dtype) for a in (*numbers, lattice.nodes, lattice.shifts))
    blur = np.asarray(pixels.blur, dtype)
    return numbers, blur, _Shape(lattice.counts, lattice.periodic, lattice.shift_index)


@jax.tree_util.register_static
class _Shape(tuple):
    """The static part of a lattice."""

    __slots__ = ()

    def __new__(cls, *parts: Any) -> _Shape:
        return super().__new__(cls, parts)


@partial(compiled, hot=True)
def _make_bank(
    atoms: Atoms,
    transformation: AbstractTransformation,
    lighting: Lighting,
    numbers: Any,
    blur: Array,
    shape: _Shape,
    terms: Terms | None,
) -> Bank:
    none = numbers[0][0]
    coarse = Distance(atoms.blurred(blur), transformation, none, none, lighting, terms=terms)
    return bank_of(coarse, len(atoms.coef), numbers, shape)


def bank_of(coarse: Distance, n_patterns: int, numbers: Any, shape: Any) -> Bank:
    """Cut the templates of blurred patterns, those of a distance; for compiled code."""
    down, across, columns, rows, wide_x, wide_y, nodes, shifts = numbers
    x, y = jnp.tile(wide_x, len(wide_y)), jnp.repeat(wide_y, len(wide_x))
    which = jnp.repeat(jnp.arange(n_patterns), len(nodes))
    wide = replace(coarse, x=x, y=y)
    canvas = wide.values(jnp.tile(nodes, (n_patterns, 1)), which)
    h, w = len(rows), len(columns)
    windows = _windows((len(wide_y), len(wide_x)), (h, w))
    templates = canvas.reshape(n_patterns, len(nodes), -1)[:, :, windows]
    templates = jnp.moveaxis(templates, 2, 1).reshape(-1, h * w)
    coarse = replace(coarse, x=jnp.tile(columns, h), y=jnp.repeat(rows, w))
    energies = coarse.lighting.energies(templates, None)
    penalties = _penalties(coarse.terms, nodes, shifts, shape[2])
    return Bank(templates, energies, coarse, down, across, nodes, shifts, penalties, *shape)


def _penalties(
    terms: Terms | None,
    nodes: Float[Array, "G d"],
    shifts: Float[Array, "S 2"],
    shift_index: tuple[int, int] | None,
) -> Float[Array, " t"] | None:
    """The cost of λ of every template."""
    if terms is None or terms.penalty is None:
        return None
    lam = jnp.broadcast_to(nodes[None], (len(shifts), *nodes.shape))
    if shift_index is not None:
        lam = lam.at[..., jnp.asarray(shift_index)].add(shifts[:, None])
    lam = lam.reshape(-1, nodes.shape[1])
    return jax.vmap(lambda own: own(lam)[0])(terms.penalty).reshape(-1)


def _windows(wide: tuple[int, int], size: tuple[int, int]) -> np.ndarray:
    """Indices of the pixels of every window of this size in a wider one, shape (S, P)."""
    index = np.arange(wide[0] * wide[1]).reshape(wide)
    windows = np.lib.stride_tricks.sliding_window_view(index, size)
    return windows.reshape(-1, size[0] * size[1])


def pool(
    bank: Bank, images: Float[Array, "B n"], roots: Float[Array, "B n"] | None
) -> tuple[Float[Array, "B P"], Float[Array, "B P"] | None]:
    """Blurred images on coarse pixels, and the square roots of the coarse pixels' weights."""

    def blur(values: Float[Array, "B n"]) -> Float[Array, "B P"]:
        square = values.reshape(len(values), bank.down.shape[1], bank.across.shape[1])
        return jnp.einsum("ih,bhw,jw->bij", bank.down, square, bank.across).reshape(len(values), -1)

    full = blur(jnp.ones_like(images[:1]))
    if roots is None:
        # What lies outside an image is 0, unless it has an offset that nobody knows yet.
        return (blur(images) / full if bank.coarse.lighting.offset else blur(images)), None
    # Pixels that count nothing are filled in from those beside them.
    mass = blur(roots**2)
    sound = jnp.maximum(mass, 1e-6 * full)
    return blur(images * roots**2) / sound, jnp.sqrt(mass / full)


def choose_candidates(
    bank: Bank, pooled: Float[Array, "B P"], roots: Float[Array, "B P"] | None, count: int
) -> Float[Array, "B M C d"]:
    """Return the best few points of the lattice for each image and pattern.

    Local minima along the lattice come first: their neighbours mostly lead to the same place.
    """
    n_patterns, n_shifts, n_nodes = bank.shape
    cost = template_costs(bank, pooled, roots).reshape(len(pooled), n_patterns, n_shifts, n_nodes)
    least = cost.min(axis=2)
    chosen = _best_nodes(bank, least, min(count, n_nodes))
    lam = bank.nodes[chosen]
    if bank.shift_index is None:
        return lam
    at_nodes = jnp.take_along_axis(cost, chosen[:, :, None, :], axis=3)
    shift = bank.shifts[at_nodes.argmin(axis=2)]
    return lam.at[..., jnp.asarray(bank.shift_index)].add(shift)


def template_costs(
    bank: Bank, pooled: Float[Array, "B P"], roots: Float[Array, "B P"] | None
) -> Float[Array, "B t"]:
    """‖u − q‖² − ‖u‖² for every template q, in the best light, and what its λ costs."""
    costs = _squared_costs(bank, pooled, roots)
    return costs if bank.penalties is None else costs + bank.penalties[None]


def _squared_costs(
    bank: Bank, pooled: Float[Array, "B P"], roots: Float[Array, "B P"] | None
) -> Float[Array, "B t"]:
    lighting, templates = bank.coarse.lighting, bank.templates
    # Reduced precision ranks templates well enough, and is three times as fast on a GPU.
    roughly = partial(jnp.matmul, precision=jax.lax.Precision.DEFAULT)
    energies = bank.energies[None]
    weighted = lighting.less_mean(pooled, roots)[0]
    if roots is None:
        inner = roughly(weighted, templates.T)
    else:
        inner = roughly(weighted * roots, templates.T)
        energies = roughly(roots**2, (templates**2).T)
        if lighting.offset:
            mass = jnp.maximum((roots**2).sum(axis=1, keepdims=True), jnp.finfo(roots.dtype).tiny)
            energies = energies - roughly(roots**2, templates.T) ** 2 / mass
    if not lighting.gain:
        return energies - 2 * inner
    reference = jnp.asarray(bank.coarse.with_reference().reference)
    most = largest_gain((weighted**2).sum(axis=1)[:, None], reference[None])
    gain, _ = bounded_gain(inner, energies, jnp.repeat(most, len(templates) // len(reference), 1))
    return gain * (gain * energies - 2 * inner)


def _best_nodes(bank: Bank, cost: Float[Array, "B M G"], count: int) -> Array:
    """Indices of ``count`` nodes, local minima before others."""
    lattice = cost.reshape(*cost.shape[:2], *bank.counts)
    lowest = lattice
    for axis, periodic in enumerate(bank.periodic, start=2):
        if lattice.shape[axis] > 1:
            lowest = _least_of_three(lowest, axis, periodic)
    spread = cost.max(axis=2, keepdims=True) - cost.min(axis=2, keepdims=True)
    rank = jnp.where((lattice <= lowest).reshape(cost.shape), cost, cost + spread)
    return jax.lax.top_k(-rank, count)[1]


def _least_of_three(values: Array, axis: int, periodic: bool) -> Array:
    """Minimum of each value and its two neighbours along an axis."""
    window, beyond = np.ones(values.ndim, int), np.zeros((values.ndim, 2), int)
    window[axis] = 3
    if periodic:
        size = values.shape[axis]
        last, first = (jax.lax.slice_in_dim(values, k, k + 1, axis=axis) for k in (size - 1, 0))
        values = jnp.concatenate([last, values, first], axis)
    else:
        beyond[axis] = 1
    infinite = np.asarray(np.inf, values.dtype)
    steps = (1,) * values.ndim
    return jax.lax.reduce_window(
        values, infinite, jax.lax.min, tuple(window), steps, tuple(map(tuple, beyond))
    )
