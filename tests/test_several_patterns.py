"""Classes of several patterns: the nearest decides; how many; files, pages, what is refused."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from helpers import class_patterns, small_jpats, small_views_classifier
from sklearn.svm import SVC

from patternfold import (
    JPATS,
    AlignedViews,
    AlignedViewsClassifier,
    Gaussian,
    Pattern,
    datasets,
    load,
)
from patternfold.cli import main
from patternfold.learning.choose_patterns import best_count, chosen_count
from patternfold.learning.effort import LEARNING
from patternfold.learning.fitted import fitted_manifolds
from patternfold.learning.frame import atoms_moved, rotation
from patternfold.learning.joint import JointProblem, JointState, cross_project, frozen_squares
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.several import (
    facing_one_way,
    in_parts,
    pattern_names,
    settled,
    without_empty,
)
from patternfold.model.atoms import AtomFamily
from patternfold.model.dictionaries import AtomDictionary
from patternfold.model.grid import Grid
from patternfold.model.transformations import as_transformation
from patternfold.persistence import save
from patternfold.show.pages import explorer, report
from patternfold.show.pages.explorer import poses

pytestmark = pytest.mark.usefixtures("small_chunks")

SHAPE, FAMILY = (16, 16), "rotation-translation"
KINDS = (
    Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]]),
    Pattern([1.0, 1.0], [[0.0, 0.0, 0.0, 0.5, 0.1], [1.2, 0.2, 0.1, 0.3, 0.1]]),
)
OTHER = KINDS[1].replace([1.0, 0.3], KINDS[1].gamma)
"""What class "b" looks like: the second kind of "a" is more like it than like the first kind."""


def drawn(*counts, seed=0):
    """Noisy images of both kinds of "a" and of "b", so many of each."""
    rng, images = np.random.default_rng(seed), []
    for pattern, n in zip((*KINDS, OTHER), counts, strict=False):
        drawn = datasets.random_images(pattern, n, rng, FAMILY, shape=SHAPE)[0]
        images.append(drawn + 0.03 * rng.standard_normal(drawn.shape))
    return np.concatenate(images).astype(np.float32)


def two_classes(first, second, other, seed=0):
    """Images of class "a", of two kinds, and of class "b"."""
    labels = np.repeat(np.array(["a", "b"]), [first + second, other])
    return drawn(first, second, other, seed=seed), labels


def quick(**options):
    return JPATS(3, transformation=FAMILY, n_joint=1, n_tuning=3, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    """The same images learned with one pattern of each class, and with two of the first."""
    images, labels = two_classes(18, 6, 12)
    return [quick(n_patterns=n).fit(images, labels) for n in (1, {"a": 2, "b": 1})]


def test_two_patterns_tell_what_one_does_not(fitted):
    one, two = fitted
    images, labels = two_classes(8, 8, 8, seed=5)
    assert one.score(images, labels) < two.score(images, labels) == 1
    assert two.pattern_labels_.tolist() == ["a", "a", "b"]
    assert one.pattern_labels_.tolist() == ["a", "b"]
    assert two.cross_parameters_.shape == (36, 3, 3)
    # What joint learning has accepted misclassifies no more images.
    assert (np.diff(two.error_path_[:, 0]) <= 0).all()


def test_the_nearest_pattern_of_a_class_decides(fitted):
    model = fitted[1]
    images, _ = two_classes(4, 4, 4, seed=6)
    every, distances = model.project(images).distances, model.distances(images)
    assert every.shape == (12, 3)
    expected = np.column_stack([every[:, :2].min(axis=1), every[:, 2]])
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(model.predict(images), np.array(["a", "b"])[expected.argmin(1)])
    scores = model.decision_function(images)
    np.testing.assert_allclose(scores, expected[:, 0] ** 2 - expected[:, 1] ** 2, rtol=1e-6)
    # Each kind has a pattern of its own.
    kinds = every[:8, :2].argmin(axis=1)
    assert len(set(kinds[:4])) == len(set(kinds[4:])) == 1
    assert kinds[0] != kinds[4]


def test_views_are_those_of_the_best_pattern(fitted):
    model = fitted[1]
    views = AlignedViews(parameters=True, features="gradients")
    names = ("patterns_", "pattern_labels_", "classes_", "transformation_", "image_shape_")
    vars(views).update({name: getattr(model, name) for name in (*names, "n_features_in_")})
    vars(views).update(lighting_=fitted_manifolds(model).lighting, _stacked=True)
    images, _ = two_classes(4, 4, 4, seed=6)
    rows = views.transform(images)
    named = views.get_feature_names_out()
    assert rows.shape == (12, len(named))
    found = model.project(images)
    best = found.distances[:, :2].argmin(axis=1)
    assert set(best) == {0, 1}
    lam = rows[:, [list(named).index(f"{name}_a") for name in ("theta", "tx", "ty")]]
    np.testing.assert_allclose(lam, found.parameters[np.arange(12), best], atol=1e-5)
    distance = rows[:, list(named).index("distance_a")]
    np.testing.assert_allclose(distance, found.distances[:, :2].min(axis=1), rtol=1e-5)


def test_views_classifier_of_several_patterns():
    images, labels = two_classes(18, 6, 12)
    model = AlignedViewsClassifier(2, n_patterns=2, transformation=FAMILY, random_state=0)
    model.fit(images, labels)
    assert model.views_.pattern_labels_.tolist() == ["a", "a", "b", "b"]
    new, expected = two_classes(8, 8, 8, seed=5)
    assert model.score(new, expected) == 1


def problem_of(images):
    family = AtomFamily(Gaussian(), AtomDictionary())
    observations = Observations.put(images.reshape(len(images), -1), Grid(*SHAPE))
    return Problem(observations, as_transformation(FAMILY), family)


def test_the_number_of_patterns_is_that_of_the_kinds():
    assert chosen_count(problem_of(drawn(12, 12)), seed=0) == 2
    assert chosen_count(problem_of(drawn(24)), seed=0) == 1
    assert chosen_count(problem_of(drawn(3)), seed=0) == 1


def test_a_pattern_must_be_worth_it():
    assert best_count([1.0, 0.97, 0.94]) == 1
    assert best_count([1.0, 0.9, 0.88]) == 2
    assert best_count([1.0, 0.99, 0.5]) == 3


def test_margins_between_classes_by_hand():
    squares = np.array([[1.0, 4.0, 2.0], [5.0, 1.0, 3.0], [2.0, 7.0, 3.0]])
    lam = np.zeros((3, 3, 1))
    state = JointState((Pattern([1.0], [[0, 0, 0, 1, 1]]),) * 3, lam, squares, (0, 0, 1))
    labels = np.array([0, 0, 1])
    margins = state.margins(labels)
    assert margins.rival.tolist() == [2, 2, 0]
    np.testing.assert_allclose(margins.f, [-1.0, -2.0, 1.0])
    assert margins.wrong.tolist() == [False, False, True]
    assert state.nearest_own(labels).tolist() == [0, 1, 2]
    assert margins.impostors(2).tolist() == [0, 1]
    assert margins.impostors(1).tolist() == []


@pytest.fixture(scope="module")
def started():
    """Images of two classes with parts at random, and rough patterns."""
    whole, labels = problem_of(drawn(8, 8, 8)), np.repeat([0, 1], [16, 8])
    places = np.append(np.random.default_rng(0).permutation(np.arange(16) % 2), np.full(8, 2))
    problem = JointProblem(whole, labels, 2, owners=(0, 0, 1), places=places)
    patterns = tuple(p.replace(0.8 * p.coef, p.gamma + 0.02) for p in (*KINDS, OTHER))
    return problem, cross_project(problem, patterns, LEARNING)


def test_images_go_to_the_nearest_pattern_and_patterns_follow(started):
    problem, state = started
    moved, after = settled(problem, Settings(2), state)
    assert (problem.places != moved.places).any()
    np.testing.assert_array_equal(moved.places, after.nearest_own(problem.labels))
    assert after.errors(moved)[1] < 0.8 * state.errors(problem)[1]  # the noise alone is 0.7 of it
    assert (np.array(moved.class_of)[moved.places] == moved.labels).all()
    assert moved.reassigned(after) is moved


def test_patterns_of_a_class_face_the_same_way(started):
    problem = started[0]
    turned = atoms_moved(KINDS[0], rotation(2.0), np.zeros(2))
    other = cross_project(problem, (KINDS[0], turned, OTHER), LEARNING)
    after = facing_one_way(problem, Settings(2), other)
    assert after.patterns[0] == KINDS[0]
    assert after.patterns[2] == OTHER
    # The angle is that of a search with few steps.
    before, now = (p.render(SHAPE) for p in (turned, after.patterns[1]))
    expected = KINDS[0].render(SHAPE)
    assert np.linalg.norm(now - expected) < 0.1 * np.linalg.norm(before - expected)
    # Nothing else has changed: the same images on the manifold.
    squares = frozen_squares(problem, after.patterns, after.lam)
    np.testing.assert_allclose(squares, other.squares, rtol=1e-3)


def test_a_pattern_without_images_is_left_out(started):
    problem, state = started
    lonely = replace(problem, places=np.where(problem.labels == 0, 1, 2))
    fewer, kept = without_empty(lonely, state)
    assert (fewer.owners, fewer.n_patterns) == ((0, 1), 2)
    assert kept.patterns == state.patterns[1:]
    np.testing.assert_array_equal(kept.squares, state.squares[:, 1:])
    np.testing.assert_array_equal(fewer.places, problem.labels)


def test_parts_of_a_class_are_its_kinds(started):
    problem, _ = started
    whole = replace(problem, owners=None, places=None)
    assert in_parts(whole, (1, 1), seed=0) is whole
    parted = in_parts(whole, (2, 1), seed=0)
    assert parted.owners == (0, 0, 1)
    first, second, other = parted.places[:8], parted.places[8:16], parted.places[16:]
    assert len(set(first)) == len(set(second)) == 1
    assert {first[0], second[0]} == {0, 1}
    assert set(other) == {2}


def test_names():
    assert pattern_names(["x", "y"], [0, 1]) == ["x", "y"]
    assert pattern_names(["x", "y"], [0, 0, 1]) == ["x (1 of 2)", "x (2 of 2)", "y"]


@pytest.mark.parametrize(
    ("n_patterns", "text"),
    [
        (0, "integer from 1"),
        (2.5, "integer from 1"),
        (True, "integer from 1"),
        ("many", "'auto'"),
        ({"a": 0, "b": 1}, "of class a"),
        ({"a": 2}, "names no number"),
        (5, "only 4 images that differ"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_what_is_refused(n_patterns, text):
    images, labels = two_classes(2, 2, 4)
    with pytest.raises(ValueError, match=text):
        quick(n_patterns=n_patterns).fit(images, labels)


def test_a_joint_learner_has_its_own_number():
    images, labels = two_classes(2, 2, 4)
    with pytest.raises(ValueError, match="give it to the JPATS"):
        AlignedViews(JPATS(), n_patterns=2).fit(images, labels)


def several(model):
    """A model made by hand with two patterns for its first class."""
    bar, dot = class_patterns()
    long = bar.replace(bar.coef, bar.gamma * [1, 1, 1, 1.4, 1])
    vars(model).update(patterns_=[bar, long, dot], pattern_labels_=np.array(["bar", "bar", "dot"]))
    return model


@pytest.fixture
def by_hand():
    model, images, labels = small_jpats()
    model.cross_parameters_ = np.tile(model.cross_parameters_[:, :1], (1, 3, 1))
    return several(model), images, labels


def test_models_come_back(by_hand, tmp_path):
    model, images, _ = by_hand
    model.n_patterns = 2
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.patterns_ == model.patterns_
    assert loaded.n_patterns == 2
    assert loaded.pattern_labels_.tolist() == ["bar", "bar", "dot"]
    np.testing.assert_array_equal(loaded.distances(images), model.distances(images))
    assert loaded.distances(images).shape == (12, 2)


def test_from_the_command_line(by_hand, tmp_path, capsys, monkeypatch):
    learned, images, labels = by_hand
    np.savez(tmp_path / "images.npz", X=images, y=labels)
    asked = []

    def fit(self, *_, **__):
        """Learning takes long; what was asked for is what matters here."""
        asked.append(self.n_patterns)
        names = [name for name in vars(learned) if name.endswith("_") or name == "_stacked"]
        vars(self).update({name: getattr(learned, name) for name in names})
        return self

    monkeypatch.setattr(JPATS, "fit", fit)
    model, source = str(tmp_path / "model.ptm"), str(tmp_path / "images.npz")
    how = ["--transformation", "similarity", "--method", "jpats", "--holdout", "0"]
    assert main(["classify", "train", source, "-o", model, *how, "--patterns", "2"]) == 0
    assert "2 patterns for each of 2 classes" in capsys.readouterr().err
    assert asked == [2]
    assert main(["info", model, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["classes"] == ["bar", "dot"]
    assert values["patterns"] == ["bar (1 of 2)", "bar (2 of 2)", "dot"]


def test_views_classifiers_come_back(tmp_path):
    model, images, labels = small_views_classifier()
    views = several(model.views_)
    model.classifier_ = SVC(C=10).fit(views.transform(images), labels)
    save(model, tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert len(loaded.views_.patterns_) == 3
    scores = model.decision_function(images)
    np.testing.assert_allclose(loaded.decision_function(images), scores, rtol=1e-7)


@pytest.mark.parametrize("owners", [[0, 1, 0], [0, 0, 0], [0, 0, 2], [0, 0, 0, 1]])
def test_damaged_owners_are_refused(owners, by_hand, tmp_path):
    by_hand[0].save(tmp_path / "model.ptm")
    np.save(tmp_path / "owners.npy", np.array(owners))
    with (
        zipfile.ZipFile(tmp_path / "model.ptm") as model,
        zipfile.ZipFile(tmp_path / "damaged.ptm", "w") as damaged,
    ):
        for name in model.namelist():
            own = "owners" in name
            damaged.writestr(
                name, (tmp_path / "owners.npy").read_bytes() if own else model.read(name)
            )
    with pytest.raises(ValueError, match=r"damaged\.ptm"):
        load(tmp_path / "damaged.ptm")


def test_pages_name_every_pattern(by_hand):
    model, images, labels = by_hand
    text = report(model, None, images, labels).html
    assert "patterns of each class" in text
    page = explorer(model, images, labels)
    assert "2 classes with 3 patterns" in page.html
    for name in ("bar (1 of 2)", "bar (2 of 2)"):
        assert json.dumps(name)[1:-1] in page.html
    view = fitted_manifolds(model)
    lam, named = poses(view, images[:2], ["bar", "dot"])
    found = view.project(images[:2], "normal")
    first = int(found.distances[0, :2].argmin())
    assert named == [view.labels[first], "dot"]
    np.testing.assert_allclose(lam[0], found.parameters[0, first], atol=1e-5)
    assert poses(view, images[:1], ["unknown"])[1] == ["unknown"]
