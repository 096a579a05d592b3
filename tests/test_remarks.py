"""Remarks: each check is raised by a case made for it, and by none that is in order."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import SHAPE, small_model, small_pattern

from patternfold import Pattern, manifold
from patternfold.estimators.remarks import CODES, Evidence, remarks_on, remarks_on_new
from patternfold.estimators.remarks.groups import split, two_groups
from patternfold.estimators.unaligned import mean_error, spread, standardised
from patternfold.learning.project import Projection

OTHER = Pattern([1.0, 0.5], [[0.0, 0.0, 0.0, 0.5, 0.1], [0.0, 0.3, 0.0, 0.1, 0.1]])


@pytest.fixture
def clean():
    """A model with 20 images that it explains but for noise, and what there is to see of them."""
    model, images = small_model(n_images=20)
    return evidence_of(model, images)


def evidence_of(model, images, lam=None, second=None, ratio=2.0):
    """Take the λ for known: nothing needs to be searched, or compiled for it."""
    lam = model.parameters_ if lam is None else lam
    rows = images.reshape(len(images), -1)
    rendered = manifold.render(model.pattern_, lam, model.transformation_, SHAPE)
    distances = np.linalg.norm(rows - np.asarray(rendered).reshape(rows.shape), axis=1)
    status = np.repeat("converged", len(rows))
    second = np.full_like(lam, np.nan) if second is None else second
    names = model.transformation_.parameters.names
    one = np.ones(len(rows))
    found = Projection(lam, distances, status, names, one, 0 * one, second, ratio * distances)
    return Evidence(model, rows, found, names=[f"{i}.png" for i in range(len(rows))])


def codes(evidence):
    said = remarks_on(evidence.model, evidence)
    assert all(remark.code in CODES for remark in said)
    assert all(str(remark) == remark.text for remark in said)
    return [remark.code for remark in said]


def only(evidence, code):
    (remark,) = remarks_on(evidence.model, evidence)
    assert remark.code == code
    return remark


def test_nothing_to_say(clean):
    assert codes(clean) == []
    assert clean.spread_ratio < 0.5
    assert clean.error < 0.1 * clean.baseline


def test_wrong_poses_let_the_spread_grow():
    model, images = small_model(n_images=20)
    same = np.tile(images[0], (20, 1, 1)) + 0.05 * images
    evidence = evidence_of(model, same)  # λ of other images: these were alike before
    assert evidence.spread_ratio > 1.5
    said = dict((r.code, r.text) for r in remarks_on(model, evidence))
    assert "grew to" in said["spread-grew"]
    assert "hardly below that of the mean image" in said["no-better"]


def test_a_frame_is_no_pattern(clean, rng):
    model = clean.model
    sides = [[0.0, x, y, *size] for x, y, *size in FRAME]
    model.pattern_ = Pattern(np.full(4, 2.0), sides)
    assert [r.code for r in remarks_on(model)] == ["edge"]
    lam = model.parameters_.copy()
    lam[:, 0] = 0.3 + np.pi / 2 * rng.integers(4, size=20) + rng.normal(0, 0.01, 20)
    model.parameters_ = lam
    assert [r.code for r in remarks_on(model)] == ["edge", "quarter-turns"]


FRAME = [(-1, 0, 0.1, 1.0), (1, 0, 0.1, 1.0), (0, -1, 1.0, 0.1), (0, 1, 1.0, 0.1)]


def test_pictures_that_all_stand_upright_are_no_frame(clean, rng):
    clean.model.parameters_[:, 0] = rng.normal(0, 0.02, 20)
    assert remarks_on(clean.model) == []


def test_parameters_at_their_bounds(clean):
    clean.found.parameters[:6, 3] = clean.model.transformation_.parameters.upper[3]
    said = remarks_on_new(clean)
    assert any("30% of the images have s at its upper bound 2" in str(r) for r in said)
    assert said[-1].images == tuple(range(6))


def test_second_poses_as_good_as_the_first():
    model, images = small_model(n_images=20)
    second = model.parameters_ + np.array([np.pi, 0, 0, 0])
    remark = only(evidence_of(model, images, second=second, ratio=1.01), "two-poses")
    assert "20 of 20 images fit a second pose nearly as well as the first, turned by 180°" in str(
        remark
    )
    assert codes(evidence_of(model, images, second=second, ratio=1.2)) == []


def test_blank_pictures_and_strangers():
    model, images = small_model(n_images=20)
    images[3], images[7] = 0, rendered(OTHER, model.parameters_[7:8])[0]
    said = remarks_on_new(evidence_of(model, images))
    assert [(r.code, r.images) for r in said] == [("blank", (3,)), ("strangers", (7,))]
    assert "1 image(s) fit much worse than the others" in str(said[1])
    assert "7.png" in str(said[1])


def rendered(pattern, lam):
    return np.asarray(manifold.render(pattern, lam, "similarity", SHAPE)).reshape(-1, *SHAPE)


def test_two_kinds_of_pictures(rng):
    model, images = small_model(n_images=20)
    images[12:] = rendered(OTHER, model.parameters_[12:]) + 0.01 * rng.normal(size=(8, *SHAPE))
    model.pattern_ = small_pattern().replace([1.0, -0.6], small_pattern().gamma[:2])
    said = {r.code: r for r in remarks_on_new(evidence_of(model, images))}
    assert said["two-groups"].images == tuple(range(12, 20))
    assert "8 of 20 differ from the others: 12.png, 13.png" in str(said["two-groups"])


@pytest.mark.parametrize(("trace", "expected"), [(0.5, list(range(12, 20))), (0.05, None)])
@pytest.mark.usefixtures("as_users_run")  # a record that stands for the evidence
def test_groups_must_differ_by_something_to_be_seen(trace, expected, rng):
    """Clearly apart in both cases, once by a share of the images that nobody would see."""
    values = rng.normal(size=(1, 40)) + 1e-3 * rng.normal(size=(20, 40))
    values[12:] += trace * rng.normal(size=40)
    some, weights = np.arange(20), np.ones_like(values)
    evidence = SimpleNamespace(some=some, aligned=(values, weights), misfit=np.full(20, 0.1))
    found = two_groups(evidence)
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize("draw", ["normal", "random", "exponential"])
def test_one_group_is_not_split(draw, rng):
    for n in (10, 20, 50):
        apart = [split(getattr(rng, draw)(size=n))[0] for _ in range(50)]
        assert np.mean(np.array(apart) > 4.5 + 40 / n) < 0.03


def test_paths_of_the_error(clean):
    model = clean.model

    def said(path):
        model.error_path_ = np.array(path)
        return [r.code for r in remarks_on(model)]

    assert said(np.linspace(1, 0.1, 10)) == ["error-falling"]
    model.n_atoms = "auto"
    assert said(np.linspace(1, 0.1, 10)) == []  # the number was chosen for a reason
    model.n_atoms = 10
    assert said(np.r_[np.linspace(1, 0.1, 5), np.full(5, 0.1)]) == ["idle-atoms"]
    assert said([0.9, 0.5, 0.3, 0.2, 0.15, 0.13, 0.12, 0.116, 0.115, 0.114]) == []
    # A final correction that gains 1 % calls for no more atoms where fewer would do.
    path = [0.62, 0.5, 0.396, 0.371, 0.357, 0.3422, 0.3379, 0.3353, 0.3319, 0.3277]
    assert said(path) == ["idle-atoms"]


def test_interrupted_and_few(clean):
    model = clean.model
    model.stop_reason_, model.parameters_ = "interrupted", model.parameters_[:2]
    said = remarks_on(model)
    assert [r.code for r in said] == ["interrupted", "few-images"]
    assert "Only 2 images" in str(said[1])


def test_images_are_searched():
    model, images = small_model()
    assert [r.code for r in model.remarks()] == []
    images[2] = 0
    assert [r.code for r in model.remarks(images)] == ["blank"]
    assert "b.png" in str(model.remarks(images, names=["a", "c", "b.png", "d", "e", "f"])[0])


class TestUnaligned:
    def test_error_of_the_mean(self, rng):
        rows = rng.random((7, 20))
        away = ((rows - rows.mean(axis=0)) ** 2).sum() / (rows**2).sum()
        assert mean_error(rows) == pytest.approx(away)

    def test_images_that_differ_in_brightness_only(self, rng):
        shape, gain, offset = rng.random(20), rng.uniform(1, 2, (7, 1)), rng.random((7, 1))
        rows = gain * shape + offset
        assert mean_error(rows) > 0.01
        assert mean_error(rows, gain=True, offset=True) < 1e-20
        known = standardised(rows, None, True, True)
        assert spread(known, np.ones_like(known)) < 1e-12

    def test_masked_pixels_count_nothing(self, rng):
        rows, mask = rng.random((7, 20)), np.ones((7, 20), bool)
        mask[:, :5] = False
        other = rows.copy()
        other[:, :5] = np.nan
        expected = mean_error(rows[:, 5:], offset=True)
        assert mean_error(rows, mask, offset=True) == pytest.approx(expected)
        assert mean_error(other, offset=True) == pytest.approx(expected)
