"""How sure poses are: intervals that hold, several poses, and where nothing can be told."""

import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets
from patternfold.learning.project.modes import count_modes
from patternfold.learning.project.uncertainty import _covariance

FAMILY = pf.RotationTranslation()
SHAPE = (16, 16)
BAR = pf.Pattern([1.0, 1.0], [[0.0, -0.3, 0.0, 0.3, 0.15], [0.0, 0.3, 0.0, 0.3, 0.15]])
"""Half a turn leaves it as it is."""
HOOK = BAR.add_atom(1.0, [[1.2, 0.2, 0.4, 0.3, 0.15]])


def noisy(pattern, n, rng, noise=0.02, **options):
    bounds = {"tx": (-0.2, 0.2), "ty": (-0.2, 0.2)}
    return datasets.random_images(pattern, n, rng, FAMILY, bounds, SHAPE, noise, **options)


def sure(pattern, images, **options):
    return pf.project(pattern, images, FAMILY, effort="quick", uncertainty=True, **options)


def test_intervals_hold_the_truth(rng):
    images, truth = noisy(HOOK, 400, rng)
    found = sure(HOOK, images)
    assert found.std is not None
    assert (found.n_modes == 1).all()
    error = found.parameters - truth
    error[:, 0] = (error[:, 0] + np.pi) % (2 * np.pi) - np.pi
    held = (np.abs(error) < 1.96 * found.std).mean(axis=0)
    assert (np.abs(held - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 400)).all()
    # Parameters depend on one another as stated, too: squared lengths have the mean d.
    lengths = np.einsum("ni,nij,nj->n", error, np.linalg.inv(found.covariance), error)
    assert lengths.mean() == pytest.approx(3, rel=0.15)
    assert not np.allclose(found.covariance, found.covariance * np.eye(3))


def test_several_poses(rng):
    images, truth = noisy(BAR, 8, rng)
    found = sure(BAR, images)
    assert (found.n_modes == 2).all()
    assert (found.status == "ambiguous").all()
    turned = np.abs(found.modes[:, 0, 0] - found.modes[:, 1, 0])
    np.testing.assert_allclose(turned, np.pi, atol=1e-2)
    assert np.isnan(found.modes[:, 2:]).all()
    assert np.isinf(found.mode_distances[:, 2:]).all()
    np.testing.assert_array_equal(found.modes[:, 0], found.parameters)
    np.testing.assert_array_equal(found.modes[:, 1], found.second)
    # One of them is the true one.
    error = (found.modes[:, :2, 0] - truth[:, :1] + np.pi) % (2 * np.pi) - np.pi
    assert (np.abs(error).min(axis=1) < 4 * found.std[:, 0]).all()


def test_a_pose_that_is_less_good_does_not_count():
    squares = np.array([[1.0, 1.05, 1.2, np.inf], [0.0, 1e-8, 1e-3, np.inf]])
    assert count_modes(squares, np.array([0.01, 0.0]), np.ones(2)).tolist() == [2, 2]


def test_what_can_not_be_told(rng):
    round_one = pf.Pattern([1.0], [[0.0, 0.0, 0.0, 0.3, 0.3]])
    images, _ = noisy(round_one, 8, rng, noise=1e-4)
    images[0] = 0
    found = sure(round_one, images)
    assert np.isinf(found.std[:, 0]).all()
    assert np.isinf(found.std[0]).all()
    assert (found.std[1:, 1:] < 0.01).all()
    assert np.isnan(found.covariance[1, 0, 1:]).all()


def test_on_a_bound(rng):
    images, _ = datasets.random_images(HOOK, 8, rng, FAMILY, {"tx": (0.4, 0.4)}, SHAPE, 1e-3)
    narrow = FAMILY.with_bounds({"tx": (-0.3, 0.3)})
    found = pf.project(HOOK, images, narrow, effort="quick", uncertainty=True)
    assert np.isnan(found.std[:, 1]).all()
    assert np.isfinite(found.std[:, [0, 2]]).all()


def test_missing_pixels_make_it_less_sure(rng):
    images, _ = noisy(HOOK, 8, rng)
    full = sure(HOOK, images)
    half = sure(HOOK, images, sample_mask=rng.random((8, *SHAPE)) < 0.5)
    ratio = np.median(half.std / full.std)
    assert 1.2 < ratio < 1.7  # half of the pixels: √2
    few = np.zeros((8, *SHAPE), bool)
    few[:, 8, 7:9] = True
    assert np.isinf(sure(HOOK, images, sample_mask=few).std).all()


def test_only_where_asked_for(rng):
    images, _ = noisy(HOOK, 8, rng)
    found = pf.project(HOOK, images, FAMILY, effort="quick")
    assert found.std is None
    assert found.covariance is None
    assert found.modes.shape == (8, 6, 3)
    several = sure([HOOK, BAR], images)
    assert several.covariance.shape == (8, 2, 3, 3)
    assert several.modes.shape == (8, 2, 6, 3)
    np.testing.assert_allclose(several.std[:, 0], sure(HOOK, images).std, rtol=1e-3)


def test_curvature_below_what_is_expected():
    """Near a saddle the curvature counts as a share of the metric; nothing is negative."""
    eye = np.eye(3)[None]
    lam, noise = np.zeros((1, 3)), np.array([0.5])
    same = _covariance(FAMILY.parameters, lam, eye, eye, noise)
    np.testing.assert_allclose(same, 0.5 * eye)
    bent = _covariance(FAMILY.parameters, lam, eye, -eye, noise)
    np.testing.assert_allclose(bent, 0.5 * eye / 0.3**2)
