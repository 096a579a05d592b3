"""Named, bounded, periodic parameter domains: the paper's Λ and Γ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold._validation import lookup


# Not an equinox module: those make a new object for every call of a method, which searches with
# many small steps would pay for.
@jax.tree_util.register_static
@dataclass(frozen=True, init=False)
class Box:
    """A product of intervals with a name for each; a periodic parameter wraps around.

    Parameters
    ----------
    names : sequence of str
        Parameter names.
    lower, upper : sequence of float
        Bounds, finite and with ``lower < upper``.
    periodic : sequence of str, default=()
        Names of the parameters for which ``lower`` and ``upper`` are the same point.

    Examples
    --------
    >>> box = Box(["theta", "s"], [-np.pi, 0.5], [np.pi, 2.0], periodic=["theta"])
    >>> box.put_inside(np.array([4.0, 3.0])).round(3).tolist()
    [-2.283, 2.0]
    """

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]

    def __init__(
        self,
        names: Sequence[str],
        lower: Sequence[float],
        upper: Sequence[float],
        periodic: Sequence[str] = (),
    ):
        put = object.__setattr__
        put(self, "names", tuple(names))
        put(self, "lower", tuple(float(v) for v in lower))
        put(self, "upper", tuple(float(v) for v in upper))
        if not len(self.names) == len(self.lower) == len(self.upper):
            raise ValueError(
                f"names, lower and upper have lengths {len(self.names)}, {len(self.lower)} and "
                f"{len(self.upper)}; give one lower and one upper bound for each name."
            )
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names={self.names} must be distinct.")
        for name, low, high in zip(self.names, self.lower, self.upper, strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(
                    f"bounds of {name!r} are ({low}, {high}); they must be finite, lower < upper."
                )
        for name in periodic:
            lookup("periodic", name, dict.fromkeys(self.names))
        put(self, "periodic", tuple(name in periodic for name in self.names))

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @property
    def width(self) -> np.ndarray:
        """Length of each interval."""
        return np.subtract(self.upper, self.lower)

    @property
    def centre(self) -> np.ndarray:
        """Middle of each interval."""
        return np.add(self.lower, self.upper) / 2

    def index(self, name: str) -> int:
        """Position of a parameter."""
        return lookup("parameter", name, {n: i for i, n in enumerate(self.names)})

    def part(self, where: slice) -> Box:
        """Return the box of some parameters that stand side by side."""
        flags = zip(self.names[where], self.periodic[where], strict=True)
        periodic = [name for name, flag in flags if flag]
        return Box(self.names[where], self.lower[where], self.upper[where], periodic)

    @classmethod
    def joined(cls, boxes: Sequence[Box]) -> Box:
        """Return the product of boxes."""
        names, lower, upper, flags = (
            [value for box in boxes for value in getattr(box, part)]
            for part in ("names", "lower", "upper", "periodic")
        )
        return cls(names, lower, upper, [n for n, flag in zip(names, flags, strict=True) if flag])

    def with_bounds(self, bounds: Mapping[str, tuple[float, float]]) -> Box:
        """Return a box with some bounds replaced.

        A periodic parameter stays periodic only while its interval keeps the full period.
        """
        lower, upper, periodic = list(self.lower), list(self.upper), list(self.periodic)
        for name, pair in bounds.items():
            i = self.index(name)
            try:
                low, high = (float(v) for v in pair)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"bounds[{name!r}]={pair!r} must be a pair (lower, upper)."
                ) from error
            periodic[i] = periodic[i] and math.isclose(high - low, upper[i] - lower[i])
            lower[i], upper[i] = low, high
        names = [n for n, p in zip(self.names, periodic, strict=True) if p]
        return Box(self.names, lower, upper, names)

    def containing(self, values: np.ndarray) -> Box:
        """Return the least box that has this one and all rows of ``values`` in it."""
        values = self.wrap(np.reshape(values, (-1, self.dim)))
        lower = np.minimum(self.lower, values.min(axis=0, initial=np.inf))
        upper = np.maximum(self.upper, values.max(axis=0, initial=-np.inf))
        same = np.equal(lower, self.lower).all() and np.equal(upper, self.upper).all()
        names = [name for name, p in zip(self.names, self.periodic, strict=True) if p]
        return self if same else Box(self.names, lower.tolist(), upper.tolist(), names)

    def wrap(self, values: Any) -> Any:
        """Bring periodic parameters into their interval; others are left alone."""
        xp, values = _namespace(values)
        lower, width, periodic = self._arrays(values, self.lower, self.width, self.periodic)
        return xp.where(periodic, lower + xp.mod(values - lower, width), values)

    def clip(self, values: Any) -> Any:
        """Bring parameters that are not periodic to the nearest bound; others are left alone."""
        xp, values = _namespace(values)
        lower, upper, periodic = self._arrays(values, self.lower, self.upper, self.periodic)
        return xp.where(periodic, values, xp.clip(values, lower, upper))

    def difference(self, values: Any, others: Any) -> Any:
        """Return values − others, the short way around for periodic parameters."""
        xp, apart = _namespace(values - others)
        width, periodic = self._arrays(apart, self.width, self.periodic)
        return xp.where(periodic, apart - width * xp.round(apart / width), apart)

    def separation(self, values: Any, others: Any) -> Any:
        """Return how far apart rows are: the most in any parameter, as a share of its interval."""
        xp, apart = _namespace(self.difference(values, others))
        (width,) = self._arrays(apart, self.width)
        return xp.abs(apart / width).max(axis=-1)

    def put_inside(self, values: Any) -> Any:
        """Wrap periodic parameters and clip the others: the nearest point of the box."""
        return self.clip(self.wrap(values))

    def contains(self, values: Any, tolerance: float = 1e-6) -> np.ndarray:
        """Tell for each row whether it lies in the box, up to ``tolerance`` times its width."""
        values = np.asarray(values)
        slack = tolerance * self.width
        inside = (values >= self.lower - slack) & (values <= self.upper + slack)
        return np.asarray((inside | np.asarray(self.periodic)).all(axis=-1))

    def at_bounds(self, values: Any, tolerance: float = 1e-5) -> Any:
        """Mark parameters on a bound, up to ``tolerance`` of the width; periodic ones never are."""
        xp, values = _namespace(values)
        edge = tolerance * self.width
        low, high, periodic = self._arrays(
            values, self.lower + edge, self.upper - edge, self.periodic
        )
        return ((values <= low) | (values >= high)) & ~xp.asarray(periodic)

    def require_inside(self, values: np.ndarray, argument: str) -> None:
        """Raise an error that names the parameter farthest outside in the first such row."""
        values = np.atleast_2d(values)
        outside = ~self.contains(values)
        if outside.any():
            row = int(np.argmax(outside))
            excess = np.maximum(values[row] - self.upper, self.lower - values[row]) / self.width
            k = int(np.argmax(np.where(self.periodic, -np.inf, excess)))
            name, value = self.names[k], values[row, k]
            raise ValueError(
                f"{argument}[{row}] has {name}={value:.6g}, outside its bounds "
                f"[{self.lower[k]:.6g}, {self.upper[k]:.6g}]; pass a value inside, or widen the "
                f"box with bounds={{{name!r}: (lower, upper)}}."
            )

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw ``size`` points uniformly, shape (size, dim)."""
        return rng.uniform(self.lower, self.upper, size=(size, self.dim))

    def constrain(self, free: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        """Map unconstrained values into the box: a smooth bijection onto its interior.

        Periodic parameters are wrapped; the others follow a logistic curve with slope 1 at
        the centre, so that a step means about the same on both sides.
        """
        centre, width, periodic = self._arrays(free, self.centre, self.width, self.periodic)
        inside = centre + width * (jax.nn.sigmoid(4 * (free - centre) / width) - 0.5)
        return jnp.where(periodic, self.wrap(free), inside)

    def unconstrain(self, values: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        """Invert `constrain`; values on a bound are first moved inside by rounding's width."""
        centre, width, periodic = self._arrays(values, self.centre, self.width, self.periodic)
        unit = (values - centre) / width + 0.5
        edge = jnp.finfo(values.dtype).eps
        unit = jnp.clip(unit, edge, 1 - edge)
        free = centre + width * (jnp.log(unit) - jnp.log1p(-unit)) / 4
        return jnp.where(periodic, values, free)

    @staticmethod
    def _arrays(like: Any, *constants: Any) -> tuple[Any, ...]:
        """Give constants the dtype and rank of ``like`` (bool ones keep their dtype)."""
        xp, like = _namespace(like)
        dtype = like.dtype if np.issubdtype(like.dtype, np.floating) else np.float64
        arrays = []
        for value in constants:
            array = np.asarray(value)
            array = array if array.dtype == bool else array.astype(dtype)
            arrays.append(xp.asarray(array.reshape((1,) * (like.ndim - 1) + array.shape)))
        return tuple(arrays)


def _namespace(values: Any) -> tuple[Any, Any]:
    """Return the array library of ``values``, NumPy unless they are JAX's, and them as array."""
    return (jnp, values) if isinstance(values, jax.Array) else (np, np.asarray(values))
