"""New components with formulas, as a user might write them; several tests register or draw them."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from patternfold import Box
from patternfold.dictionaries import AbstractDictionary
from patternfold.mothers import AbstractMother, AbstractRadialMother
from patternfold.transformations import AbstractAffineTransformation, AbstractTransformation


class ShearTranslation(AbstractAffineTransformation):
    """(x, y) = K(k) (x', y') + t."""

    parameters: Box = Box(["k", "right", "down"], [-0.5, -0.4, -0.4], [0.5, 0.4, 0.4])
    translation: tuple[str, str] | None = eqx.field(default=("right", "down"), static=True)
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        return np.zeros(3)

    def linear(self, lam: Any) -> Any:
        return jnp.eye(2, dtype=lam.dtype).at[0, 1].set(lam[0])

    def shift(self, lam: Any) -> Any:
        return lam[1:]

    def from_linear(self, linear: Any, shift: Any) -> Any:
        return jnp.concatenate([linear[0, 1:], shift])

    def formula(self) -> str:
        return "([k, right, down], x, y) => [x - right - k * (y - down), y - down]"


class Bend(AbstractTransformation):
    """(x', y') = (x, y − k x²): not affine."""

    parameters: Box = Box(["k"], [-0.5], [0.5])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)

    @property
    def identity(self) -> np.ndarray:
        return np.zeros(1)

    def coordinates(self, lam: Any, x: Any, y: Any) -> Any:
        return x, y - lam[0] * x**2

    def inverse_coordinates(self, lam: Any, x: Any, y: Any) -> Any:
        return x, y + lam[0] * x**2

    def derivatives(self, lam: Any, x: Any, y: Any) -> Any:
        return jnp.zeros_like(x)[None], -(x**2)[None]

    def tangent_products(self, lam: Any, x: Any, y: Any, along_x: Any, along_y: Any, w: Any) -> Any:
        vectors = -(along_y * x**2)[None]
        return vectors @ vectors.T, vectors @ w

    def formula(self) -> str:
        return "([k], x, y) => [x, y - k * x * x]"


class SoftExponential(AbstractRadialMother):
    """A Gaussian near the origin that decays like exp(−β r) far away."""

    beta: float = eqx.field(default=1.0, static=True)

    def profile(self, z: Any) -> Any:
        r = jnp.sqrt(1 + z)
        value = jnp.exp(self.beta * (1 - r))
        return value, -self.beta * value / (2 * r)

    def formula(self) -> str:
        return f"(z) => Math.exp({self.beta!r} * (1 - Math.sqrt(1 + z)))"


class Ridge(AbstractMother):
    """A ripple under a Gaussian: not radial."""

    frequency: float = eqx.field(default=3.0, static=True)

    def __call__(self, x: Any, y: Any) -> Any:
        return jnp.cos(self.frequency * x) * jnp.exp(-(x**2) - y**2)

    def field(self, x: Any, y: Any) -> Any:
        value, under = self(x, y), jnp.exp(-(x**2) - y**2)
        along_x = -self.frequency * jnp.sin(self.frequency * x) * under - 2 * x * value
        return value, along_x, -2 * y * value

    def formula(self) -> str:
        return f"(u, v) => Math.cos({self.frequency!r} * u) * Math.exp(-u * u - v * v)"


class RoundAtoms(AbstractDictionary):
    """(u, v) = (x − τ) / σ."""

    parameters: Box = Box(["sigma", "at_x", "at_y"], [0.05, -1.0, -1.0], [1.0, 1.0, 1.0])
    is_affine: ClassVar[bool] = True
    positions: ClassVar[tuple[str, str] | None] = ("at_x", "at_y")

    def coordinates(self, gamma: Any, x: Any, y: Any) -> Any:
        return (x - gamma[1]) / gamma[0], (y - gamma[2]) / gamma[0]

    def jacobian(self, gamma: Any, x: Any, y: Any) -> Any:
        zero = jnp.zeros_like(gamma[0])
        return (1 / gamma[0], zero), (zero, 1 / gamma[0])

    def derivatives(self, gamma: Any, x: Any, y: Any) -> Any:
        du, dv = jax.jacfwd(self.coordinates)(gamma, x, y)
        return list(jnp.moveaxis(du, -1, 0)), list(jnp.moveaxis(dv, -1, 0))

    def shapes(self, narrow: float, wide: float, radial: bool) -> np.ndarray:
        widths = np.geomspace(max(narrow, self.parameters.lower[0]), wide, 6)
        return np.column_stack([widths, np.zeros((6, 2))])

    def in_frame(self, gamma: Any, linear: Any, shift: Any, radial: bool) -> Any:
        if not np.allclose(linear, linear[0, 0] * np.eye(2)) or linear[0, 0] <= 0:
            return None
        return np.column_stack([gamma[:, :1], gamma[:, 1:] - shift]) / linear[0, 0]

    def blurred(self, coef: Any, gamma: Any, width: Any) -> Any:
        wider = jnp.sqrt(gamma[..., 0] ** 2 + width**2)
        return coef * (gamma[..., 0] / wider) ** 2, gamma.at[..., 0].set(wider)

    def formula(self) -> str:
        return "([sigma, atX, atY], x, y) => [(x - atX) / sigma, (y - atY) / sigma]"
