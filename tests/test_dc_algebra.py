"""Rules of DC arithmetic: every one gives convex, nonnegative parts whose difference is f."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import Box
from patternfold.dc import ByCurvature, ByParts, ByRules, Function, by_curvature
from patternfold.dc.algebra import DC, cosine_range
from patternfold.dc.elementary import chain, cos, exp, power, quadratic, reciprocal, sin, square
from patternfold.testing import check_dc

BOX = Box(["psi", "tau", "sigma", "c"], [-np.pi, -1.0, 0.2, -2.0], [np.pi, 1.0, 1.5, 2.0])

FORMULAS = {
    "affine": lambda x: 3.0 * x[0] - 2.0 * x[1] + 1.0,
    "combination": lambda x: 2.0 * square(x[0]) - 3.0 * square(x[1]) - x[3],
    "cos": lambda x: cos(x[0]),
    "sin": lambda x: sin(x[0]),
    "1/sigma": lambda x: 1.0 / x[2],
    "cos/sigma": lambda x: cos(x[0]) / x[2],
    "sin tau/sigma": lambda x: sin(x[0]) * x[1] * reciprocal(x[2]),
    "product": lambda x: x[1] * x[3],
    "product of DC": lambda x: (square(x[1]) - x[3]) * (x[1] - square(x[3])),
    "square of DC": lambda x: square(square(x[1]) - x[3]),
    "exp": lambda x: exp(x[1] - square(x[3]) * 0.5),
    "power": lambda x: power(1.0 + square(x[1] * x[3]), -3.0),
    "quadratic": lambda x: quadratic(cos(x[0]) * x[3], -1.5, 0.7),
    "chain": lambda x: chain(lambda a, b: a * exp(-1.0 * b), x[3], square(x[1])),
}


@pytest.mark.parametrize("rules", ["tight", "paper"])
@pytest.mark.parametrize("name", FORMULAS)
def test_rules_give_convex_nonnegative_parts(name: str, rules: str) -> None:
    formula = FORMULAS[name]

    def plain(points: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.array([float(formula(jnp.asarray(p))) for p in points])

    check_dc(ByRules(Function(formula, BOX), rules), plain, nonnegative=True)


@pytest.mark.parametrize(
    "name", ["combination", "sin tau/sigma", "product of DC", "power", "quadratic", "chain"]
)
def test_bounds_of_values_and_derivatives_hold(name: str, rng: np.random.Generator) -> None:
    function = Function(FORMULAS[name], BOX)
    lower = BOX.sample(rng, 8)
    lower, upper = np.minimum(lower, other := BOX.sample(rng, 8)), np.maximum(lower, other)
    upper[4:] = lower[4:] + 0.05 * (upper[4:] - lower[4:])
    bounds = function.bounds(lower, upper)
    points = lower[:, None] + rng.random((8, 60, 4)) * (upper - lower)[:, None]
    with jax.enable_x64(True):
        f = lambda p: jnp.asarray(FORMULAS[name](p), jnp.float64)  # noqa: E731
        rows = jnp.asarray(points.reshape(-1, 4))
        value, slope, bend = (
            np.asarray(jax.vmap(d)(rows)) for d in (f, jax.grad(f), jax.hessian(f))
        )
    slack = 1e-9 * (1 + np.abs(value).max())  # some ten roundings of numbers up to 1e3
    assert (value.reshape(8, 60) >= bounds.low[:, None] - slack).all()
    away = np.abs(slope.reshape(8, 60, 4) - bounds.gradient[:, None])
    assert (away <= bounds.gradient_rad[:, None] + slack).all()
    away = np.abs(bend.reshape(8, 60, 4, 4) - bounds.hessian[:, None])
    assert (away <= bounds.hessian_rad[:, None] + 1e-9 * (1 + np.abs(bend).max())).all()
    centre = function.gradients((lower + upper) / 2)
    np.testing.assert_allclose(bounds.value, centre[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bounds.gradient, centre[1], rtol=1e-10, atol=1e-10)


def test_hessian_bound_decomposes() -> None:
    function = Function(FORMULAS["exp"], BOX)
    pair = by_curvature(function)
    assert pair.rho.max() > 0.1  # f is not convex
    check_dc(pair, function.values)


def test_wrong_decompositions_are_found() -> None:
    function = Function(FORMULAS["exp"], BOX)
    with pytest.raises(AssertionError, match=r"∇²g is positive|g is convex"):
        check_dc(ByCurvature(function, 0.3 * by_curvature(function).rho))
    box = Box(["x"], [-1.0], [1.0])
    with pytest.raises(AssertionError, match="g − h = f"):
        check_dc(ByParts(_sum_of_squares, _sum_of_squares, box), lambda x: x[:, 0])
    with pytest.raises(AssertionError, match="h is convex"):
        check_dc(ByParts(_sum_of_squares, lambda x: -(x**4).sum(), box))
    with pytest.raises(AssertionError, match="h ≥ 0"):
        check_dc(ByParts(_sum_of_squares, lambda x: x.sum(), box), nonnegative=True)


def _sum_of_squares(x: jax.Array) -> jax.Array:
    return (x**2).sum()


def test_users_build_their_own(x64: None) -> None:
    x = DC.variable(jnp.asarray(0.3), -1.0, 1.0)
    own = DC.convex(jnp.abs(x.value), 0.0, 1.0)
    g, h = (own * x - np.float64(2) * own).parts
    assert float(g - h) == pytest.approx(0.3 * 0.3 - 0.6)
    assert float(g) >= 0
    assert float(h) >= 0
    composed = x.compose(jnp.exp, jnp.exp)
    assert float(composed.g - composed.h + composed.constant) == pytest.approx(np.exp(0.3))


def test_cosine_range_holds_turning_points(x64: None, rng: np.random.Generator) -> None:
    low = rng.uniform(-10, 10, 200)
    high = low + rng.uniform(0, 7, 200)
    least, most = (np.asarray(a) for a in cosine_range(jnp.asarray(low), jnp.asarray(high)))
    inside = np.cos(low + np.linspace(0, 1, 2001)[:, None] * (high - low))
    np.testing.assert_allclose(least, inside.min(axis=0), atol=1e-5)  # the sample's spacing
    np.testing.assert_allclose(most, inside.max(axis=0), atol=1e-5)
    assert (least <= inside.min(axis=0) + 1e-15).all()
    assert (most >= inside.max(axis=0) - 1e-15).all()


def test_points_of_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="4 variables, psi, tau"):
        Function(FORMULAS["cos"], BOX).values(np.zeros((2, 3)))
