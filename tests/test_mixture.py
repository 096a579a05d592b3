"""PatternMixture: kinds found without labels, model files, what is refused."""

import json
import re
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from patternfold import Grid, Pattern, PatternMixture, Translation, datasets, load, open_stack
from patternfold.estimators import stack_mixture
from patternfold.estimators.remarks import remarks_on_kinds
from patternfold.learning.mixture import parts as parts_module
from patternfold.learning.mixture.assign import Assigner
from patternfold.learning.mixture.compare import farther_apart, left_out, temperature_of
from patternfold.learning.mixture.merge import (
    chosen_count,
    kept_images,
    likely_counts,
    merge,
    shared_by_others,
    shared_images,
    with_their_images,
)
from patternfold.learning.mixture.outliers import usual_limits
from patternfold.learning.mixture.parts import (
    Parts,
    PartSettings,
    crowded_images,
    learned_parts,
    responsibilities,
)
from patternfold.learning.observations import Observations
from patternfold.learning.state import ASKED_TO_STOP
from patternfold.learning.stream import stack as stacks
from patternfold.persistence.mixture import _is_tree
from patternfold.show.pages import explorer
from patternfold.show.pages.tree import INK, colour_of, tree_svg

pytestmark = pytest.mark.usefixtures("small_chunks")

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


def test_stacks_are_learned_from(monkeypatch):
    # Sizes are those of the model above: nothing is compiled anew.
    first, second = drawn((40, 12)), drawn((40, 12), seed=7)
    order = np.random.default_rng(3).permutation(104)
    images, kinds = (np.concatenate(pair)[order] for pair in zip(first, second, strict=True))
    monkeypatch.setattr(stack_mixture, "LEARNED_FROM", 53)
    monkeypatch.setitem(stacks.BLOCK_BYTES, "cpu", 64 * 256 * 4)
    stack, own = open_stack(images), {"n_parts": 6, "n_atoms": 3, "max_iter": 4, "random_state": 0}
    model = PatternMixture(2, transformation=FAMILY, **own).fit(stack)
    assert model.n_iter_ >= 6, "two passes or more over all"
    assert len(stack.spans()) == 2
    assert len(model.labels_) == len(model.parameters_) == 104
    same = np.mean(model.labels_ == kinds)
    assert max(same, 1 - same) == 1
    np.testing.assert_array_equal(model.predict(stack), model.labels_)
    # Averages of all images fit all of them better than those of half of them.
    first, second = model.error_path_[-2:]
    assert second < first


def test_aligned_images_look_like_their_pattern(fitted):
    model, X, _ = fitted
    own = model.labels_ == 0
    aligned, found = model.align(X[own]), model.assign(X[own])
    same = found.parts == np.bincount(found.parts).argmax()
    assert same.sum() >= 3
    before, after = X[own][same].std(axis=0).mean(), aligned[same].std(axis=0).mean()
    assert after < 0.6 * before


def test_parts_are_written_as_atoms(fitted):
    model, _, _ = fitted
    pictures = np.ldexp(model._pictures, model._exponent)
    sizes = np.bincount(model.assignment_.parts, minlength=len(model.parts_))
    some = np.flatnonzero(sizes >= 5)
    assert len(some) >= 2
    for k in some:
        left = model.parts_[k].render(SHAPE).ravel() - pictures[k]
        # Two atoms make the kinds; what is left is noise, 5 % of the energy of an image.
        assert (left**2).sum() < 0.05 * (pictures[k] ** 2).sum()


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


def test_report_and_explorer_show_groups_by_fit(fitted):
    model, X, _ = fitted
    names = [f"<b>{i}&.png" for i in range(len(X))]
    page = model.report(X=X, names=names)
    for words in ("Group 1", "Group 2", "No group", "How parts were merged", "images in no group"):
        assert words in page.html
    assert f"{model.proportions_[0]:.1%}" in page.html
    assert "<b>0" not in page.html
    shown = explorer(model, X, names=names)
    assert "<b>0" not in shown.html
    assert "data:image/svg+xml;base64," in shown.html
    data = json.loads(re.search('id="data">(.*?)</script>', shown.html).group(1))
    first = data["galleries"][0]
    assert first["title"].startswith("Group 1, 75.5%")
    assert data["words"]["title"] == "Groups"
    chosen = [data["examples"][i]["name"] for i in first["items"]]
    left = model.assignment_.distances**2 / (X**2).sum(axis=(1, 2))
    ranks = [left[names.index(name)] for name in chosen]
    assert ranks == sorted(ranks)
    assert len(ranks) == 12
    labels = [pattern["label"] for pattern in data["patterns"]]
    assert labels[0] == "group 1"
    assert len(set(labels)) == len(labels) == len(model.parts_)
    for example in data["examples"]:  # each beside its own part, in its own light
        part, (gain, offset) = data["patterns"][example["cls"]], example["light"]
        assert part["label"] == example["label"]
        assert (gain > 0, offset) == (True, 0.0)


def test_the_merge_tree_is_drawn(fitted):
    model, _, _ = fitted
    tree = ElementTree.fromstring(tree_svg(model))
    count = Counter(element.tag.rpartition("}")[2] for element in tree)
    assert count["polyline"] == len(model.merge_tree_)
    assert count["image"] == len(model.parts_)
    colours = {element.get("stroke") for element in tree} - {None}
    assert {colour_of(0), INK} <= colours  # the last merge joins two groups
    single = SimpleNamespace(
        merge_tree_=np.empty((0, 4)), part_labels_=np.zeros(1, int), parts_=model.parts_[:1]
    )
    single.image_shape_ = SHAPE
    assert tree_svg(single).count("<image") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_patterns": 0}, "n_patterns=0 must be"),
        ({"n_patterns": 9}, "n_patterns=9 but only n_samples=4 of the images"),
        ({"n_patterns": 3, "n_parts": 2}, "n_parts=2 must not be below"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"n_init": 0}, "n_init=0 must be"),
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


def test_trees_of_files_are_trees():
    tree = merge(np.ones((4, 4)), np.zeros((4, 4)), 2).tree
    assert _is_tree(tree, 4)
    for row, column, value in (
        (0, 0, 5),
        (2, 1, 9),
        (1, 0, tree[0, 0]),
        (1, 2, np.nan),
        (0, 0, 0.5),
    ):
        damaged = tree.copy()
        damaged[row, column] = value
        assert not _is_tree(damaged, 4)
    assert not _is_tree(tree, 5)


def test_a_small_kind_keeps_to_itself():
    # Two parts share their images; one image of a third, of eleven, lies between it and them.
    part = np.concatenate([np.tile([[0, 1]], (30, 1)), np.tile([[2, 0]], (11, 1))])
    share = np.concatenate([np.full((30, 2), 0.5), np.tile([[1.0, 0.0]], (11, 1))])
    share[-1] = 0.8, 0.2
    graph = shared_images(part, share, np.ones(41), 3)
    kept = kept_images(part, share, np.ones(41), 3)
    assert kept == pytest.approx([7.5 + 0.04, 7.5, 10 + 0.64])
    apart = np.zeros((3, 3))
    assert merge(graph, apart, None, kept).groups.tolist() in ([0, 0, 1], [1, 1, 0])
    assert set(merge(graph, apart, None).groups) == {0}  # by that image alone they would be one


def test_parts_go_where_their_images_are():
    # Part 2 is nearest to two images, but most of each belongs to the parts of the other group.
    part, share = np.array([[2, 0, 1], [2, 0, 1], [3, 2, 0]]), np.array([[0.4, 0.3, 0.3]] * 3)
    share[2] = 0.9, 0.1, 0.0
    for groups, settled in (([0, 0, 1, 1], [0, 0, 0, 1]), ([0, 0, 1, 0], [0, 0, 1, 0])):
        assert with_their_images(np.array(groups), part, share, np.ones(3)).tolist() == settled


def test_noise_tells_no_two_parts_apart():
    # Parts of ten images, and one of a single image, of one kind with noise 0.1: pictures differ
    # by what their means have left of it. The fourth part is another kind.
    part = np.repeat(range(4), [10, 10, 1, 10])
    misfit = np.where(part == 2, 0.0, 0.09)
    apart = np.array([[0.02, 0.11, 0.5], [0.02, 0.11, 0.5], [0.11, 0.11, 0.6], [0.5, 0.5, 0.6]])
    other = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    farther = farther_apart(apart, other, misfit, part)
    assert farther[:2, :2] == pytest.approx(0, abs=1e-12)
    assert farther[2, :2] == pytest.approx(0, abs=1e-12)
    assert (farther[:, 2] > 3).all()
    assert (farther[3] > 3).all()


def test_no_image_counts_for_its_own_part():
    rng = np.random.default_rng(0)
    images, sizes = rng.standard_normal((9, 40)), (5, 3, 1)
    part = np.repeat(np.arange(3), sizes)
    weights = np.ones(9)
    weights[0] = 2.0
    means = [np.average(images[part == k], axis=0, weights=weights[part == k]) for k in range(3)]
    order = np.array([np.r_[k, np.delete(np.arange(3), k)] for k in part])
    away = np.array(
        [
            [((image - means[k]) ** 2).sum() for k in own]
            for image, own in zip(images, order, strict=True)
        ]
    )
    found = np.exp(left_out(np.log(np.maximum(away, 1e-6)), order, weights))
    np.testing.assert_allclose(found[:, 1:], away[:, 1:], rtol=1e-12)  # log and exp
    for i in range(8):
        others = (part == part[i]) & (np.arange(9) != i)
        mean = np.average(images[others], axis=0, weights=weights[others])
        assert found[i, 0] == pytest.approx(((images[i] - mean) ** 2).sum())
        assert found[i, 0] > 1.2 * away[i, 0]  # with a sixth of the weight, (6/5)²
    noise = [away[i, 0] / (1 - weights[i] / weights[part == part[i]].sum()) for i in range(8)]
    assert found[8, 0] == pytest.approx(2 * np.exp(np.median(np.log(noise))))


def test_the_temperature_is_that_of_kinds_with_several_parts():
    several = np.log([[0.9, 0.918, 0.945]] * 6)
    alone = np.log([[0.1, 0.4, 0.5]] * 6)
    assert temperature_of(several) == pytest.approx(np.log(1.05))
    assert temperature_of(several[:, ::-1]) == pytest.approx(np.log(1.05))
    assert temperature_of(alone) == 0.12
    assert temperature_of(alone[:, :1]) == pytest.approx(0.08 * 0.9)  # of what parts explain


def test_a_kind_cut_at_other_places_is_one():
    # Both kinds are cut into halves that share no image; learned again, at right angles to these.
    image, ones = np.arange(80), np.ones((80, 1))
    first = image[:, None] // 20
    again = 2 * (image[:, None] // 40) + image[:, None] % 2
    graph = shared_images(first, ones, ones[:, 0], 4)
    kept = kept_images(first, ones, ones[:, 0], 4)
    assert len(set(merge(graph, np.zeros((4, 4)), None, kept).groups)) == 4
    others = shared_by_others(first, ones, again, ones, ones[:, 0], 4, 4)
    # Each half has 10 images in common with both parts of 20, which have as many of the other half.
    assert others[0].tolist() == [0, 10, 0, 0]
    groups = merge((graph + others) / 2, np.zeros((4, 4)), None, kept).groups
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_parts_are_ordered_by_what_they_leave(monkeypatch):
    paths = {5: [0.3, 0.2], 6: [0.4, 0.1], 7: [0.2, 0.15]}
    told = []

    def learn(assigner, settings, report):
        report("parts, pass 1", 0.5)
        return Parts(np.empty(settings.seed), None, paths[settings.seed], "done")

    def tell(stage, misfit):
        told.append(stage)
        return False

    monkeypatch.setattr(parts_module, "learn_parts", learn)
    assigner = Assigner(Observations.put(np.zeros((1, 4), "f"), Grid(2, 2)), Translation())
    learned = learned_parts(assigner, PartSettings(seed=5), 3, tell)
    assert [len(parts.pictures) for parts in learned] == [6, 7, 5]
    assert told[0] == "parts, pass 1 (1 of 3)"
    assert len(learned_parts(assigner, PartSettings(seed=5), 1, tell)) == 1
    assert told[-1] == "parts, pass 1"


@pytest.mark.parametrize("stop_in", [0, 1, 2])
def test_learning_that_was_broken_off_does_not_count_beside_others(monkeypatch, stop_in):
    def learn(assigner, settings, report):
        reason = ASKED_TO_STOP if settings.seed == stop_in else "done"
        return Parts(np.empty(settings.seed + 1), None, [0.1 * settings.seed], reason)

    monkeypatch.setattr(parts_module, "learn_parts", learn)
    assigner = Assigner(Observations.put(np.zeros((1, 4), "f"), Grid(2, 2)), Translation())
    learned = learned_parts(assigner, PartSettings(seed=0), 3)
    assert [len(parts.pictures) for parts in learned] == [[1], [1], [1, 2]][stop_in]
    assert learned[0].reason == ASKED_TO_STOP


def test_faint_and_rare_kinds_are_kinds():
    rng = np.random.default_rng(11)
    X, y = drawn((40, 8), seed=5)
    third = datasets.random_images(
        Pattern([1.0, 1.0], [[0.0, -0.4, 0.0, 0.15, 0.15], [0.0, 0.4, 0.0, 0.15, 0.15]]),
        4,
        rng,
        FAMILY,
        shape=SHAPE,
    )[0]
    X[y == 1] = 0.5 * X[y == 1] + 0.02 * rng.standard_normal((8, *SHAPE))  # as noisy as others
    X = np.concatenate([X, third + 0.03 * rng.standard_normal(third.shape)]).astype("f")
    y = np.append(y, np.full(4, 2))
    model = PatternMixture("auto", n_parts=8, n_atoms=3, transformation=FAMILY, random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X), y)
    assert len(np.unique(model.assignment_.parts)) == len(model.parts_)  # none ends empty


def test_a_continuum_is_one_group():
    assert chosen_count(np.linspace(1, 0.1, 31)) == 1
    assert chosen_count(np.array([1, 0.97, 0.95, 0.6, 0.5, 0.3, 0.2, 0.1])) == 3


def test_numbers_nearly_as_likely_are_told():
    assert likely_counts(np.array([1, 0.64, 0.3, 0.2])) == [1, 2]
    assert likely_counts(np.array([1, 0.97, 0.95, 0.5, 0.4])) == [3]
    assert likely_counts(np.linspace(1, 0.1, 31)) == [1]
    values = np.array([1, 0.64, 0.3, 0.2])
    unsure = SimpleNamespace(n_patterns="auto", patterns_=[0], eigenvalues_=values)
    (remark,) = remarks_on_kinds(unsure)
    assert remark.code == "other-kinds"
    assert "one group from 2 groups" in remark.text
    assert "--patterns 2 " in remark.text
    unsure.eigenvalues_ = np.array([1, 0.3, 0.2])
    (remark,) = remarks_on_kinds(unsure)
    assert remark.code == "one-kind"
    unsure.n_patterns = 1
    assert remarks_on_kinds(unsure) == []


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
