"""What a loss is: ρ(r) = s² h(r²/s²), which grows more slowly than r² where residuals are large."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, SupportsFloat

import equinox as eqx
from jaxtyping import Array, Float

from patternfold.model.component import Component

Values = Float[Array, "*v"]


class AbstractLoss(Component):
    """A loss that replaces the square of residuals, of pixels and of whole images.

    A subclass gives h with h(0) = 0, h'(0) = 1 and h' falling: small residuals cost their square,
    and minimising Σ s² h(r²/s²) is least squares with the weights h'(r²/s²), anew at every step.
    ``scale`` is s, the size of an ordinary residual in the unit of the images; None for what the
    images tell.
    """

    scale: eqx.AbstractVar[float | None]

    reweights: ClassVar[bool] = True
    """Whether residuals weigh differently at all."""

    is_elementary: ClassVar[bool] = False
    """Whether `pixels` takes nothing but sums, products, quotients, roots, exponentials, logarithms
    and choices between them, number by number, which kernels for GPUs know."""

    @abstractmethod
    def pixels(self, z: Values) -> tuple[Values, Values]:
        """Return h and h' at z = r²/s²."""

    @abstractmethod
    def images(self, t: Values) -> tuple[Values, Values]:
        """Return H and H' at t ≥ 0, by how many spreads an image costs more than a typical one.

        While a pattern is learned, such an image counts as if it cost H(t) spreads more.
        """

    def with_scale(self, scale: float | None) -> AbstractLoss:
        """Return the same loss with another scale."""
        changes: Any = {"scale": None if scale is None else float(scale)}
        return replace(self, **changes)


def positive(name: str, value: SupportsFloat, example: str) -> float:
    """Check an option that must be a number above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 < number < float("inf"):
        raise ValueError(f"{name}={value!r} must be a number above 0, such as {example}.")
    return number


def scale_of(scale: SupportsFloat | None) -> float | None:
    """Check the option ``scale``."""
    return None if scale is None else positive("scale", scale, "0.1, or None to estimate it")
