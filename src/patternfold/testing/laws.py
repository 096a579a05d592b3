"""What laws are made of: random parameters and points, evaluation, and telling assertions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.model.box import Box
from patternfold.numerics.precision import precision

Map = Callable[..., Any]
"""A function (parameters, x, y) -> array or arrays: the form in which every law is stated."""

STEPS = np.logspace(-3, -5, 5)
"""Steps of the Taylor test, as fractions of a parameter's interval: small enough for the second
order to rule, large enough to leave its remainder, 1e-10, far above rounding."""

ROUNDINGS = 500
"""Rounding errors that a law may be off by: laws chain some ten operations, and the condition
of the map amplifies each of them."""


class Laws:
    """Laws of one family of maps, tried at four points of its box and 36 points of the plane.

    The centre of the box and the origin of the plane are always among them: symmetric special
    cases are where derivatives tend to break.
    """

    def __init__(self, component: object, function: Map, box: Box, dtype: Any, seed: int):
        self.name = type(component).__name__
        self.function = function
        self.box = box
        self.dtype = np.dtype(dtype)
        self.rng = np.random.default_rng(seed)
        self.parameters = sample_interior(box, self.rng, 4)
        side = np.linspace(-1, 1, 5)
        grid = np.stack(np.meshgrid(side, side)).reshape(2, -1)
        scattered = self.rng.uniform(-1, 1, size=(2, 11))
        self.points = _float32_values(np.concatenate([grid, scattered], axis=1))
        self._compiled = _compile(function)

    @cached_property
    def values(self) -> np.ndarray:
        """The map at all parameters and points."""
        return self.evaluate()

    def evaluate(
        self,
        function: Map | None = None,
        parameters: np.ndarray | None = None,
        points: np.ndarray | None = None,
        dtype: Any = None,
    ) -> np.ndarray:
        """Evaluate the map, or another, at all parameters and points.

        The result has the shape (parameters, outputs, points ...).
        """
        dtype = np.dtype(self.dtype if dtype is None else dtype)
        parameters = self.parameters if parameters is None else parameters
        x, y = self.points if points is None else points
        with precision(dtype):
            arguments = (jnp.asarray(a, dtype) for a in (parameters, x, y))
            outputs = (_compile(function) if function else self._compiled)(*arguments)
            arrays = [np.asarray(output) for output in _listed(outputs)]
        what = getattr(function or self.function, "__name__", "the map")
        shapes = sorted({array.shape for array in arrays})
        self.require(len(shapes) == 1, "outputs have one shape", f"found {shapes}")
        for array in arrays:
            law = "outputs keep the dtype"
            self.require(array.dtype == dtype, law, f"{what} makes {array.dtype} of {dtype}")
            law = "values are finite"
            self.require(np.isfinite(array).all(), law, f"{what} gives NaN or infinity")
        return np.stack(arrays, axis=1)

    def require(self, holds: Any, law: str, otherwise: str) -> None:
        """Raise an error that names the component and the law unless it holds."""
        if not holds:
            raise AssertionError(f"{self.name} breaks the law '{law}': {otherwise}.")

    def close(self, law: str, actual: np.ndarray, expected: np.ndarray) -> None:
        """Require two results to be equal up to rounding in the working precision."""
        shapes = f"shapes {actual.shape} and {expected.shape}"
        self.require(actual.shape == expected.shape, law, shapes)
        error = np.abs(actual - expected).max()
        allowed = ROUNDINGS * np.finfo(self.dtype).eps * max(1.0, np.abs(expected).max())
        self.require(error <= allowed, law, f"off by {error:.3g}, rounding allows {allowed:.3g}")

    def pointwise(self) -> None:
        """Require the map to treat points one by one, whatever the shape they come in."""

        def shuffled(parameters: jax.Array, x: jax.Array, y: jax.Array) -> list[jax.Array]:
            outputs = self.function(parameters, x[::-1].reshape(5, 6), y[::-1].reshape(5, 6))
            return [output.reshape(-1)[::-1] for output in _listed(outputs)]

        law = "points are mapped one by one, in any shape"
        expected = self.values[..., :30]
        self.close(law, self.evaluate(shuffled, points=self.points[:, :30]), expected)

    def periodic(self) -> None:
        """Require parameters that are a period apart to give the same map."""
        for k in np.flatnonzero(self.box.periodic):
            period = self.box.width * np.eye(self.box.dim)[k]
            law = f"{self.box.names[k]!r} has the period {self.box.width[k]:.6g}"
            self.close(law, self.evaluate(parameters=self.parameters + period), self.values)

    def bijective(self, jacobian: np.ndarray) -> None:
        """Require the determinant of (u_x, u_y, v_x, v_y) to keep its sign and stay off zero."""
        ux, uy, vx, vy = np.moveaxis(jacobian, 1, 0)
        for row, values in zip(self.parameters, ux * vy - uy * vx, strict=True):
            low, high = values.min(), values.max()
            where = ", ".join(f"{n}={v:.3g}" for n, v in zip(self.box.names, row, strict=True))
            self.require(
                low * high > 0 and min(abs(low), abs(high)) > 1e-6 * max(abs(low), abs(high)),
                "the map is a bijection of the plane",
                f"its Jacobian determinant runs from {low:.3g} to {high:.3g} at {where}",
            )

    def derivatives(self, what: str, derivative: Map, slopes: np.ndarray) -> None:
        """Require ``derivative`` to be that of the map, with its values in ``slopes``.

        Parameters are on its last axis. The Taylor test runs in float64; in float32, which is
        too coarse for it, the derivative must agree with the one in float64.
        """
        double = slopes
        if self.dtype != np.float64:
            double = self.evaluate(derivative, dtype=np.float64)
            self.close(f"{what} agree in {self.dtype} and float64", slopes, double)
        values = self.evaluate(parameters=self.taylor_rows, dtype=np.float64)
        self.taylor(what, values, double)

    @property
    def taylor_rows(self) -> np.ndarray:
        """All parameters moved along each axis by no step and by each, to both sides."""
        steps = np.concatenate([[0.0], STEPS, -STEPS])[None, :, None, None]
        moved = self.parameters + steps * np.diag(self.box.width)[:, None, None, :]
        return moved.reshape(-1, self.box.dim)

    def taylor(self, what: str, values: np.ndarray, slopes: np.ndarray) -> None:
        """Require |f(p ± h e) − f(p) ∓ h ∂f/∂e| to shrink like h², with f at `taylor_rows`."""
        dim, n = self.box.dim, len(self.parameters)
        values = values.reshape(dim, 1 + 2 * len(STEPS), n, *values.shape[1:])
        law = f"{what} have one entry for each parameter"
        self.require(slopes.shape == (*values.shape[2:], dim), law, f"shape {slopes.shape}")
        for k, (name, width) in enumerate(zip(self.box.names, self.box.width, strict=True)):
            start, forward, backward = np.split(values[k], [1, 1 + len(STEPS)])
            linear = np.multiply.outer(STEPS, width * slopes[..., k])
            # A kink shows on one side only: derivatives there are one-sided.
            remainders = np.maximum(
                np.abs(forward - start - linear), np.abs(backward - start + linear)
            )
            order = min(_order(remainders[:, i], values[k, :, i]) for i in range(n))
            law = f"{what}: the Taylor remainder in {name!r} is of order 2"
            self.require(order > 1.9, law, f"order {order:.2f}, so the derivative is wrong")


def sample_interior(box: Box, rng: np.random.Generator, size: int) -> np.ndarray:
    """The centre of the box and random points of it, off its bounds by more than a step."""
    offsets = 0.98 * (box.sample(rng, size) - box.centre)
    offsets[0] = 0
    return _float32_values(box.centre + offsets)


def spatial_jacobian(function: Map) -> Map:
    """Derivatives (u_x, u_y, v_x, v_y) in the plane of a map (parameters, x, y) -> (u, v)."""

    def jacobian(parameters: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)
        at = partial(function, parameters)
        ux, vx = jax.jvp(at, (x, y), (one, zero))[1]
        uy, vy = jax.jvp(at, (x, y), (zero, one))[1]
        return ux, uy, vx, vy

    return jacobian


def _compile(function: Map) -> Map:
    """Compile a map for many parameters, quickly: laws are about values, not about speed."""
    over_parameters = jax.vmap(function, in_axes=(0, None, None))
    return jax.jit(over_parameters, compiler_options={"xla_backend_optimization_level": 0})


def _order(remainders: np.ndarray, values: np.ndarray) -> float:
    """Slope of log(largest remainder) over log(step); infinite where only rounding is left."""
    largest = remainders.reshape(len(STEPS), -1).max(axis=1)
    kept = largest > 100 * np.finfo(np.float64).eps * max(1.0, np.abs(values).max())
    if kept.sum() < 2:
        return np.inf
    return float(np.polyfit(np.log(STEPS[kept]), np.log(largest[kept]), 1)[0])


def _listed(outputs: Any) -> list[jax.Array]:
    """Outputs of a map as a list, also when there is only one."""
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _float32_values(values: np.ndarray) -> np.ndarray:
    """Round to what float32 can hold, so that both precisions see the same numbers."""
    return values.astype(np.float32).astype(np.float64)
