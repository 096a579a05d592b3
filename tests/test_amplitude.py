"""Results follow the unit of the images exactly, over the whole range of floating point."""

import numpy as np
import pytest
from sklearn.base import clone

import patternfold as pf
from patternfold.learning.amplitude import Amplitude

SMALL = {
    "transformation": "translation",
    "tangent_refinement": False,
    "refit": "coefficients",
    "projection": "fixed",
    "n_exchanges": 0,
    "random_state": 0,
}
LABELS = np.repeat(["a", "b"], 4)
EXPONENTS = (-600, 600)  # beyond these the squares of float64 numbers are 0 or infinite
BAR = pf.Pattern([1.0], [[0.3, 0.1, -0.1, 0.5, 0.2]])


@pytest.fixture
def images(rng):
    images = rng.random((8, 6, 6))
    return images / images.max()


@pytest.mark.usefixtures("least_effort")
def test_pats(images):
    model = pf.PATS(3, n_starts=2, **SMALL)
    one = clone(model).fit(images)
    assert one.pattern_.n_atoms == 3
    for exponent in EXPONENTS:
        other = clone(model).fit(np.ldexp(images, exponent))
        np.testing.assert_array_equal(other.pattern_.coef, np.ldexp(one.pattern_.coef, exponent))
        np.testing.assert_array_equal(other.pattern_.gamma, one.pattern_.gamma)
        np.testing.assert_array_equal(other.error_path_, one.error_path_)
        ours, theirs = one.project(images), other.project(np.ldexp(images, exponent))
        np.testing.assert_array_equal(theirs.parameters, ours.parameters)
        np.testing.assert_array_equal(theirs.distances, np.ldexp(ours.distances, exponent))


@pytest.mark.usefixtures("least_effort")
def test_references_have_the_unit_of_the_images(images):
    exponent = 600
    bright = pf.Pattern(np.ldexp(BAR.coef, exponent), BAR.gamma)
    for ours, theirs in ((BAR, bright), (images[1], np.ldexp(images[1], exponent)), (2, 2)):
        one = pf.PATS(1, reference=ours, n_starts=1, **SMALL).fit(images)
        other = pf.PATS(1, reference=theirs, n_starts=1, **SMALL).fit(np.ldexp(images, exponent))
        np.testing.assert_array_equal(other.parameters_, one.parameters_)


@pytest.mark.usefixtures("least_effort")
def test_classifiers(images):
    joint = pf.JPATS(2, n_tuning=0, n_starts=2, outlier_threshold="calibrate", **SMALL)
    learner = pf.PATS(2, n_starts=2, **SMALL)
    views = pf.AlignedViewsClassifier(manifold_learner=learner)
    for model, exponent in zip((joint, views), EXPONENTS, strict=True):
        one = clone(model).fit(images, LABELS)
        other = clone(model).fit(np.ldexp(images, exponent), LABELS)
        found = other.predict(np.ldexp(images, exponent))
        np.testing.assert_array_equal(found, one.predict(images))


@pytest.mark.usefixtures("least_effort")
@pytest.mark.parametrize("gain", [False, True])
def test_mixture(images, gain):
    few = {"n_parts": 3, "n_atoms": 1, "max_iter": 2, "n_init": 2}
    model = pf.PatternMixture(2, transformation="translation", gain=gain, random_state=0, **few)
    one = clone(model).fit(images)
    for exponent in EXPONENTS:
        other = clone(model).fit(np.ldexp(images, exponent))
        np.testing.assert_array_equal(other.labels_, one.labels_)
        np.testing.assert_array_equal(other.parameters_, one.parameters_)
        np.testing.assert_array_equal(other.eigenvalues_, one.eigenvalues_)
        found = other.transform(np.ldexp(images, exponent))
        np.testing.assert_array_equal(found, np.ldexp(one.transform(images), exponent))


@pytest.mark.usefixtures("least_effort")
def test_variants(images, rng):
    """What an image becomes does not depend on its unit."""
    learner = pf.PATS(1, n_starts=1, **SMALL)
    model = pf.AlignedViewsClassifier(manifold_learner=learner, n_variants=2, distances=False)
    others = rng.random((6, 6, 6))
    one = clone(model).fit(images, LABELS).decision_function(others)
    for exponent in EXPONENTS:
        other = clone(model).fit(np.ldexp(images, exponent), LABELS)
        found = other.decision_function(np.ldexp(others, exponent))
        np.testing.assert_allclose(found, one, atol=1e-6)


@pytest.mark.usefixtures("least_effort")
@pytest.mark.parametrize("options", [{}, {"alpha": "auto"}, {"alpha": 0.3, "beta": 5.0}])
def test_weights_of_the_classification_error(images, options):
    """α and β mean the same for images of any usual format."""
    model = pf.JPATS(2, n_joint=2, n_tuning=3, acceptance="by-class", **SMALL, **options)
    one = clone(model).fit(images, LABELS)
    assert one.n_iter_ > 1
    other = clone(model).fit(np.ldexp(images, 8), LABELS)
    np.testing.assert_array_equal(other.error_path_, one.error_path_)
    for ours, theirs in zip(one.patterns_, other.patterns_, strict=True):
        np.testing.assert_array_equal(theirs.coef, np.ldexp(ours.coef, 8))
        np.testing.assert_array_equal(theirs.gamma, ours.gamma)
    # Not by a power of two either; patterns differ by what rounding leads to.
    third = clone(model).fit(images / 3, LABELS)
    np.testing.assert_allclose(third.error_path_, one.error_path_, rtol=0.02)


def test_brighter_than_the_pattern(rng):
    dim = rng.random((2, 6, 6))
    images = dim * [[[1.0]], [[1e200]]]  # whose square is infinite
    found = pf.project(BAR, images, "translation", effort="quick")
    alone = pf.project(BAR, dim, "translation", effort="quick")
    np.testing.assert_array_equal(found.parameters[0], alone.parameters[0])
    assert np.isclose(found.distances[1], 1e200 * np.linalg.norm(dim[1]), rtol=1e-12)
    assert np.isfinite(found.parameters).all()


def test_too_bright():
    images = np.full((2, 6, 6), 1e308)
    with pytest.raises(ValueError, match=r"X holds values up to 1e\+308.*[Dd]ivide"):
        pf.PATS(1).fit(images)
    with pytest.raises(ValueError, match=r"images\[0\] is so bright.*divide"):
        pf.project(BAR, images, "translation", effort="quick")


def test_ordinary_images_are_left_alone():
    for peak in (2.0**-16, 1e-3, 1.0, 255.0, 65535.0):
        images = np.full((1, 4), peak)
        assert Amplitude.of_images("X", images) == Amplitude(0)
        assert Amplitude(0).lowered(images) is images
    assert Amplitude.of_images("X", np.zeros((1, 4))) == Amplitude(0)
