"""Locally linear approximation and supervised locally linear embedding; classifiers of pixels."""

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.utils.estimator_checks import parametrize_with_checks

from patternfold import baselines


@pytest.fixture(scope="module")
def roll():
    """A curved surface, and classes by position on it."""
    X, t = make_swiss_roll(120, noise=0.05, random_state=0)
    return X, (t > np.median(t)).astype(int)


def distance_by_least_squares(point, plane):
    away = point - plane[0]
    along = (plane[1:] - plane[0]).T
    return np.linalg.norm(away - along @ np.linalg.lstsq(along, away, rcond=None)[0])


def test_distances_to_planes_of_the_other_images(rng):
    X = rng.normal(size=(20, 30))
    model = baselines.LocallyLinearApproximation(4).fit(X)
    for i, found in enumerate(model.distances_):
        order = np.argsort(np.linalg.norm(X - X[i], axis=1))
        expected = distance_by_least_squares(X[i], X[order[1:5]])
        assert found == pytest.approx(expected, rel=1e-9)  # float64, a 3×3 system
    assert model.error_ == pytest.approx((model.distances_**2).sum() / (X**2).sum())
    assert 0.3 < model.error_ < 1.5


def test_distances_of_new_images(rng):
    X, new = rng.normal(size=(15, 12)), rng.normal(size=(3, 12))
    model = baselines.LocallyLinearApproximation(3).fit(X)
    for row, found in zip(new, model.distances(new), strict=True):
        near = X[np.argsort(np.linalg.norm(X - row, axis=1))[:3]]
        assert found == pytest.approx(distance_by_least_squares(row, near), rel=1e-9)


def test_equal_neighbours_span_a_smaller_plane():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [3.0, 4.0]])
    model = baselines.LocallyLinearApproximation(2).fit(X)
    # The nearest two of the first image are the same point.
    assert model.distances_[0] == pytest.approx(1.0)


def test_nearest_plane_decides(rng):
    X, y = rng.normal(size=(40, 9)), np.repeat(["a", "b"], 20)
    X[y == "b"] += 1.0
    model = baselines.LocallyLinearClassifier(3).fit(X, y)
    new = rng.normal(size=(6, 9)) + 0.5
    distances = model.distances(new)
    for i, row in enumerate(new):
        for m, label in enumerate("ab"):
            own = X[y == label]
            near = own[np.argsort(np.linalg.norm(own - row, axis=1))[:3]]
            assert distances[i, m] == pytest.approx(distance_by_least_squares(row, near))
    np.testing.assert_array_equal(model.predict(new), model.classes_[distances.argmin(axis=1)])


def test_without_alpha_the_embedding_is_lle(roll):
    X, y = roll
    ours = baselines.SupervisedLLE(2, n_neighbors=10, alpha=0.0).fit(X, y)
    theirs = LocallyLinearEmbedding(n_components=2, n_neighbors=10, eigen_solver="dense").fit(X)
    # Up to signs: both eigenvalues are simple.
    overlap = np.abs(ours.embedding_.T @ theirs.embedding_)
    np.testing.assert_allclose(overlap, np.eye(2), atol=1e-6)
    expected = theirs.transform(X[:5] + 0.1)
    placed = ours.transform(X[:5] + 0.1)
    np.testing.assert_allclose(np.abs(placed), np.abs(expected), atol=1e-6)
    assert np.abs(expected).max() > 0.05


def test_training_images_come_back_near_their_place(roll):
    X, y = roll
    model = baselines.SupervisedLLE(2, n_neighbors=10, alpha=0.0).fit(X, y)
    apart = np.linalg.norm(model.transform(X) - model.embedding_, axis=1)
    assert np.median(apart) < 0.2 * np.linalg.norm(model.embedding_, axis=1).mean()


def test_alpha_pulls_classes_apart(rng):
    """Classes that overlap: with α = 1 each is its own component and collapses to a point."""
    X, y = rng.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
    mixed, apart = (
        baselines.SupervisedLLE(2, n_neighbors=6, alpha=a).fit(X, y).embedding_ for a in (0.0, 1.0)
    )

    def within(embedding):
        means = np.array([embedding[y == m].mean(axis=0) for m in range(3)])
        return ((embedding - means[y]) ** 2).sum() / (embedding**2).sum()

    assert within(apart) < 1e-6 < 0.5 < within(mixed)


def test_classifier_takes_the_nearest_neighbour_in_the_embedding(roll):
    X, y = roll
    model = baselines.SupervisedLLEClassifier(2, n_neighbors=10, alpha=0.2).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (baselines.LocallyLinearApproximation(0), "n_neighbors=0 must be an integer"),
        (baselines.LocallyLinearApproximation(6), "n_neighbors=6 but there are only 5 others"),
        (baselines.LocallyLinearClassifier(4), "only 3 images in the smallest class"),
        (baselines.SupervisedLLE(2, n_neighbors=3, alpha=1.5), "alpha=1.5 must lie between"),
        (baselines.SupervisedLLE(0, n_neighbors=3), "n_components=0 must be an integer"),
        (baselines.SupervisedLLE(6, n_neighbors=3), "n_components=6 must be below"),
        (baselines.SupervisedLLEClassifier(2, n_neighbors=9), "n_neighbors=9 but there are only 5"),
    ],
)
def test_bad_options_are_named(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.fit(rng.normal(size=(6, 4)), [0, 1, 0, 1, 0, 1])


def test_classifiers_of_pixels_learn(rng):
    X, y = rng.normal(size=(80, 16)), np.repeat([0, 1], 40)
    X[y == 1, :3] += 2.0
    models = {**baselines.discriminant_analyses(), "network": baselines.neural_network(0)}
    for name, model in models.items():
        assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.8, name


@parametrize_with_checks(
    [
        baselines.LocallyLinearApproximation(1),
        baselines.LocallyLinearClassifier(1),
        baselines.SupervisedLLE(1, n_neighbors=2),
        baselines.SupervisedLLEClassifier(1, n_neighbors=2),
    ]
)
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
