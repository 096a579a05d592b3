"""Variants of training images, and the classifier that learns from them."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from sklearn.svm import SVC

import patternfold as pf
from patternfold import datasets
from patternfold.estimators import kernel_machine, view_variants
from patternfold.estimators.images import Pixels
from patternfold.estimators.kernel_machine import fit_kernel_machine
from patternfold.estimators.view_variants import MOST_CHOSEN, ROWS_CHOSEN, count_of, variants
from patternfold.learning.variants import DEFORMATION, deformations, deformed

pytestmark = pytest.mark.usefixtures("small_chunks")

FAMILY = pf.Similarity()
SHAPE = (16, 20)
GRID = pf.Grid(*SHAPE)


@pytest.fixture(scope="module")
def posed():
    """Images of a random pattern, as rows, and their poses."""
    rng = np.random.default_rng(1)
    pattern = datasets.random_pattern(3, rng)
    bounds = {"s": (0.8, 1.2), "tx": (-0.1, 0.1), "ty": (-0.1, 0.1)}
    images, lam = datasets.random_images(pattern, 8, rng, FAMILY, bounds, SHAPE, dtype=np.float64)
    return images.reshape(8, -1), lam


def test_nothing_is_deformed_by_the_identity(posed):
    rows, lam = posed
    same = np.tile(DEFORMATION.identity, (8, 1))
    none = np.zeros(8, bool)
    found = deformed(rows, GRID, lam, FAMILY, same, none)
    np.testing.assert_allclose(found, rows, atol=1e-12)  # places in pixels, some rounding
    upright = np.tile(FAMILY.identity, (8, 1))
    over = deformed(rows, GRID, upright, FAMILY, same, ~none).reshape(8, *SHAPE)
    np.testing.assert_allclose(over, rows.reshape(8, *SHAPE)[:, :, ::-1], atol=1e-12)


def test_deformed_against_scipy(posed, rng):
    rows, lam = posed
    shapes = deformations(8, rng)
    found = deformed(rows, GRID, lam, FAMILY, shapes, np.zeros(8, bool))
    for row, pose, shape, values in zip(rows, lam, shapes, found, strict=True):
        theta, tx, ty, s = pose
        turn = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
        x, y = (turn.T @ (np.stack([GRID.x, GRID.y]) - [[tx], [ty]])) / s
        sx, sy, k, *modes = shape
        x, y = x / sx - k * y / sy, y / sy
        quadratic = np.stack([x * x, x * y, y * y]) / (1 + x * x + y * y)
        x, y = x + modes[:3] @ quadratic, y + modes[3:] @ quadratic
        x, y = turn @ np.stack([x, y]) * s + [[tx], [ty]]
        places = [y / GRID.pixel + (SHAPE[0] - 1) / 2, x / GRID.pixel + (SHAPE[1] - 1) / 2]
        expected = map_coordinates(row.reshape(SHAPE), places, order=1, mode="grid-constant")
        np.testing.assert_allclose(values, expected, atol=1e-10)
    assert np.abs(found - rows).max() > 0.1


def test_variants_belong_to_images_whatever_their_order(posed, rng):
    rows, lam = posed
    counted = rng.random(rows.shape) < 0.9
    order = rng.permutation(8)

    def made(index, seed=0):
        pixels = Pixels(rows[index], counted[index])
        return list(variants(pixels, SHAPE, lam[index], np.zeros(8), FAMILY, 2, True, seed))

    straight, mixed, other = made(np.arange(8)), made(order), made(np.arange(8), seed=1)
    for one, two, third in zip(straight, mixed, other, strict=True):
        np.testing.assert_array_equal(one.rows[order], two.rows)
        np.testing.assert_array_equal(one.counted[order], two.counted)
        assert np.abs(one.rows - third.rows).max() > 0.1
        assert 0.7 < one.counted.mean() < 1


def test_variants_keep_norm_and_light(posed):
    rows, lam = posed
    level = np.linspace(1, 2, 8)
    lit = Pixels(3 * rows + level[:, None])
    for variant in variants(lit, SHAPE, lam, level, FAMILY, 3, False, 0):
        bare = variant.rows - level[:, None]
        np.testing.assert_allclose(np.linalg.norm(bare, axis=1), 3 * np.linalg.norm(rows, axis=1))
        assert np.abs(bare - 3 * rows).max() > 0.1


def test_what_would_leave_the_window_stays_as_it_is():
    rows = np.zeros((1, 20 * 16))
    rows[0, [0, 300]] = 3, 0.1  # nearly all that there is lies in a corner
    counted = np.ones(rows.shape, bool)
    counted[:, 40:60] = False
    light = np.array([0.5])
    lit = Pixels(np.where(counted, rows + light, 0), counted)
    same = 0
    for variant in variants(lit, SHAPE, FAMILY.identity[None], light, FAMILY, 24, True, 0):
        bare = np.where(variant.counted, variant.rows - light, 0)
        assert np.abs(bare).max() < 6  # nothing faint is made as bright as what was lost
        assert (variant.rows[~variant.counted] == 0).all()
        same += np.array_equal(variant.rows, lit.rows)
    assert 3 <= same < 24


def test_number_of_variants():
    def chosen(n_images, mirror=False):
        return count_of("auto", n_images, mirror, chosen=True)

    assert chosen(10) == MOST_CHOSEN
    assert chosen(ROWS_CHOSEN // 5) == 4
    assert chosen(2 * ROWS_CHOSEN) == 0
    assert chosen(2 * ROWS_CHOSEN, mirror=True) == 1
    assert count_of("auto", 10, False, chosen=False) == 0
    assert count_of(3, 10**6, False, chosen=True) == 3


@pytest.mark.parametrize("most", [10, 10_000])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_machine_is_that_of_scikit_learn(rng, monkeypatch, n_classes, most):
    monkeypatch.setattr(kernel_machine, "MOST_AT_ONCE", most)
    targets = np.array(["a", "b", "c"])[rng.integers(0, n_classes, 90)]
    features = rng.normal(size=(90, 12)) + (targets[:, None] == "a")
    theirs = SVC(C=10).fit(features, targets)
    ours = fit_kernel_machine(features, targets, 10.0)
    others = rng.normal(size=(50, 12))
    # libsvm ends where its conditions hold to 1e-3.
    found, expected = ours.decision_function(others), theirs.decision_function(others)
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert np.ptp(expected) > 1
    np.testing.assert_array_equal(ours.predict(features), theirs.predict(features))


@pytest.fixture(scope="module")
def hands():
    """Three images of each of two patterns that are much alike, and many that are deformed."""
    rng = np.random.default_rng(7)
    one = datasets.random_pattern(4, rng)
    gamma = np.array(one.gamma)
    gamma[:, 1:3] += 0.2 * rng.normal(size=(4, 2))
    patterns = [one, pf.Pattern(one.coef, gamma)]
    family, shape = "rotation-translation", (20, 20)

    def drawn(count, wild):
        parts = []
        for pattern in patterns:
            images, lam = datasets.random_images(pattern, count, rng, family, shape=shape)
            if wild:
                how = (pf.RotationTranslation(), deformations(count, rng), np.zeros(count, bool))
                rows = deformed(images.reshape(count, -1), pf.Grid(*shape), lam, *how)
                images = rows.reshape(images.shape)
            parts.append(images + 0.05 * rng.standard_normal(images.shape))
        return np.concatenate(parts).astype(np.float32), np.repeat([0, 1], count)

    return *drawn(3, False), *drawn(64, True)


def test_variants_help_with_few_examples(hands):
    X, y, X_test, y_test = hands
    scores = {}
    for count in (0, 12):
        model = pf.AlignedViewsClassifier(
            3, n_variants=count, transformation="rotation-translation", random_state=0
        ).fit(X, y)
        scores[count] = model.score(X_test, y_test)
    assert scores[12] > scores[0] + 0.05  # of 128 images, 0.99 against 0.88


def test_what_the_classifier_is_fitted_to(hands, monkeypatch):
    X, y = hands[:2]
    fitted = []

    class Listed(SVC):
        def fit(self, features, targets):
            fitted.append(features)
            return super().fit(features, targets)

    def rows(n_variants, **options):
        model = pf.AlignedViewsClassifier(
            classifier=Listed(),
            manifold_learner=pf.PATS(1, transformation="rotation-translation", random_state=0),
            n_variants=n_variants,
            **options,
        )
        model.fit(X, y)
        return fitted[-1]

    monkeypatch.setattr(view_variants, "MOST_CHOSEN", 2)
    assert len(rows("auto")) == len(X)  # folds of a classifier of one's own are kept apart
    plain, over = rows(2), rows(2, mirror=True)
    assert len(plain) == len(over) == 3 * len(X)
    np.testing.assert_array_equal(plain, rows(2))  # the learner's seed is that of the variants
    first, second = np.split(np.abs(plain - over).max(axis=1)[len(X) :], 2)
    assert first.min() > 0.01  # turned over
    assert second.max() == 0


@pytest.mark.usefixtures("as_users_run")
def test_mirror_images_are_variants(hands):
    for options in ({"mirror": True, "n_variants": 0}, {"mirror": "yes"}):
        with pytest.raises(ValueError, match="mirror="):
            pf.AlignedViewsClassifier(**options).fit(*hands[:2])


@pytest.mark.parametrize("bad", [-1, 1.5, True, "many", 10**6])
@pytest.mark.usefixtures("as_users_run")
def test_bad_numbers_are_refused(hands, bad):
    with pytest.raises(ValueError, match=r"n_variants=.* must be an integer from 0 to 1000"):
        pf.AlignedViewsClassifier(n_variants=bad).fit(*hands[:2])
