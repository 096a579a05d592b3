"""Matrices of pixels, against `align` and an independent warp."""

import numpy as np
import pytest
from helpers import small_model
from scipy import ndimage

import patternfold as pf
from patternfold.model.transformations import TRANSFORMATIONS

pytestmark = pytest.mark.usefixtures("as_users_run")

SHAPE = (16, 24)


def warped(image, matrix):
    """Resample by a matrix from (x, y) of the image to (x, y) of the result."""
    inverse = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])  # SciPy's order is row, column
    return ndimage.affine_transform(image, swap @ inverse @ swap, order=1, mode="grid-constant")


AFFINE = [name for name, kind in TRANSFORMATIONS.items() if kind.is_affine]


@pytest.mark.parametrize("name", AFFINE)
def test_matrices_warp_as_align_does(name, rng):
    family = TRANSFORMATIONS[name]()
    lam = family.parameters.sample(rng, 3)
    images = ndimage.gaussian_filter(rng.random((3, *SHAPE)), (0, 1, 1))
    found = pf.matrices(lam, name, SHAPE)
    assert found.shape == (3, 2, 3)
    assert found.dtype == np.float64
    expected = pf.align(images, lam, name)
    assert expected.std() > 0.05
    for image, matrix, aligned in zip(images, found, expected, strict=True):
        np.testing.assert_allclose(warped(image, matrix), aligned, rtol=0, atol=1e-12)


def test_the_identity_is_the_identity():
    for family in (TRANSFORMATIONS[name] for name in AFFINE):
        found = pf.matrices(family().identity, family(), SHAPE)
        np.testing.assert_allclose(found, np.eye(2, 3)[None], rtol=0, atol=1e-15)


def test_of_a_model(least_effort):
    model, images = small_model()
    lam, shape = model.transform(images, "quick"), model.image_shape_
    expected = pf.matrices(lam, model.transformation_, shape)
    np.testing.assert_array_equal(model.matrices(images, "quick"), expected)


def wavy(lam, x, y):
    return x - lam[0] * y**2, y


def test_other_families_have_none():
    family = pf.CustomTransformation(wavy, pf.Box(["k"], [-1.0], [1.0]), [0.0])
    with pytest.raises(TypeError, match=r"not known to be affine, so it has no matrices; resample"):
        pf.matrices([[0.5]], family, SHAPE)
    with pytest.raises(ValueError, match=r"lam has shape \(1, 3\); expected \(N, 2\)"):
        pf.matrices([[0.5, 1.0, 2.0]], "translation", SHAPE)
