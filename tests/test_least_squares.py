"""The one solver, against SciPy and NumPy."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from patternfold import Box
from patternfold.numerics.least_squares import (
    SMALL,
    Model,
    advance,
    begin,
    descend,
    inverse_definite,
    minimise,
    solve_definite,
)

pytestmark = pytest.mark.usefixtures("x64")

BOX = Box(["a", "b", "c"], [-1.0, -0.5, -1.0], [1.0, 0.5, 1.0])
N_PROBLEMS = 6
T = np.linspace(-1, 1, 9)


def curve(p, t):
    return p[0] * jnp.exp(p[1] * t) + jnp.sin(3 * p[2] * t)


@pytest.fixture(scope="module")
def truth():
    """Parameters of the curves, some outside the box, so that bounds hold."""
    return np.random.default_rng(0).uniform(-1.2, 1.2, (N_PROBLEMS, 3)) * BOX.upper


@pytest.fixture(scope="module")
def data(truth):
    """Noisy curves."""
    rng = np.random.default_rng(1)
    curves = np.stack([np.asarray(curve(p, T)) for p in truth])
    return curves + 0.05 * rng.normal(size=curves.shape)


def model_of(data, second_order=False):
    """A model of ‖data − curve‖² for all problems, by automatic differentiation."""

    def one(row, p):
        def residual(p):
            return row - curve(p, jnp.asarray(T))

        w, jacobian = residual(p), jax.jacfwd(residual)(p)
        half = jax.hessian(lambda p: (residual(p) ** 2).sum())(p) / 2
        parts = ((w**2).sum(), -jacobian.T @ w, jacobian.T @ jacobian)
        return Model(*parts, half) if second_order else Model(*parts)

    rows = jnp.asarray(data)
    return lambda points: jax.vmap(one)(rows, points)


def solved(data, starts, second_order=False, max_iter=100, box=BOX):
    run = jax.jit(lambda s, n: minimise(model_of(data, second_order), s, box, n))
    return run(jnp.asarray(starts), max_iter)


@pytest.mark.parametrize("second_order", [False, True], ids=["gauss-newton", "newton"])
def test_reaches_what_scipy_reaches(truth, data, second_order):
    starts = 0.7 * truth
    end = solved(data, starts, second_order)
    assert end.done.all()
    bounded = 0
    for row, start, point, cost in zip(data, starts, end.point, end.model.cost, strict=True):

        def residual(p, row=row):
            return row - np.asarray(curve(p, T))

        best = optimize.least_squares(residual, start, bounds=(BOX.lower, BOX.upper), xtol=1e-12)
        # A step that promises 1e-6 of the cost is not taken.
        np.testing.assert_allclose(cost, 2 * best.cost, rtol=1e-5)
        np.testing.assert_allclose(point, best.x, atol=5e-3)
        bounded += (best.active_mask != 0).any()
    assert BOX.contains(np.asarray(end.point)).all()
    assert 0 < bounded < N_PROBLEMS  # some minima lie on a bound, some inside


def test_a_periodic_parameter_goes_around():
    """The way from 3 to −3 leads over π, and a bound that is none holds nothing."""
    box = Box(["angle"], [-np.pi], [np.pi], periodic=["angle"])
    target = jnp.array([-3.0, 3.0, 0.5])

    def model_at(points):
        gap = target - points[:, 0]
        w = jnp.stack([jnp.sin(gap / 1), 1 - jnp.cos(gap)], axis=1)
        slope = jnp.stack([-jnp.cos(gap), -jnp.sin(gap)], axis=1)
        metric = (slope**2).sum(axis=1)
        return Model((w**2).sum(axis=1), -(slope * w).sum(axis=1)[:, None], metric[:, None, None])

    end = minimise(model_at, jnp.array([[3.0], [-3.0], [0.2]]), box, 50)
    np.testing.assert_allclose(end.point[:, 0], target, atol=1e-3)


def test_each_problem_ends_by_itself(data):
    """A problem that starts at its minimum is done at once, and does not move with the others."""
    ends = solved(data, np.zeros((N_PROBLEMS, 3)))
    starts = np.where(np.arange(N_PROBLEMS)[:, None] < 3, np.asarray(ends.point), 0.3)
    model_at = jax.jit(model_of(data))
    state = begin(jnp.asarray(starts), jax.eval_shape(model_at, jnp.asarray(starts)))
    state = advance(state, model_at(state.trial), BOX)
    np.testing.assert_array_equal(state.done, np.arange(N_PROBLEMS) < 3)
    for _ in range(5):
        state = advance(state, model_at(state.trial), BOX)
    np.testing.assert_array_equal(state.point[:3], starts[:3])
    assert (np.abs(state.point[3:] - starts[3:]).max(axis=1) > 1e-3).all()


@pytest.mark.parametrize("second_order", [False, True], ids=["gauss-newton", "newton"])
def test_no_cost_ever_rises(data, rng, second_order):
    model_at = jax.jit(model_of(data, second_order))
    points = jnp.asarray(BOX.sample(rng, N_PROBLEMS))
    state, costs = begin(points, jax.eval_shape(model_at, points)), []
    for _ in range(12):
        state = advance(state, model_at(state.trial), BOX)
        costs.append(np.asarray(state.model.cost))
        np.testing.assert_allclose(model_at(state.point).cost, costs[-1], rtol=1e-12)
    assert (np.diff(costs, axis=0) <= 0).all()
    assert (costs[-1] < 0.9 * costs[0]).all()


def test_the_number_of_steps_is_kept(data):
    starts = np.full((N_PROBLEMS, 3), 0.3)
    none = solved(data, starts, max_iter=0)
    np.testing.assert_array_equal(none.point, starts)
    np.testing.assert_allclose(none.model.cost, model_of(data)(jnp.asarray(starts)).cost)
    few, many = (solved(data, starts, max_iter=n).model.cost for n in (2, 20))
    assert (few <= none.model.cost).all()
    assert (many <= few).all()
    assert (few < none.model.cost).any()


def test_newton_leaves_a_saddle():
    """Where the Hessian is indefinite the metric takes its place, and the step leads downhill."""
    box = Box(["x", "y"], [-2.0, -2.0], [2.0, 2.0])

    def model_at(points):
        def cost(p):  # minima at (0, ±1), a saddle at the origin
            return p[0] ** 2 + (p[1] ** 2 - 1) ** 2

        values = jax.vmap(cost)(points)
        slope = -jax.vmap(jax.grad(cost))(points) / 2
        metric = jnp.tile(jnp.eye(2)[None] * 4, (len(points), 1, 1))
        return Model(values, slope, metric, jax.vmap(jax.hessian(cost))(points) / 2)

    starts = jnp.array([[0.5, 0.1], [0.5, -0.1], [1.0, 0.3]])
    assert (np.linalg.eigvalsh(model_at(starts).hessian)[:, 0] < 0).all()
    end = minimise(model_at, starts, box, 60)
    np.testing.assert_allclose(end.point, [[0, 1], [0, -1], [0, 1]], atol=1e-3)


def definite_matrices(rng, dim, n=5):
    root = rng.normal(size=(n, dim, dim))
    return root @ root.swapaxes(1, 2) + 0.1 * np.eye(dim)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_small_systems_are_those_of_numpy(rng, dim):
    matrices, extra = definite_matrices(rng, dim), rng.uniform(0, 1, (5, dim))
    right = rng.normal(size=(5, dim))
    whole = matrices + extra[:, :, None] * np.eye(dim)
    solution, definite = solve_definite(*(jnp.asarray(a) for a in (matrices, extra, right)))
    assert definite.all()
    # Conditions of a few hundred, in float64.
    np.testing.assert_allclose(solution, np.linalg.solve(whole, right[..., None])[..., 0], 1e-9)
    inverse = inverse_definite(jnp.asarray(matrices), jnp.asarray(extra))
    np.testing.assert_allclose(inverse, np.linalg.inv(whole), rtol=1e-9, atol=1e-12)


def test_indefinite_and_singular_systems_are_told(rng):
    matrices = definite_matrices(rng, 3)
    matrices[1] -= 2 * np.linalg.eigvalsh(matrices[1])[-1] * np.eye(3)
    matrices[2] = np.outer([1.0, 2, 3], [1.0, 2, 3])
    values, vectors = np.linalg.eigh(matrices[3])
    matrices[3] = vectors @ np.diag([-values[0], values[1], values[2]]) @ vectors.T
    solution, definite = solve_definite(
        jnp.asarray(matrices), jnp.zeros((5, 3)), jnp.asarray(rng.normal(size=(5, 3)))
    )
    assert list(definite) == [True, False, False, False, True]
    assert np.isfinite(solution).all()


@dataclass(frozen=True)
class Bowl:
    """A quadratic of many unknowns, whose steps overshoot unless they are damped."""

    matrix: np.ndarray
    point: np.ndarray
    overshoot: float = 1.0
    promised: float = np.inf

    @property
    def cost(self):
        return float(self.point @ self.matrix @ self.point) + 1

    def step(self, damping):
        damped = self.matrix + damping * np.diag(np.diag(self.matrix))
        slope = -self.matrix @ self.point
        delta = np.linalg.solve(damped, slope)
        promised = float(delta @ (2 * slope - self.matrix @ delta))
        return Bowl(self.matrix, self.point + self.overshoot * delta, self.overshoot, promised)


@pytest.mark.parametrize("overshoot", [1.0, 3.0])
def test_one_large_problem_goes_downhill(rng, overshoot):
    start = Bowl(definite_matrices(rng, 30, n=1)[0], rng.normal(size=30), overshoot)
    points = [start, *descend(start, 200, tol=1e-12)]
    costs = [point.cost for point in points]
    assert costs == sorted(costs, reverse=True)
    np.testing.assert_allclose(costs[-1], 1, atol=1e-9)
    assert len(list(descend(start, 2, tol=0))) == 2
    # The first step that has promised too little is the last, and stands only if it goes downhill.
    assert len(list(descend(start, 200, tol=1e6))) == int(overshoot == 1)


def test_damping_starts_where_it_was_left(data):
    starts = np.full((N_PROBLEMS, 3), 0.3)
    heavy = jnp.full(N_PROBLEMS, 1e4)
    end = jax.jit(lambda s: minimise(model_of(data), s, BOX, 1, damping=heavy))(jnp.asarray(starts))
    light = solved(data, starts, max_iter=1)
    assert (np.abs(end.point - starts) < 1e-3).all()
    assert np.abs(light.point - starts).max() > 1e-2
    assert (end.damping >= SMALL.least).all()
