"""A function on a box, written once as a formula and evaluated in several arithmetics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.dc.algebra import variables
from patternfold.dc.jets import Jet, jet_variables
from patternfold.model.box import Box
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

Terms = Callable[..., Any]
"""A formula ``terms(x, *data)`` whose entries add up to f: x is indexed by variable, and
the operations are +, −, ·, / and those of `patternfold.dc.elementary`."""

BLOCK = 2048
"""Entries of the data that are worked on at a time: memory is bounded, and caches are warm."""

BATCHES = (1, 16)
"""Points per call of a kernel: two shapes to compile, whatever number is asked for."""


Data = tuple[Float[Array, "n m"], ...]
"""Arrays over the terms, in blocks."""


class Bounds(NamedTuple):
    """f on boxes: at their centres and, by ``rad``, how far it and its derivatives may stray."""

    value: np.ndarray  # (B,)
    low: np.ndarray  # (B,), a lower bound of f
    gradient: np.ndarray  # (B, s)
    gradient_rad: np.ndarray
    hessian: np.ndarray  # (B, s, s)
    hessian_rad: np.ndarray


class Function:
    """f = constant + Σ terms on a box.

    Parameters
    ----------
    terms : callable
        The formula, see `Terms`. Compiled code is kept per formula, so it should be hashable and
        defined once.
    box : Box
        Where f is to be minimised. Angles get an interval of at most their period.
    data : tuple of arrays of one length
        What differs between the terms. They are filled up with zeros, for which the formula must
        give 0.
    constant : float
        Added to the sum.
    dc_terms : callable, optional
        An equal formula that decomposes better; ``terms`` by default.

    Examples
    --------
    >>> from patternfold import Box
    >>> from patternfold.dc import Function
    >>> def camel(x):
    ...     return 2 * x[0] * x[0] - x[0] * x[0] * x[0] * x[0] + x[1] * x[1]
    >>> f = Function(camel, Box(["x", "y"], [-1, -1], [1, 1]))
    >>> f.values([[0.5, 0.0]]).tolist()
    [0.4375]
    >>> g, h = f.parts([[0.5, 0.0]])
    >>> bool(abs(g - h - 0.4375) < 1e-12)
    True
    """

    def __init__(
        self,
        terms: Terms,
        box: Box,
        data: tuple[np.ndarray, ...] = (),
        constant: float = 0.0,
        dc_terms: Terms | None = None,
    ):
        self.terms = terms
        self.box = box
        self._interval = np.array(box.lower), np.array(box.upper)
        self.constant = float(constant)
        self.dc_terms = dc_terms or terms
        with precision(np.dtype(np.float64)):
            self.data = tuple(_in_blocks(np.asarray(a, np.float64)) for a in data)

    def on(self, box: Box) -> Function:
        """The same function on another box; nothing is compiled anew."""
        other = object.__new__(Function)
        other.__dict__ |= self.__dict__ | {"box": box}
        other._interval = np.array(box.lower), np.array(box.upper)
        return other

    def on_interval(self, lower: np.ndarray, upper: np.ndarray) -> Function:
        """The same function on a box some of whose intervals may be single points."""
        other = self.on(self.box)
        other._interval = (lower, upper)
        return other

    def values(self, points: Any) -> np.ndarray:
        """f at points of shape (B, s)."""
        (value,) = self._map(partial(_values, self.terms), points)
        return value + self.constant

    def gradients(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """f and ∇f at points of shape (B, s)."""
        value, gradient = self._map(partial(_gradients, self.terms), points)
        return value + self.constant, gradient

    def parts(self, points: Any, rules: str = "tight") -> tuple[np.ndarray, np.ndarray]:
        """The convex parts g and h of f on the box by the rules of `DC`."""
        g, h = self._map(partial(_parts, self.dc_terms, rules), points, *self._interval)
        return self._with_constant(g, h)

    def part_gradients(
        self, points: Any, rules: str = "tight"
    ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """(g, ∇g) and (h, ∇h)."""
        kernel = partial(_part_gradients, self.dc_terms, rules)
        g, h, slope_g, slope_h = self._map(kernel, points, *self._interval)
        g, h = self._with_constant(g, h)
        return (g, slope_g), (h, slope_h)

    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> Bounds:
        """Value, gradient and Hessian on boxes, lower and upper of shape (B, s)."""
        boxes = np.stack([lower, upper], axis=1)
        # One shape only: this kernel takes longest to compile.
        found = self._map(partial(_bounds, self.terms), boxes, batches=BATCHES[-1:])
        value, low, *rest = found
        return Bounds(value + self.constant, low + self.constant, *rest)

    def _with_constant(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return g + max(self.constant, 0.0), h + max(-self.constant, 0.0)

    def _map(
        self,
        kernel: Callable[..., Any],
        points: Any,
        *shared: Any,
        batches: tuple[int, ...] = BATCHES,
    ) -> list[np.ndarray]:
        """Call a kernel on batches of points, the last one filled up."""
        points = np.asarray(points, np.float64)
        if points.ndim < 2 or points.shape[-1] != self.box.dim:
            raise ValueError(
                f"points have shape {points.shape}; {self.box.dim} variables, "
                f"{', '.join(self.box.names)}, belong in the columns of each row."
            )
        size = next((b for b in batches if b >= len(points)), batches[-1])
        outputs = []
        with precision(np.dtype(np.float64)):
            for start in range(0, max(1, len(points)), size):
                rows = points[np.minimum(np.arange(start, start + size), len(points) - 1)]
                result = kernel(rows, *shared, self.data)
                outputs.append([np.asarray(part) for part in jax.block_until_ready(result)])
        return [np.concatenate(parts)[: len(points)] for parts in zip(*outputs, strict=True)]


def _in_blocks(array: np.ndarray) -> Array:
    """Cut into blocks, filled up with zeros; the number of blocks is one of a few."""
    n_blocks = padded_rows(-(-len(array) // BLOCK))
    return jnp.asarray(np.pad(array, (0, n_blocks * BLOCK - len(array))).reshape(n_blocks, BLOCK))


def _total(terms: Any, shape: tuple[int, ...]) -> Float[Array, ""]:
    return jnp.sum(jnp.broadcast_to(jnp.asarray(terms, jnp.float64), shape))


def _sum_blocks(function: Callable[..., Any], blocks: tuple[Array, ...]) -> Any:
    """Σ over blocks of pixels of ``function(*block)``: what it computes stays in the cache."""
    if not blocks:
        return function()

    def add(total: Any, block: tuple[Array, ...]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(*block)), None

    like = jax.eval_shape(function, *(b[0] for b in blocks))
    zero = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like)
    return jax.lax.scan(add, zero, blocks)[0]


def _value(terms: Terms, x: Any, data: Data) -> Float[Array, ""]:
    def block(*pixels: Array) -> Array:
        out = terms(x, *pixels)
        return _total(out, jnp.shape(out))

    return _sum_blocks(block, data)


@partial(compiled, static_argnums=0)
def _values(terms: Terms, points: Float[Array, "B s"], data: Data) -> tuple[Float[Array, " B"]]:
    return (jax.vmap(lambda x: _value(terms, x, data))(points),)


@partial(compiled, static_argnums=0)
def _gradients(
    terms: Terms, points: Float[Array, "B s"], data: Data
) -> tuple[Float[Array, " B"], Float[Array, "B s"]]:
    def block(x: Any, *pixels: Array) -> tuple[Array, Array]:
        def value(x: Any) -> Array:
            out = terms(x, *pixels)
            return _total(out, jnp.shape(out))

        return jax.value_and_grad(value)(x)

    return jax.vmap(lambda x: _sum_blocks(partial(block, x), data))(points)


def _block_parts(
    terms: Terms, rules: str, x: Any, lower: Any, upper: Any, pixels: Any
) -> Float[Array, " 3"]:
    """Σ g, Σ h and Σ k over a block of pixels."""
    f = terms(variables(x, list(lower), list(upper), rules), *pixels)
    shape = jnp.broadcast_shapes(*(jnp.shape(p) for p in (f.g, f.h, f.constant)))
    return jnp.stack([_total(p, shape) for p in (f.g, f.h, f.constant)])


def _with_sign(sums: Float[Array, "B 3"]) -> tuple[Array, Array]:
    """Put what constants are left after summing where they are positive."""
    g, h, k = sums[:, 0], sums[:, 1], sums[:, 2]
    return g + jnp.maximum(k, 0.0), h + jnp.maximum(-k, 0.0)


@partial(compiled, static_argnums=(0, 1))
def _parts(
    terms: Terms, rules: str, points: Float[Array, "B s"], lower: Any, upper: Any, data: Data
) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
    def of_point(x: Any) -> Array:
        def block(*pixels: Array) -> Array:
            return _block_parts(terms, rules, x, lower, upper, pixels)

        return _sum_blocks(block, data)

    return _with_sign(jax.vmap(of_point)(points))


@partial(compiled, static_argnums=(0, 1))
def _part_gradients(
    terms: Terms, rules: str, points: Float[Array, "B s"], lower: Any, upper: Any, data: Data
) -> tuple[Array, Array, Array, Array]:
    def of_point(x: Any) -> tuple[Array, Array]:
        def block(*pixels: Array) -> tuple[Array, Array]:
            def sums(x: Any) -> tuple[Array, Array]:
                found = _block_parts(terms, rules, x, lower, upper, pixels)
                return found[:2], found

            return jax.jacfwd(sums, has_aux=True)(x)

        return _sum_blocks(block, data)

    slopes, sums = jax.vmap(of_point)(points)
    return *_with_sign(sums), slopes[:, 0], slopes[:, 1]


@partial(compiled, static_argnums=0)
def _bounds(terms: Terms, boxes: Float[Array, "B 2 s"], data: Data) -> tuple[Array, ...]:
    """Sums of a formula's jets over each box."""

    def of_box(box: Float[Array, "2 s"]) -> tuple[Array, ...]:
        def block(*pixels: Array) -> tuple[Array, ...]:
            f = terms(jet_variables(list(box[0]), list(box[1])), *pixels)
            return _sum_jet(f, boxes.shape[2])

        return _sum_blocks(block, data)

    return jax.vmap(of_box)(boxes)


def _sum_jet(f: Jet, dim: int) -> tuple[Array, ...]:
    """The sums of a jet over a block of pixels, as the fields of `Bounds`."""
    shape, zero = jnp.shape(f.mid), jnp.zeros((), jnp.float64)
    pairs = [(i, j) for i in range(dim) for j in range(i, dim)]
    sums = {
        key: (_total(ball.mid, shape), _total(ball.rad, shape))
        for key, ball in [*f.first.items(), *f.second.items()]
    }

    def listed(which: int) -> tuple[Array, Array]:
        gradient = jnp.stack([sums.get((i,), (zero, zero))[which] for i in range(dim)])
        matrix = jnp.zeros((dim, dim), jnp.float64)
        for i, j in pairs:
            if (i, j) in sums:
                entry = sums[(i, j)][which]
                matrix = matrix.at[i, j].set(entry).at[j, i].set(entry)
        return gradient, matrix

    (gradient, hessian), (gradient_rad, hessian_rad) = listed(0), listed(1)
    value, low = _total(f.mid, shape), _total(f.low, shape)
    return value, low, gradient, gradient_rad, hessian, hessian_rad
