"""Tangents and the tangent distance, against finite differences and least squares."""

import numpy as np
import pytest
from manifold_patterns import PAPER, SHAPE, N, numpy_render, random_lam, random_pattern

from patternfold import Box, CustomTransformation, Grid, Pattern
from patternfold.model.manifold import render, tangent_distance, tangents
from patternfold.model.transformations import as_transformation


@pytest.fixture
def pattern(rng) -> Pattern:
    return random_pattern(rng, 5)


def test_tangents_against_finite_differences_of_the_formulas(pattern, rng):
    lam = random_lam(rng)
    found = tangents(pattern, lam, PAPER, SHAPE)
    assert found.shape == (N, 5, 42)
    h = 1e-5  # central differences err by h² times third derivatives, some 1e-10 · 100
    for k in range(5):
        step = h * np.eye(5)[k]
        plus, minus = (numpy_render(pattern, lam + s, SHAPE) for s in (step, -step))
        np.testing.assert_allclose(found[:, k], (plus - minus) / (2 * h), atol=1e-7)
        assert np.abs(found[:, k]).max() > 0.1


def test_tangents_have_their_closed_form_for_one_gaussian(dtype):
    # p = exp(−|x − t|² / s²) up to its constant: ∂/∂t = 2 (x − t) / s² p, ∂/∂s = 2 |x − t|² / s³ p.
    lam = np.array([[0.7, 0.1, -0.2, 0.8]], dtype)
    bump = Pattern([1.0], [[0.0, 0.0, 0.0, 1.0, 1.0]])
    found = tangents(bump, lam, "similarity", (8, 8))[0]
    _, tx, ty, s = lam[0].astype(np.float64)
    grid = Grid(8, 8)
    dx, dy = grid.x - tx, grid.y - ty
    p = np.sqrt(2 / np.pi) * np.exp(-(dx**2 + dy**2) / s**2)
    rotation = np.zeros_like(p)  # a round pattern does not move
    expected = [rotation, 2 * dx / s**2 * p, 2 * dy / s**2 * p, 2 * (dx**2 + dy**2) / s**3 * p]
    # A dozen operations on numbers of size 1.
    np.testing.assert_allclose(found, np.stack(expected), atol=50 * np.finfo(dtype).eps)


# The tangent distance
@pytest.mark.parametrize("transformation", [PAPER, "affine"])
def test_tangent_distance_is_the_least_squares_residual(pattern, rng, dtype, transformation):
    lam = as_transformation(transformation).parameters.sample(rng, N).astype(dtype)
    images = rng.normal(size=(N, *SHAPE)).astype(dtype)
    distances, z = tangent_distance(pattern, images, lam, transformation)
    assert distances.dtype == z.dtype == dtype

    double = lam.astype(np.float64)
    w = images.reshape(N, -1) - render(pattern, double, transformation, SHAPE)
    t = tangents(pattern, double, transformation, SHAPE)
    # Backward stable least squares errs by roundings times the condition of T.
    assert np.linalg.cond(t).max() < 100
    rtol = {np.float32: 1e-4, np.float64: 1e-10}[dtype.type]
    for i in range(N):
        solution = np.linalg.lstsq(t[i].T, w[i], rcond=None)[0]
        np.testing.assert_allclose(z[i], solution, rtol=rtol, atol=rtol)
        residual = np.linalg.norm(w[i] - t[i].T @ solution)
        assert distances[i] == pytest.approx(residual, rel=rtol)
    assert np.abs(z).max() > 0.1


def test_tangent_distance_takes_flat_images(pattern, rng):
    lam, images = random_lam(rng), rng.normal(size=(N, *SHAPE))
    expected = tangent_distance(pattern, images, lam, PAPER)
    found = tangent_distance(pattern, images.reshape(N, -1), lam, PAPER, image_shape=SHAPE)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_images_on_the_manifold_are_at_distance_zero_and_z_points_to_them(pattern, rng):
    lam = random_lam(rng)
    images = render(pattern, lam, PAPER, SHAPE).reshape(N, *SHAPE)
    distances, z = tangent_distance(pattern, images, lam, PAPER)
    np.testing.assert_allclose(distances, 0, atol=1e-13)  # float64
    np.testing.assert_allclose(z, 0, atol=1e-13)
    step = 1e-3 * rng.normal(size=lam.shape)
    _, z = tangent_distance(pattern, images, lam - step, PAPER)
    np.testing.assert_allclose(z, step, atol=1e-4)  # first order: step² times the curvature


@pytest.mark.parametrize("lam", [[0.0, 0.0, 0.0], [2.5, 0.3, -0.2]], ids=["identity", "moved"])
@pytest.mark.parametrize(
    "gamma",
    [[[0.0, 0.0, 0.0, 0.4, 0.4]], [[1.1, 0.0, 0.0, 0.4, 0.4], [0.0, 0.0, 0.0, 0.15, 0.15]]],
    ids=["one atom", "two atoms"],
)
def test_a_round_pattern_under_rotation_is_well_conditioned(rng, dtype, lam, gamma):
    round_pattern = Pattern(np.array([1.0, -0.5])[: len(gamma)], gamma)
    images = rng.normal(size=(1, 12, 12)).astype(dtype)
    lam = np.array([lam], dtype)
    distance, z = tangent_distance(round_pattern, images, lam, "rotation-translation")
    # Rotation moves nothing, so it is left out: the answer is that of shifts alone, up to the
    # rounding of a least-squares problem of condition 1.
    expected, shift = tangent_distance(round_pattern, images, lam[:, 1:], "translation")
    tolerance = 100 * np.finfo(dtype).eps
    assert np.isfinite(z).all()
    assert abs(z[0, 0]) < tolerance
    np.testing.assert_allclose(z[:, 1:], shift, atol=tolerance)
    np.testing.assert_allclose(distance, expected, rtol=tolerance)
    assert np.abs(shift).max() > 0.01


def test_dependent_parameters_share_the_step(rng):
    # Two parameters that do the same: the solution of least norm gives each half of the step.
    double = CustomTransformation(
        lambda lam, x, y: (x - lam[0] - lam[1], y),
        Box(["a", "b"], [-1.0, -1.0], [1.0, 1.0]),
        [0.0, 0.0],
    )
    single = CustomTransformation(
        lambda lam, x, y: (x - lam[0], y), Box(["a"], [-1.0], [1.0]), [0.0]
    )
    bump = Pattern([1.0], [[0.0, 0.0, 0.0, 0.4, 0.4]])
    images = rng.normal(size=(1, 8, 8))
    distance, z = tangent_distance(bump, images, np.zeros((1, 2)), double)
    expected, step = tangent_distance(bump, images, np.zeros((1, 1)), single)
    np.testing.assert_allclose(distance, expected, rtol=1e-12)  # float64
    np.testing.assert_allclose(z, np.tile(step / 2, 2), rtol=1e-10)
