"""Laws of losses: small residuals cost their square, large ones less, and none is gained by."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.model.losses import AbstractLoss
from patternfold.numerics.precision import precision

SAMPLES = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 241)])
"""Where h and H are looked at; thresholds as such are not, there slopes may jump."""

ROUNDING = 1e-6
"""Relative, of sums and logarithms in float64, with room."""


def check_loss(loss: AbstractLoss) -> None:
    """Check the laws of a loss; raise an AssertionError that names the one that is broken.

    h and H begin as the identity, rise, and rise ever more slowly; their slopes are right; and the
    options make the loss again.
    """
    with precision(np.dtype(np.float64)):
        for name, function in (("h", loss.pixels), ("H", loss.images)):
            _check_function(name, function)
    again = type(loss)(**loss.options())
    _require(again == loss, f"options() make the loss again: {loss.options()} make {again}")
    scaled = loss.with_scale(0.5)
    _require(scaled.scale == 0.5, f"with_scale sets the scale, but it is {scaled.scale}")


def _check_function(name: str, function: Any) -> None:
    z = jnp.asarray(SAMPLES)
    value, slope = (np.asarray(part) for part in function(z))
    by_autodiff = np.asarray(jax.vmap(jax.grad(lambda z: function(z)[0]))(z))
    near = SAMPLES < 1e-3
    _require(value[0] == 0, f"{name}(0) = 0, but it is {value[0]}")
    _require(
        np.allclose(value[near], SAMPLES[near], rtol=1e-2, atol=0),
        f"{name}(z) is z for small z, but {name}({SAMPLES[9]:.2g}) = {value[9]:.3g}",
    )
    _require(
        np.allclose(slope, by_autodiff, rtol=ROUNDING, atol=1e-12),
        f"{name}' is the derivative of {name}, off by {np.abs(slope - by_autodiff).max():.2g}",
    )
    _require(bool((slope >= 0).all()), f"{name} rises, but {name}' is {slope.min():.2g} somewhere")
    _require(bool((np.diff(slope) <= ROUNDING).all()), f"{name}' falls, but rises somewhere")


def _require(holds: Any, law: str) -> None:
    if not holds:
        raise AssertionError(law)
