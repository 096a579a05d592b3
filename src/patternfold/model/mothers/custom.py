"""A user's own smooth φ(x, y)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from patternfold.model.mothers.base import AbstractMother, Points


class CustomMother(AbstractMother):
    """A mother function from a JAX function ``phi(x, y)`` that acts on arrays point by point.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> ridge = CustomMother(lambda x, y: jnp.cos(3 * x) * jnp.exp(-(x**2) - y**2))
    """

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, x: Points, y: Points) -> Points:
        """Evaluate φ(x, y)."""
        return self.function(x, y)

    def field(self, x: Points, y: Points) -> tuple[Points, Points, Points]:
        """Return φ and its gradient by forward-mode differentiation."""
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)
        value, along_x = jax.jvp(self.function, (x, y), (one, zero))
        _, along_y = jax.jvp(self.function, (x, y), (zero, one))
        return value, along_x, along_y
