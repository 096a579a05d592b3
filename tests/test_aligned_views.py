"""Aligned views and the classifier on them, as scikit-learn's users meet them."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import patternfold as pf
from patternfold import datasets
from patternfold.estimators import views_classifier
from patternfold.estimators.aligned_views import WEIGHT
from patternfold.estimators.gradients import oriented_gradients

pytestmark = pytest.mark.usefixtures("small_chunks")

FAMILY = "rotation-translation"
# Few kernels to compile: the checks come with many shapes.
LEARNER = pf.PATS(
    n_atoms=1,
    transformation="translation",
    tangent_refinement=False,
    refit=None,
    projection="fixed",
    n_starts=1,
    n_exchanges=0,
)


@parametrize_with_checks([pf.AlignedViewsClassifier(manifold_learner=LEARNER)])
@pytest.mark.usefixtures("as_users_run", "least_effort")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The classifier, checked above, has the same views.
@pytest.mark.exhaustive
@parametrize_with_checks([pf.AlignedViews(LEARNER)])
@pytest.mark.usefixtures("as_users_run", "least_effort")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks_of_views(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def classes():
    """Images of two random patterns, the same ones in fit and test, and their labels."""
    rng = np.random.default_rng(3)
    patterns = [datasets.random_pattern(3, rng) for _ in range(2)]
    sets = []
    for _ in range(2):
        images = [
            datasets.random_images(p, 16, rng, FAMILY, shape=(20, 20), noise=0.02)[0]
            for p in patterns
        ]
        sets += [np.concatenate(images), np.repeat([4, 7], 16)]
    return sets


@pytest.fixture(scope="module")
def learner():
    return pf.PATS(n_atoms=3, transformation=FAMILY, n_starts=1, n_exchanges=0, random_state=0)


def test_gradients_do_not_depend_on_brightness(classes, learner):
    """Distances of pixels from 0 to 255 must not outweigh gradients, which are below 1."""
    X, y, X_test, _ = classes
    views = pf.AlignedViews(learner, features="gradients").fit(X, y)
    features = views.transform(X_test)
    shares = features[:, -2:]
    norm = np.sqrt((X.reshape(len(X), -1) ** 2).sum(axis=1).mean())
    pixels = pf.AlignedViews(learner).fit(X, y).transform(X_test)
    np.testing.assert_allclose(shares * norm, WEIGHT * pixels[:, -2:], rtol=1e-6)
    # Patterns and images times a power of two, which changes nothing in rounding.
    views.distance_unit_ *= 256
    views.patterns_ = [p.replace(256 * p.coef, p.gamma) for p in views.patterns_]
    np.testing.assert_allclose(views.transform(256 * X_test), features, rtol=1e-5, atol=1e-6)


def test_views_are_aligned(classes, learner):
    X, y, X_test, y_test = classes
    views = pf.AlignedViews(learner, parameters=True).fit(X, y)
    features = views.transform(X_test)
    names = list(views.get_feature_names_out())
    assert features.shape == (32, 2 * 400 + 2 + 2 * 3) == (32, len(names))
    assert names[0] == "view_4_pixel_0"
    assert names[800:804] == ["distance_4", "distance_7", "theta_4", "tx_4"]
    for m, label in enumerate(views.classes_):
        own = features[y_test == label, 400 * m : 400 * (m + 1)]
        raw = X_test[y_test == label].reshape(16, -1)
        # What is left is noise and interpolation.
        assert own.var(axis=0).sum() < 0.5 * raw.var(axis=0).sum()
    found = pf.project(views.patterns_, X_test, FAMILY, effort="quick")
    np.testing.assert_allclose(features[:, 800:802], found.distances, rtol=1e-5)


def test_classifier_beats_raw_pixels(classes, learner, monkeypatch):
    X, y, X_test, y_test = classes
    model = pf.AlignedViewsClassifier(manifold_learner=learner).fit(X, y)
    raw = KNeighborsClassifier(1).fit(X.reshape(32, -1), y)
    assert model.score(X_test, y_test) > 0.95
    assert model.score(X_test, y_test) > raw.score(X_test.reshape(32, -1), y_test)
    copy = pickle.loads(pickle.dumps(model))
    predicted, scores = model.predict(X_test), model.decision_function(X_test)
    np.testing.assert_array_equal(copy.predict(X_test), predicted)
    # Of many images only some have views at a time.
    monkeypatch.setattr(views_classifier, "AT_ONCE", 24)
    np.testing.assert_array_equal(model.predict(X_test), predicted)
    np.testing.assert_allclose(model.decision_function(X_test), scores, rtol=1e-5)  # float32


def test_gradients_against_a_sum_over_pixels(rng):
    image = rng.normal(size=(12, 20))
    down, right = np.gradient(image)
    strength = np.hypot(down, right)
    expected = np.zeros((8, 8, 8))
    for k, i, j in np.ndindex(8, 8, 8):
        along = np.cos(np.arctan2(down, right) - np.pi * k / 4)
        places = [
            np.exp(-0.5 * (((np.arange(n) + 0.5) / n - (c + 0.5) / 8) / 0.05) ** 2)
            for n, c in ((12, i), (20, j))
        ]
        weights = np.outer(*(w / w.sum() for w in places))
        expected[k, i, j] = (weights * strength * np.maximum(along, 0) ** 3).sum()
    expected = np.sqrt(expected / np.linalg.norm(expected)).reshape(-1)
    values = oriented_gradients(np.stack([image, 3 * image, 0 * image]))
    np.testing.assert_allclose(values, [expected, expected, 0 * expected], atol=1e-12)
    faint = oriented_gradients((1e-20 * image[None]).astype(np.float32))
    assert np.isfinite(faint).all()


def test_gradients_as_features(classes, learner):
    X, y, X_test, y_test = classes
    views = pf.AlignedViews(learner, features="gradients").fit(X, y)
    features = views.transform(X_test)
    names = views.get_feature_names_out()
    assert features.shape == (32, 2 * 512 + 2) == (32, len(names))
    assert names[513] == "view_7_gradient_1"
    assert SVC(C=10).fit(views.transform(X), y).score(features, y_test) > 0.95
    with pytest.raises(ValueError, match=r"features.*'gradient'.*gradients"):
        pf.AlignedViews(learner, features="gradient").fit(X, y)


def test_pipelines_joint_learner_and_other_classifiers(classes):
    X, y, X_test, y_test = classes
    joint = pf.JPATS(n_atoms=3, transformation=FAMILY, n_joint=0, n_tuning=2, random_state=0)
    pipeline = make_pipeline(pf.AlignedViews(joint, distances=False), LogisticRegression())
    assert pipeline.fit(X, y).score(X_test, y_test) > 0.95
    assert pipeline[0].transform(X_test).shape == (32, 800)


@pytest.mark.usefixtures("as_users_run")
def test_bad_learner(classes):
    X, y, *_ = classes
    with pytest.raises(TypeError, match="manifold_learner must be a PATS or a JPATS"):
        pf.AlignedViews(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        pf.AlignedViewsClassifier().fit(X, np.zeros(32))
