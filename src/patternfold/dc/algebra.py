"""DC arithmetic: differences of convex functions, carried through formulas by the paper's rules.

A `DC` is the value at one point x of the box of f = g − h + k, with g and h convex and
nonnegative on the whole box and k constant. Sums, products and compositions of such values are
again such values (propositions 4 and 5), so that a formula written with `variables` and the
functions of `patternfold.dc.elementary` decomposes itself, and JAX differentiates its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

Value = Any
"""A JAX array, or a number; parts are arrays over pixels."""

RULES = ("tight", "paper")
"""How rules are applied. "paper": squares for affine terms, the product rule for squares, and
K(g + h) in compositions. "tight": affine terms as they are, products as differences of squares,
and in compositions only what the sign of the slope asks for."""


@dataclass(frozen=True)
class DC:
    """The value f = g − h + k of a DC function at a point of its box.

    Attributes
    ----------
    value : array
        f itself: where g and h are large, their difference has lost its digits.
    g, h : array
        Convex parts, nonnegative on the box.
    constant : array
        k; it may have either sign and belongs to neither part, which keeps these small.
    low, high : array
        Bounds of f on the box, from which compositions take their constants K.
    rules : str
        How rules are applied, see `RULES`.

    Examples
    --------
    >>> x = DC.variable(0.3, 0.0, 1.0)
    >>> f = x * x - 2 * x
    >>> g, h = f.parts
    >>> round(float(g - h), 6)
    -0.51
    """

    value: Value
    g: Value
    h: Value
    constant: Value
    low: Value
    high: Value
    rules: str = "tight"

    __array_ufunc__ = None  # a NumPy array on the left leaves the operation to us

    @classmethod
    def variable(cls, value: Value, lower: Value, upper: Value, rules: str = "tight") -> DC:
        """A variable of the box: affine, so convex; or x = ½(x+1)² − ½(x²+1) with "paper"."""
        if rules == "paper":
            g, h = 0.5 * (value + 1) ** 2, 0.5 * (value**2 + 1)
            return cls(value, g, h, 0.0, lower, upper, rules)
        return cls(value, value - lower, 0.0, lower, lower, upper, rules)

    @classmethod
    def convex(cls, value: Value, low: Value, high: Value, rules: str = "tight") -> DC:
        """A convex function of the user's own, with bounds of its values on the box."""
        return cls(value, value - low, 0.0, low, low, high, rules)

    @property
    def parts(self) -> tuple[Value, Value]:
        """The nonnegative convex parts g and h, k put where it is positive."""
        return self.g + _positive(self.constant), self.h + _positive(-self.constant)

    def __add__(self, other: Any) -> DC:
        """Proposition 4(a): parts add up; a constant joins k."""
        if not isinstance(other, DC):
            moved = (self.constant + other, self.low + other, self.high + other)
            return DC(self.value + other, self.g, self.h, *moved, self.rules)
        return DC(
            self.value + other.value,
            self.g + other.g,
            self.h + other.h,
            self.constant + other.constant,
            self.low + other.low,
            self.high + other.high,
            self.rules,
        )

    __radd__ = __add__

    def __neg__(self) -> DC:
        """−f = h − g − k."""
        return DC(-self.value, self.h, self.g, -self.constant, -self.high, -self.low, self.rules)

    def __sub__(self, other: Any) -> DC:
        """Proposition 4(a) with the coefficients 1 and −1."""
        return self + (-other)

    def __rsub__(self, other: Any) -> DC:
        return (-self) + other

    def __mul__(self, other: Any) -> DC:
        """Product with a constant, proposition 4(a), or with a DC function, 4(b)."""
        if isinstance(other, DC):
            return _paper_product(self, other) if self.rules == "paper" else _product(self, other)
        plus, minus = _positive(other), _positive(-other)
        return DC(
            other * self.value,
            plus * self.g + minus * self.h,
            plus * self.h + minus * self.g,
            other * self.constant,
            plus * self.low - minus * self.high,
            plus * self.high - minus * self.low,
            self.rules,
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> DC:
        return self * (other.reciprocal() if isinstance(other, DC) else 1 / other)

    def __rtruediv__(self, other: Any) -> DC:
        return self.reciprocal() * other

    def compose(
        self, q: Callable[[Value], Value], slope: Callable[[Value], Value], low: Value = None
    ) -> DC:
        """q(f) for a convex q with derivative ``slope``, proposition 5(a).

        q(f) + A g + B h is convex if A ≥ −q' and B ≥ q' on the values of f: each tangent of q
        turns into a sum of g and h with nonnegative factors, and q is their supremum. The paper
        takes A = B = K ≥ sup abs(q'). ``low`` is a bound q ≥ low, by default that at the ends of
        the range for a monotone q.
        """
        at_low, at_high = slope(self.low), slope(self.high)
        down, up = _positive(-at_low), _positive(at_high)
        if self.rules == "paper":
            down = up = jnp.maximum(down, up)
        ends = q(self.low), q(self.high)
        lowest = jnp.minimum(*ends) if low is None else low
        added = down * self.g + up * self.h
        value = q(self.value)
        # Rounding must not make a part negative.
        g = _positive(value - lowest) + added
        return DC(value, g, added, lowest, lowest, jnp.maximum(*ends), self.rules)

    def square(self) -> DC:
        """f²: the product rule in the paper, otherwise q(f) with q(s) = s²."""
        if self.rules == "paper":
            return _paper_product(self, self, square=True)
        inside = (self.low <= 0) & (self.high >= 0)
        ends = jnp.minimum(self.low**2, self.high**2)
        return self.compose(lambda s: s * s, lambda s: 2 * s, jnp.where(inside, 0.0, ends))

    def reciprocal(self) -> DC:
        """1/f for f > 0."""
        return self.compose(lambda s: 1 / s, lambda s: -1 / (s * s))

    def exp(self) -> DC:
        """e^f."""
        return self.compose(jnp.exp, jnp.exp)

    def power(self, exponent: float) -> DC:
        """f^μ for f > 0 and μ < 0 or μ ≥ 1, where it is convex."""
        return self.compose(lambda s: s**exponent, lambda s: exponent * s ** (exponent - 1))

    def cos(self) -> DC:
        """cos f = (cos f + ½M(f−m)²) − ½M(f−m)², M ≥ cos f on the box, m its middle value."""
        low, high = cosine_range(self.low, self.high)
        bend = jnp.ones_like(high) if self.rules == "paper" else _positive(high)
        middle = (self.low + self.high) / 2
        bowl = (self - middle).compose(
            lambda s: 0.5 * bend * s * s, lambda s: bend * s, jnp.zeros_like(bend)
        )
        # A lower bound of a sum is the sum of lower bounds; the slope is −sin f + M(f−m), which
        # grows, so that its ends bound it.
        rest = (self - middle).compose(
            lambda s: jnp.cos(s + middle) + 0.5 * bend * s * s,
            lambda s: -jnp.sin(s + middle) + bend * s,
            low,
        )
        return replace(rest - bowl, value=jnp.cos(self.value), low=low, high=high)

    def sin(self) -> DC:
        """sin f = cos(f − π/2)."""
        return (self - np.pi / 2).cos()

    def quadratic(self, a: Value, b: Value) -> DC:
        """a f² + b f with constants a and b of either sign."""
        return self.square() * a + self * b


def variables(
    x: Value, lower: Sequence[Value], upper: Sequence[Value], rules: str = "tight"
) -> list[DC]:
    """The coordinates of a point of the box, for formulas to start from."""
    return [DC.variable(x[i], lower[i], upper[i], rules) for i in range(len(lower))]


def cosine_range(low: Value, high: Value) -> tuple[Value, Value]:
    """Least and greatest value of the cosine on an interval."""
    ends = jnp.cos(low), jnp.cos(high)

    def holds(phase: float) -> Value:
        """Whether a multiple of 2π, shifted by the phase, lies in the interval."""
        return jnp.floor((high - phase) / (2 * np.pi)) >= jnp.ceil((low - phase) / (2 * np.pi))

    least = jnp.where(holds(np.pi), -1.0, jnp.minimum(*ends))
    return least, jnp.where(holds(0.0), 1.0, jnp.maximum(*ends))


def _positive(a: Value) -> Value:
    return jnp.maximum(a, 0.0)


def _product_range(a: DC, b: DC) -> tuple[Value, Value]:
    corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    low = jnp.minimum(jnp.minimum(corners[0], corners[1]), jnp.minimum(corners[2], corners[3]))
    high = jnp.maximum(jnp.maximum(corners[0], corners[1]), jnp.maximum(corners[2], corners[3]))
    return low, high


def _product(a: DC, b: DC) -> DC:
    """f₁f₂ = ¼(f₁+f₂)² − ¼(f₁−f₂)², factors brought to a common size first.

    Constants are taken out, (p₁+m₁)(p₂+m₂) = p₁p₂ + m₁p₂ + m₂p₁ + m₁m₂, with m the middle of
    the factor's range: curvature then shrinks with the box.
    """
    middle_a, middle_b = (a.low + a.high) / 2, (b.low + b.high) / 2
    width_a, width_b = a.high - a.low, b.high - b.low
    # A factor that hardly varies must not have its rounding blown up.
    ratio = jnp.maximum(width_b, 1e-300) / jnp.maximum(width_a, 1e-300)
    scale = jnp.sqrt(jnp.clip(ratio, 1e-6, 1e6))
    p, q = (a - middle_a) * scale, (b - middle_b) * (1 / scale)
    small = (p + q).square() * 0.25 - (p - q).square() * 0.25
    total = small + a * middle_b + b * middle_a - middle_a * middle_b
    low, high = _product_range(a, b)
    return replace(total, value=a.value * b.value, low=low, high=high)


def _paper_product(a: DC, b: DC, square: bool = False) -> DC:
    """f₁f₂ = ½((g₁+g₂)² + (h₁+h₂)²) − ½((g₁+h₂)² + (g₂+h₁)²), proposition 4(b)."""
    (g1, h1), (g2, h2) = a.parts, b.parts
    g = 0.5 * ((g1 + g2) ** 2 + (h1 + h2) ** 2)
    h = 0.5 * ((g1 + h2) ** 2 + (g2 + h1) ** 2)
    low, high = _product_range(a, b)
    # The product of a function with itself is not negative.
    low = _positive(low) if square else low
    return DC(a.value * b.value, g, h, 0.0, low, high, a.rules)
