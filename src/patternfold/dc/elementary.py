"""Elementary functions for formulas that are evaluated in several arithmetics.

A formula written with +, −, ·, / and these functions takes arrays, `DC` values, which decompose
it, and `Jet` values, which bound its derivatives over a box.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from patternfold.dc.algebra import DC
from patternfold.dc.jets import Jet, chain_jets


def _other(x: Any) -> bool:
    """Whether x knows the elementary functions itself."""
    return isinstance(x, (DC, Jet))


def cos(x: Any) -> Any:
    """Cosine."""
    return x.cos() if _other(x) else jnp.cos(x)


def sin(x: Any) -> Any:
    """Sine."""
    return x.sin() if _other(x) else jnp.sin(x)


def exp(x: Any) -> Any:
    """e^x."""
    return x.exp() if _other(x) else jnp.exp(x)


def square(x: Any) -> Any:
    """x²."""
    return x.square() if _other(x) else x * x


def reciprocal(x: Any) -> Any:
    """1/x for x > 0."""
    return x.reciprocal() if _other(x) else 1 / x


def power(x: Any, exponent: float) -> Any:
    """x^μ for x > 0 and μ < 0 or μ ≥ 1."""
    return x.power(exponent) if _other(x) else x**exponent


def chain(function: Any, *arguments: Any) -> Any:
    """``function(*arguments)``; for jets, its derivatives are taken in the arguments first.

    With few arguments that depend on many variables this takes fewer operations, and the bounds
    are tighter, than following each variable through the function.
    """
    return chain_jets(function, *arguments) if _jets(arguments) else function(*arguments)


def _jets(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(a, Jet) for a in arguments)


def quadratic(x: Any, a: Any, b: Any) -> Any:
    """a x² + b x with constants a and b."""
    return x.quadratic(a, b) if _other(x) else (a * x + b) * x
