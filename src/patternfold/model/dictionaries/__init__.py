"""The dictionary manifold: atoms φ_γ(x, y) = φ(b(γ, x, y)), eq. DictModel."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box

Points = Float[Array, "*p"]
Slopes = Float[Array, "*p"] | Float[Array, ""]


class AbstractDictionary(eqx.Module):
    """A family of coordinate maps b(γ, x, y) that turn the mother function into atoms."""

    parameters: eqx.AbstractVar[Box]
    """The domain Γ."""

    @abstractmethod
    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map pattern coordinates to the mother function's, (u, v) = b(γ, x, y)."""

    @abstractmethod
    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Return ((∂u/∂x, ∂u/∂y), (∂v/∂x, ∂v/∂y))."""

    @abstractmethod
    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Return ∂u/∂γ_k and ∂v/∂γ_k for every k."""

    def check(self, gamma: np.ndarray) -> None:
        """Refuse atom parameters for which b(γ, ·) is no bijection."""

    def blurred(self, coef: Any, gamma: Any, width: Any) -> tuple[Any, Any] | None:
        """Return the atoms blurred by exp(−r²/width²), or None where no closed form is known."""
        return None


class AtomDictionary(AbstractDictionary):
    """Rotation, translation and anisotropic scaling of the mother function, eq. DictModel.

    .. math:: (u, v) = diag(σ_x^{-1}, σ_y^{-1}) R(-ψ) (x - τ_x, y - τ_y)
    """

    parameters: Box = Box(
        ["psi", "tau_x", "tau_y", "sigma_x", "sigma_y"],
        [-math.pi, -1.0, -1.0, 0.02, 0.02],
        [math.pi, 1.0, 1.0, 2.0, 2.0],
        periodic=["psi"],
    )

    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Shift by −τ, turn by −ψ, divide by σ."""
        (ux, uy), (vx, vy) = self.jacobian(gamma, x, y)
        dx, dy = x - gamma[1], y - gamma[2]
        return ux * dx + uy * dy, vx * dx + vy * dy

    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Rows of diag(1/σ) R(−ψ), the same at every point."""
        c, s = jnp.cos(gamma[0]), jnp.sin(gamma[0])
        return (c / gamma[3], s / gamma[3]), (-s / gamma[4], c / gamma[4])

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Closed form: turning mixes u and v, scaling shrinks them, shifting is the Jacobian."""
        (ux, uy), (vx, vy) = self.jacobian(gamma, x, y)
        u, v = self.coordinates(gamma, x, y)
        zero, one = jnp.zeros_like(u), jnp.ones_like(u)
        sigma_x, sigma_y = gamma[3], gamma[4]
        du = [v * (sigma_y / sigma_x), -ux * one, -uy * one, -u / sigma_x, zero]
        dv = [-u * (sigma_x / sigma_y), -vx * one, -vy * one, zero, -v / sigma_y]
        return du, dv

    def blurred(self, coef: Any, gamma: Any, width: Any) -> tuple[Any, Any] | None:
        """σ² becomes σ² + width²: exact for Gaussians, near enough for other bumps."""
        sigma = gamma[..., 3:]
        wider = jnp.sqrt(sigma**2 + width**2)
        coef = coef * (sigma / wider).prod(axis=-1)
        return coef, jnp.concatenate([gamma[..., :3], wider], axis=-1)

    def check(self, gamma: np.ndarray) -> None:
        """Refuse widths σ ≤ 0."""
        for name in ("sigma_x", "sigma_y"):
            values = gamma[:, self.parameters.index(name)]
            if (values <= 0).any():
                row = int(np.argmax(values <= 0))
                raise ValueError(
                    f"gamma[{row}] has {name}={values[row]:.6g}; the widths of an atom must be "
                    "positive."
                )


class CustomDictionary(AbstractDictionary):
    """A dictionary from a JAX function ``b(gamma, x, y) -> (u, v)``.

    Parameters
    ----------
    function : callable
        The coordinate map, smooth in all arguments and a bijection in (x, y). Define it at
        module level: compiled code is kept per function object.
    parameters : Box
        The domain Γ.

    Examples
    --------
    >>> def shrink(gamma, x, y):
    ...     return x / gamma[0], y / gamma[0]
    >>> dictionary = CustomDictionary(shrink, Box(["sigma"], [0.1], [1.0]))
    """

    function: Callable[..., Any] = eqx.field(static=True)
    parameters: Box

    def __init__(self, function: Callable[..., Any], parameters: Box):
        # The inherited annotation would put ``parameters`` first.
        self.function = function
        self.parameters = parameters

    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map with the user's function."""
        u, v = self.function(gamma, x, y)
        return jnp.broadcast_to(u, x.shape), jnp.broadcast_to(v, y.shape)

    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Forward-mode derivatives in x and y, point by point."""
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)

        def along(dx: Points, dy: Points) -> tuple[Points, Points]:
            return jax.jvp(lambda x, y: self.coordinates(gamma, x, y), (x, y), (dx, dy))[1]

        (ux, vx), (uy, vy) = along(one, zero), along(zero, one)
        return (ux, uy), (vx, vy)

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Forward-mode derivatives in γ."""
        du, dv = jax.jacfwd(self.coordinates)(gamma, x, y)
        return list(jnp.moveaxis(du, -1, 0)), list(jnp.moveaxis(dv, -1, 0))


def as_dictionary(dictionary: AbstractDictionary | None) -> AbstractDictionary:
    """Return the dictionary, or the paper's own for ``None``."""
    if dictionary is None:
        return AtomDictionary()
    if isinstance(dictionary, AbstractDictionary):
        return dictionary
    raise TypeError(
        f"dictionary={dictionary!r} must be a dictionary object or None; wrap a function of "
        "(gamma, x, y) in CustomDictionary."
    )
