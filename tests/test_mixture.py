"""PatternMixture: kinds found without labels, model files, what is refused."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from patternfold import Pattern, PatternMixture, datasets, load
from patternfold.learning.mixture.merge import chosen_count, merge, shared_images
from patternfold.learning.mixture.outliers import usual_limits
from patternfold.learning.mixture.parts import crowded_images, responsibilities

SHAPE, FAMILY = (16, 16), "rotation-translation"
KINDS = (
    Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]]),
    Pattern([1.0, 1.0], [[0.0, 0.0, 0.0, 0.5, 0.1], [1.2, 0.2, 0.1, 0.3, 0.1]]),
)


def drawn(counts, seed=0):
    """Noisy images of kinds, so many of each, and their kinds."""
    rng = np.random.default_rng(seed)
    parts = [
        datasets.random_images(kind, n, rng, FAMILY, shape=SHAPE)[0]
        for kind, n in zip(KINDS, counts, strict=False)
    ]
    images = np.concatenate(parts)
    noisy = images + 0.03 * rng.standard_normal(images.shape)
    return noisy.astype(np.float32), np.repeat(np.arange(len(parts)), [len(p) for p in parts])


@pytest.fixture(scope="module")
def fitted():
    X, y = drawn((40, 12))
    X = np.concatenate([X, np.random.default_rng(1).uniform(0, 0.5, (1, *SHAPE))]).astype("f")
    model = PatternMixture(
        "auto", n_parts=6, n_atoms=3, transformation=FAMILY, outliers=True, random_state=0
    )
    return model.fit(X), X, y


def test_kinds_are_found_and_a_stranger_is_told(fitted):
    model, _, y = fitted
    assert len(model.patterns_) == 2
    np.testing.assert_array_equal(model.labels_[:-1], y)
    assert model.labels_[-1] == -1
    assert model.outlier_share_ == pytest.approx(1 / 53)
    assert model.proportions_.sum() + model.outlier_share_ == pytest.approx(1)
    assert set(model.part_labels_) == {0, 1}
    assert len(model.part_labels_) == len(model.parts_) == len(model.merge_tree_) + 1


def test_new_images_are_assigned_like_those_of_the_fit(fitted):
    model, X, _ = fitted
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    new, kinds = drawn((40, 12), seed=7)
    found = model.assign(new)
    np.testing.assert_array_equal(found.labels, kinds)
    distances = model.transform(new)
    assert distances.shape == (52, 2)
    np.testing.assert_array_equal(distances.argmin(axis=1), kinds)
    # The best part by the bank need not be the one that small displacements favour.
    assert (distances.min(axis=1) <= 1.2 * found.distances).all()
    assert model.score(new) > 0.9  # what is left is noise, 5 % of the energy


def test_aligned_images_look_like_their_pattern(fitted):
    model, X, _ = fitted
    own = model.labels_ == 0
    aligned, found = model.align(X[own]), model.assign(X[own])
    same = found.parts == np.bincount(found.parts).argmax()
    assert same.sum() >= 3
    before, after = X[own][same].std(axis=0).mean(), aligned[same].std(axis=0).mean()
    assert after < 0.6 * before


def test_a_single_kind_is_not_split():
    X, _ = drawn((53,))
    model = PatternMixture("auto", n_parts=6, n_atoms=3, transformation=FAMILY, random_state=0)
    assert set(model.fit_predict(X)) == {0}


def test_same_seed_same_model_whatever_the_order(fitted):
    model, X, _ = fitted
    order = np.random.default_rng(3).permutation(len(X))
    again = PatternMixture(**model.get_params()).fit(X[order])
    np.testing.assert_array_equal(again.labels_, model.labels_[order])
    np.testing.assert_array_equal(again.parameters_, model.parameters_[order])


def test_files(fitted, tmp_path):
    model, X, _ = fitted
    model.save(tmp_path / "kinds.ptm")
    again = load(tmp_path / "kinds.ptm")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_allclose(again.transform(X[:3]), model.transform(X[:3]), rtol=1e-6)
    assert again.patterns_ == model.patterns_
    assert again.get_params()["outliers"] is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_patterns": 0}, "n_patterns=0 must be"),
        ({"n_patterns": 9}, "n_patterns=9 but only n_samples=4 of the images"),
        ({"n_patterns": 3, "n_parts": 2}, "n_parts=2 must not be below"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"transformation": "turning"}, "turning"),
    ],
)
def test_what_is_refused(options, words):
    X, _ = drawn((4,))
    with pytest.raises(ValueError, match=words):
        PatternMixture(**({"n_patterns": 2} | options)).fit(X)


def test_identical_blank_and_single_images():
    X, _ = drawn((4,))
    copies = np.repeat(X[:1], 5, axis=0)
    with pytest.raises(ValueError, match="only n_samples=1 of the images"):
        PatternMixture(2).fit(copies)
    with pytest.raises(ValueError, match="blank"):
        PatternMixture(1).fit(np.zeros((3, 8, 8)))
    for images in (copies, X[:1]):
        model = PatternMixture("auto", n_atoms=2, transformation=FAMILY).fit(images)
        assert model.labels_.tolist() == [0] * len(images)
    X[0, :4, :4] = np.nan
    model = PatternMixture(1, n_parts=2, n_atoms=2, transformation=FAMILY).fit(X)
    assert np.isfinite(model.parameters_).all()


def test_groups_of_a_graph():
    rng = np.random.default_rng(0)
    first = rng.permuted(np.tile(np.arange(4), (40, 1)), axis=1)[:, :2]  # parts 0 to 3
    second = 4 + rng.permuted(np.tile(np.arange(3), (20, 1)), axis=1)[:, :2]  # parts 4 to 6
    part = np.concatenate([first, second])
    share = rng.dirichlet((3.0, 3.0), len(part))
    graph = shared_images(part, share, np.ones(len(part)), 7)
    both = (np.sort(part, axis=1) == [0, 1]).all(axis=1)
    assert graph[0, 1] == pytest.approx(share[both].prod(axis=1).sum())
    assert np.diag(graph).tolist() == [0] * 7
    merged = merge(graph, np.zeros((7, 7)), None)
    assert len(set(merged.groups[:4])) == len(set(merged.groups[4:])) == 1
    assert merged.groups[0] != merged.groups[4]
    assert merged.eigenvalues[:2] == pytest.approx([1, 1])
    assert len(set(merge(graph, np.zeros((7, 7)), 3).groups)) == 3


def test_a_continuum_is_one_group():
    assert chosen_count(np.linspace(1, 0.1, 31)) == 1
    assert chosen_count(np.array([1, 0.97, 0.95, 0.6, 0.5, 0.3, 0.2, 0.1])) == 3


def test_starved_parts_come_from_crowded_ones():
    part, misfit = np.array([0, 0, 0, 0, 1, 1]), np.array([0.1, 0.9, 0.3, 0.2, 0.1, 0.1])
    assert crowded_images(part, misfit, np.ones(6), 1, 3) == [2]
    assert responsibilities(np.array([[0.1, 0.2]]), 0.0).tolist() == [[1, 0]]


def test_what_is_usual_is_told_by_the_median():
    left = np.r_[np.full(9, 0.1), 3.0, np.full(4, 0.2)]
    limits = usual_limits(left, np.repeat([0, 1], [10, 4]), 2)
    assert 0.1 < limits[0] < 0.3
    assert 0.2 < limits[1] < 0.5


@parametrize_with_checks(
    [
        PatternMixture(
            2, n_parts=2, n_atoms=1, max_iter=1, flexible=False, transformation="translation"
        )
    ]
)
@pytest.mark.usefixtures("as_users_run", "least_effort")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
