"""Second-order jets over a box: a formula's value and derivatives, with bounds on all of them.

A `Jet` holds f at the centre of a box, bounds of f on the box, and for every first and second
derivative its value at the centre with a bound on how far it strays from that anywhere in the
box. Derivatives that are zero by structure are absent, so that they cost nothing. Rounding is
not followed: it is smaller than the bounds by ten orders, and solvers deduct a margin for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from patternfold.dc.algebra import cosine_range

Value = Any


@dataclass(frozen=True)
class Ball:
    """A number that is ``mid`` at the centre and strays by at most ``rad``."""

    mid: Value
    rad: Value

    def __add__(self, other: Ball) -> Ball:
        return Ball(self.mid + other.mid, self.rad + other.rad)

    def __mul__(self, other: Ball) -> Ball:
        """|ab − a₀b₀| ≤ |a₀| r_b + r_a (|b₀| + r_b)."""
        for a, b in ((self, other), (other, self)):
            if isinstance(a.rad, float) and a.rad == 0:  # a constant
                return b.scale(a.mid)
        rad = jnp.abs(self.mid) * other.rad + self.rad * (jnp.abs(other.mid) + other.rad)
        return Ball(self.mid * other.mid, rad)

    def scale(self, factor: Value) -> Ball:
        """Product with a constant."""
        if isinstance(factor, float) and factor == 1:
            return self
        return Ball(factor * self.mid, jnp.abs(factor) * self.rad)

    def square(self) -> Ball:
        """|a² − a₀²| ≤ r(2|a₀| + r)."""
        return Ball(self.mid * self.mid, self.rad * (2 * jnp.abs(self.mid) + self.rad))


Derivatives = dict[tuple[int, ...], Ball]


@dataclass(frozen=True)
class Jet:
    """f on a box up to second order.

    Attributes
    ----------
    mid, low, high : array
        f at the centre, and bounds of f on the box.
    first, second : dict
        ∂f/∂x_i by (i,), ∂²f/∂x_i∂x_j by (i, j), i ≤ j, where they may differ from zero.
    """

    mid: Value
    low: Value
    high: Value
    first: Derivatives
    second: Derivatives

    __array_ufunc__ = None  # a NumPy array on the left leaves the operation to us

    @property
    def ball(self) -> Ball:
        """f as a ball."""
        return Ball(self.mid, jnp.maximum(self.high - self.mid, self.mid - self.low))

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            moved = (self.mid + other, self.low + other, self.high + other)
            return Jet(*moved, self.first, self.second)
        return Jet(
            self.mid + other.mid,
            self.low + other.low,
            self.high + other.high,
            _sum([self.first, other.first]),
            _sum([self.second, other.second]),
        )

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, other: Any) -> Jet:
        return self + (-other)

    def __rsub__(self, other: Any) -> Jet:
        return (-self) + other

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return _product(self, other)
        ends = other * self.low, other * self.high
        return Jet(
            other * self.mid,
            jnp.minimum(*ends),
            jnp.maximum(*ends),
            {k: ball.scale(other) for k, ball in self.first.items()},
            {k: ball.scale(other) for k, ball in self.second.items()},
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        return self * (other.reciprocal() if isinstance(other, Jet) else 1 / other)

    def __rtruediv__(self, other: Any) -> Jet:
        return self.reciprocal() * other

    def chain(
        self, value: tuple[Value, Value, Value], slope: Ball, bend: Ball | None = None
    ) -> Jet:
        """q(f) from q's value at the centre with its bounds, and its first two derivatives."""
        second = {k: slope * ball for k, ball in self.second.items()}
        if bend is not None:
            second = _sum([second, {k: bend * b for k, b in _outer(self.first).items()}])
        return Jet(*value, {k: slope * ball for k, ball in self.first.items()}, second)

    def monotone(
        self,
        q: Callable[[Value], Value],
        slope: Callable[[Value], Value],
        bend: Callable[[Value], Value],
    ) -> Jet:
        """q(f) for q, q' and q'' that are all monotone on the values of f."""
        parts = [_over_range(each, self) for each in (q, slope, bend)]
        balls = [Ball(m, jnp.maximum(high - m, m - low)) for m, low, high in parts]
        return self.chain(parts[0], balls[1], balls[2])

    def exp(self) -> Jet:
        """e^f."""
        return self.monotone(jnp.exp, jnp.exp, jnp.exp)

    def reciprocal(self) -> Jet:
        """1/f for f > 0."""
        return self.power(-1.0)

    def power(self, exponent: float) -> Jet:
        """f^μ for f > 0 and μ < 0 or μ ≥ 1."""
        m = exponent
        return self.monotone(
            lambda s: s**m, lambda s: m * s ** (m - 1), lambda s: m * (m - 1) * s ** (m - 2)
        )

    def square(self) -> Jet:
        """f²."""
        return self.quadratic(1.0, 0.0)

    def quadratic(self, a: Value, b: Value) -> Jet:
        """a f² + b f with constants a and b: one chain rule, since the two cancel."""
        slope = Ball(2 * a * self.mid + b, 2 * jnp.abs(a) * self.ball.rad)
        ends = (a * self.low + b) * self.low, (a * self.high + b) * self.high
        # The parabola may turn inside the range.
        turn = jnp.clip(-b / jnp.where(a == 0, 1.0, 2 * a), self.low, self.high)
        at_turn = (a * turn + b) * turn
        low = jnp.minimum(jnp.minimum(*ends), at_turn)
        high = jnp.maximum(jnp.maximum(*ends), at_turn)
        bend = Ball(2 * a, 0.0)
        return self.chain(((a * self.mid + b) * self.mid, low, high), slope, bend)

    def cos(self) -> Jet:
        """cos f."""
        return self._wave(0.0)

    def sin(self) -> Jet:
        """sin f = cos(f − π/2)."""
        return self._wave(-np.pi / 2)

    def _wave(self, phase: float) -> Jet:
        """cos(f + phase)."""

        def cosine(shift: float) -> tuple[Value, Value, Value]:
            low, high = cosine_range(self.low + shift, self.high + shift)
            return jnp.cos(self.mid + shift), low, high

        mid, low, high = cosine(phase)
        bend = Ball(-mid, jnp.maximum(high - mid, mid - low))
        # d cos = cos(· + π/2).
        turned, least, most = cosine(phase + np.pi / 2)
        slope = Ball(turned, jnp.maximum(most - turned, turned - least))
        return self.chain((mid, low, high), slope, bend)


def jet_variables(lower: Sequence[Value], upper: Sequence[Value]) -> list[Jet]:
    """The coordinates of a box, for formulas to start from."""
    one = Ball(1.0, 0.0)
    return [
        Jet((lower[i] + upper[i]) / 2, lower[i], upper[i], {(i,): one}, {})
        for i in range(len(lower))
    ]


def chain_jets(function: Callable[..., Jet], *arguments: Any) -> Jet:
    """``function`` of jets by the chain rule, f_ij = Σ F_ab y_a,i y_b,j + Σ F_a y_a,ij.

    F's derivatives are bounded over the box of its arguments' values. Arguments that are no jets
    are constants.
    """
    fresh = [
        Jet(y.mid, y.low, y.high, {(a,): Ball(1.0, 0.0)}, {}) if isinstance(y, Jet) else y
        for a, y in enumerate(arguments)
    ]
    outer = function(*fresh)
    if not isinstance(outer, Jet):
        return outer
    first = [
        {k: slope * ball for k, ball in arguments[a].first.items()}
        for (a,), slope in outer.first.items()
    ]
    second = [
        {k: slope * ball for k, ball in arguments[a].second.items()}
        for (a,), slope in outer.first.items()
    ]
    for (a, b), bend in outer.second.items():
        products = (
            _outer(arguments[a].first) if a == b else _cross(arguments[a].first, arguments[b].first)
        )
        second.append({k: bend * ball for k, ball in products.items()})
    return Jet(outer.mid, outer.low, outer.high, _sum(first), _sum(second))


def _over_range(q: Callable[[Value], Value], f: Jet) -> tuple[Value, Value, Value]:
    """q at the centre and its least and greatest value, for a monotone q."""
    ends = q(f.low), q(f.high)
    return q(f.mid), jnp.minimum(*ends), jnp.maximum(*ends)


def _product(a: Jet, b: Jet) -> Jet:
    """Leibniz' rule."""
    corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    low = jnp.minimum(jnp.minimum(corners[0], corners[1]), jnp.minimum(corners[2], corners[3]))
    high = jnp.maximum(jnp.maximum(corners[0], corners[1]), jnp.maximum(corners[2], corners[3]))
    first = _sum(
        [
            {k: ball * b.ball for k, ball in a.first.items()},
            {k: ball * a.ball for k, ball in b.first.items()},
        ]
    )
    second = _sum(
        [
            {k: ball * b.ball for k, ball in a.second.items()},
            {k: ball * a.ball for k, ball in b.second.items()},
            _cross(a.first, b.first),
        ]
    )
    return Jet(a.mid * b.mid, low, high, first, second)


def _cross(a: Derivatives, b: Derivatives) -> Derivatives:
    """∂_i a ∂_j b + ∂_j a ∂_i b for i ≤ j."""
    total: Derivatives = {}
    for (i,), p in a.items():
        for (j,), q in b.items():
            product = (p * q).scale(2.0) if i == j else p * q
            key = (min(i, j), max(i, j))
            total[key] = total[key] + product if key in total else product
    return total


def _outer(a: Derivatives) -> Derivatives:
    """∂_i a ∂_j a for i ≤ j."""
    keys = sorted(a)
    return {
        (i, j): a[(i,)].square() if i == j else a[(i,)] * a[(j,)]
        for n, (i,) in enumerate(keys)
        for (j,) in keys[n:]
    }


def _sum(terms: list[Derivatives]) -> Derivatives:
    total: Derivatives = {}
    for term in terms:
        for key, ball in term.items():
            total[key] = total[key] + ball if key in total else ball
    return total
