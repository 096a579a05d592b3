"""Correction of all atoms and λ together, against dense equations."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_problems import SHAPE, make_problem, pixels_of

from patternfold import manifold
from patternfold.learning.refit.coefficients import correct_coefficients
from patternfold.learning.refit.correct import correct_all, least_useful
from patternfold.learning.refit.equations import Equations
from patternfold.model.atoms import evaluate, make_atoms
from patternfold.numerics.least_squares import descend

pytestmark = pytest.mark.usefixtures("x64")


def weighted_problem(rng, kind):
    """A problem whose images, and as asked pixels, weigh differently; and all pixels' weights."""
    options = {"weights": np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])}
    pixel_weights = np.ones((6, SHAPE[0] * SHAPE[1]))
    if kind == "pixels":
        pixel_weights = options["pixel_weights"] = rng.uniform(0, 1, pixel_weights.shape)
    problem, truth, lam = make_problem(rng, noise=0.02, **options)
    return problem, truth, lam, options["weights"][:, None] * pixel_weights


def equations_at(problem, pattern, lam, move=True):
    """Equations on all pixels, which come in four parts."""
    return problem.equations(pattern, lam, problem.sampling(problem.phases), move)


def dense_equations(problem, pattern, lam, weights):
    """Matrix and slope of all unknowns, atom by atom and image by image, by differentiation."""
    x, y = jnp.asarray(problem.grid.x), jnp.asarray(problem.grid.y)
    n_atoms = pattern.n_atoms

    def residuals(unknowns):
        atoms, own = unknowns[: n_atoms * 6].reshape(n_atoms, 6), unknowns[n_atoms * 6 :]
        like = make_atoms(pattern.coef, pattern.gamma, problem.family, np.float64)
        fill = len(like.coef) - n_atoms
        moved = type(like)(
            jnp.pad(atoms[:, 5], (0, fill)),
            jnp.concatenate([atoms[:, :5], jnp.asarray(like.gamma[n_atoms:])]),
            like.count,
            like.family,
        )
        places = jax.vmap(problem.transformation.coordinates, (0, None, None))
        return jnp.asarray(pixels_of(problem)) - evaluate(
            moved, *places(own.reshape(lam.shape), x, y)
        )

    atoms = np.column_stack([pattern.gamma, pattern.coef])
    here = jnp.asarray(np.append(atoms.ravel(), lam.ravel()))
    jacobian = -np.asarray(jax.jit(jax.jacfwd(residuals))(here)).reshape(weights.size, -1)
    matrix = jacobian.T @ (weights.reshape(-1, 1) * jacobian)
    return matrix, jacobian.T @ (weights * np.asarray(residuals(here))).ravel()


@pytest.mark.parametrize("kind", ["images", "pixels"])
def test_steps_solve_the_whole_system(rng, kind):
    """Eliminating the λ_i gives what one dense system of all unknowns gives."""
    problem, truth, lam, weights = weighted_problem(rng, kind)
    pattern = truth.replace(truth.coef * 1.1, truth.gamma + 0.02)
    here = equations_at(problem, pattern, lam)
    residuals = pixels_of(problem) - manifold.render(pattern, lam, problem.transformation, SHAPE)
    np.testing.assert_allclose(here.cost, (weights * residuals**2).sum(), rtol=1e-12)
    matrix, slope = dense_equations(problem, pattern, lam, weights)
    m = pattern.n_atoms * 6
    scale = np.abs(matrix[:m, :m]).max()
    np.testing.assert_allclose(here.normal.atoms, matrix[:m, :m], atol=1e-12 * scale)
    np.testing.assert_allclose(here.normal.slope, slope[:m], atol=1e-11 * np.abs(slope).max())
    damping = 0.1
    # Image 4 weighs nothing: its λ stays, in the dense system by a unit diagonal.
    extra = damping * np.diag(matrix)
    extra[m + 4 * 4 : m + 5 * 4] = 1
    delta = np.linalg.solve(matrix + np.diag(extra), slope)
    there = here.step(damping)
    moved = np.column_stack([there.pattern.gamma, there.pattern.coef])
    start = np.column_stack([pattern.gamma, pattern.coef])
    # Ridges of 1e-12 and of rounding; conditions up to 1e4.
    np.testing.assert_allclose((moved - start).ravel(), delta[:m], atol=1e-7 * np.abs(delta).max())
    np.testing.assert_allclose(
        (there.lam - lam).ravel(), delta[m:], atol=1e-7 * np.abs(delta).max()
    )
    assert np.abs(delta[:m]).max() > 1e-3 < np.abs(delta[m:]).max()


def test_an_anchor_keeps_its_pose_while_all_others_move(rng):
    """Atoms move as in the dense system without the unknowns of the anchor's λ."""
    problem, truth, lam, weights = weighted_problem(rng, "images")
    pattern = truth.replace(truth.coef * 1.1, truth.gamma + 0.02)
    matrix, slope = dense_equations(problem, pattern, lam, weights)
    m, damping = pattern.n_atoms * 6, 0.1
    # Image 2 is the anchor; image 4 weighs nothing.
    free = np.ones(len(slope), bool)
    free[m + 2 * 4 : m + 3 * 4] = free[m + 4 * 4 : m + 5 * 4] = False
    damped = (matrix + damping * np.diag(np.diag(matrix)))[np.ix_(free, free)]
    delta = np.linalg.solve(damped, slope[free])[:m]
    there = equations_at(replace(problem, anchor=2), pattern, lam).step(damping)
    moved = np.column_stack([there.pattern.gamma, there.pattern.coef])
    start = np.column_stack([pattern.gamma, pattern.coef])
    np.testing.assert_allclose((moved - start).ravel(), delta, atol=1e-7 * np.abs(delta).max())
    assert (there.lam[2] == lam[2]).all()
    assert np.abs(there.lam[[0, 1, 3]] - lam[[0, 1, 3]]).max() > 1e-3


def test_slope_is_the_derivative_of_the_cost(rng):
    problem, truth, lam, _ = weighted_problem(rng, "pixels")
    pattern = truth.replace(truth.coef * 1.1, truth.gamma + 0.02)
    here = equations_at(problem, pattern, lam)

    def cost(t, atoms):
        gamma = pattern.gamma + t * atoms[:, :-1]
        moved = pattern.replace(pattern.coef + t * atoms[:, -1], gamma)
        return equations_at(problem, moved, lam).cost

    atoms, t = rng.normal(size=(4, 6)), 1e-5
    measured = (cost(t, atoms) - cost(-t, atoms)) / (2 * t)
    np.testing.assert_allclose(measured, -2 * here.normal.slope @ atoms.ravel(), rtol=1e-6)


def test_parameters_on_a_bound_stay_there(rng):
    """Whether λ or γ: what wants to leave the box is held, and the others move without it."""
    problem, truth, lam, _ = weighted_problem(rng, "images")
    box = problem.transformation.parameters
    start = truth.replace(truth.coef * 1.1, truth.gamma)
    free = equations_at(problem, start, lam).step(0.1)
    outward = free.lam[0, 3] > lam[0, 3]
    tight = (box.lower[3], lam[0, 3]) if outward else (lam[0, 3], box.upper[3])
    family = problem.transformation.with_bounds({"s": tight})
    here = equations_at(problem, start, lam)
    held = Equations(here.sampling, family, problem.atom_box, start, lam).step(0.1)
    assert held.lam[0, 3] == lam[0, 3] != free.lam[0, 3]
    assert np.abs(held.lam[0, :3] - lam[0, :3]).max() > 0


def test_returns_to_the_truth(rng):
    problem, truth, lam = make_problem(rng)
    start = truth.replace(truth.coef + 0.05, truth.gamma + 0.02)
    wrong = lam + 0.02 * rng.normal(size=lam.shape)
    here = equations_at(problem, start, wrong)
    _, _, error = correct_all(here, 60, tol=0)
    assert error < 1e-18 * here.cost  # second order: down to rounding


def test_never_raises_the_error(rng):
    problem, truth, lam = make_problem(rng, noise=0.05)
    wrong = lam + 0.02 * rng.normal(size=lam.shape)
    start = equations_at(problem, truth.replace(truth.coef + 0.05, truth.gamma + 0.02), wrong)
    points = [start, *descend(start, 6, 0)]
    costs = [point.cost for point in points]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) > 3
    direct = [problem.error(point.pattern, point.lam) for point in points]
    np.testing.assert_allclose(costs, direct, rtol=1e-9)
    fixed = correct_all(equations_at(problem, start.pattern, wrong, move=False), 6)
    np.testing.assert_array_equal(fixed[1], wrong)
    assert costs[-1] < fixed[2] < costs[0]


def test_pixels_without_weight_say_nothing(rng):
    pixel_weights = (rng.uniform(size=(6, SHAPE[0] * SHAPE[1])) < 0.7).astype(np.float64)
    ends = []
    for spoilt in (0.0, 100.0):
        problem, truth, lam = make_problem(np.random.default_rng(1), noise=0.02)
        images = pixels_of(problem) + spoilt * (pixel_weights == 0)
        observations = problem.observations.put(images, problem.grid, None, pixel_weights)
        problem = type(problem)(observations, problem.transformation, problem.family)
        start = truth.replace(truth.coef + 0.05, truth.gamma)
        pattern, found, error = correct_all(equations_at(problem, start, lam), 3)
        coefficients, _ = correct_coefficients(start, lam, observations, problem.transformation)
        ends.append([pattern.coef, pattern.gamma, found, error, coefficients.coef])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert np.abs(ends[0][0] - start.coef).max() > 1e-3


def test_coefficients_solve_least_squares(rng):
    problem, truth, lam = make_problem(rng, noise=0.05)
    columns = [
        manifold.render(truth.take([j]), lam, problem.transformation, problem.grid).ravel()
        / truth.coef[j]
        for j in range(4)
    ]
    best, residual, *_ = np.linalg.lstsq(np.stack(columns, 1), pixels_of(problem).ravel())
    start = truth.replace(np.zeros(4), truth.gamma)
    corrected, error = correct_coefficients(
        start, lam, problem.observations, problem.transformation
    )
    np.testing.assert_allclose(corrected.coef, best, rtol=1e-4)  # a ridge of 1e-7
    np.testing.assert_allclose(error, residual[0], rtol=1e-6)


def test_the_least_useful_atom_is_missed_least(rng):
    """The error without it, the other coefficients adapting, is the lowest by least squares."""
    problem, truth, lam = make_problem(rng)
    pattern = truth.replace(truth.coef * [1, 1, 0.1, 1], truth.gamma)
    columns = [
        manifold.render(pattern.take([j]), lam, problem.transformation, problem.grid).ravel()
        for j in range(4)
    ]
    whole = np.sum(columns, axis=0)
    missed = []
    for j in range(4):
        others = np.stack([c for k, c in enumerate(columns) if k != j], axis=1)
        missed.append(np.linalg.lstsq(others, whole)[1][0])
    assert least_useful(equations_at(problem, pattern, lam, move=False)) == np.argmin(missed)


def test_atoms_outside_their_box_are_not_forced_back(rng):
    problem, truth, lam = make_problem(rng, noise=0.05)
    gamma = truth.gamma.copy()
    gamma[0, 1] = problem.atom_box.upper[1] + 0.3
    start = equations_at(problem, truth.replace(truth.coef, gamma), lam)
    # As the step goes to 0, so does the change of the error.
    assert abs(start.step(1e7).cost - start.cost) < 1e-5 * start.cost
    assert [start, *descend(start, 6, 0)][-1].cost < start.cost


@pytest.mark.parametrize("damping", [0.1, 30.0])
def test_small_steps_keep_their_promise(rng, damping):
    problem, truth, lam = make_problem(rng, noise=0.001)
    wrong = lam + 1e-4 * rng.normal(size=lam.shape)
    start = equations_at(problem, truth.replace(truth.coef + 1e-4, truth.gamma), wrong)
    trial = start.step(damping)
    np.testing.assert_allclose(start.cost - trial.cost, trial.promised, rtol=0.1)
