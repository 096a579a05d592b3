"""One effort, one answer: through every door an image has the same λ."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import SHAPE, small_jpats, small_model

import patternfold as pf
from patternfold import AlignedViews, Effort, datasets
from patternfold.cli import main
from patternfold.learning.effort import EFFORTS, as_effort
from patternfold.learning.lighting import PLAIN
from patternfold.learning.project.ends import misfit_of
from patternfold.model.grid import Grid

FAMILY = "similarity"
QUICK = Effort(max_iter=3)


@pytest.fixture(scope="module")
def pats():
    model, images = small_model(FAMILY)
    return model, images, pf.project(model.pattern_, images, FAMILY, effort=QUICK)


def test_pats_has_the_same_answer_through_every_door(pats, tmp_path):
    model, images, found = pats
    assert found.distances.max() < 0.2 * np.linalg.norm(images, axis=(1, 2)).min()
    np.testing.assert_array_equal(model.transform(images, QUICK), found.parameters)
    np.testing.assert_array_equal(model.distances(images, QUICK), found.distances)
    np.testing.assert_array_equal(model.project(images, QUICK).status, found.status)
    aligned = pf.align(images, found.parameters, FAMILY)
    np.testing.assert_array_equal(model.align(images, QUICK), aligned)
    flat = pf.project(
        model.pattern_, images.reshape(6, -1), FAMILY, image_shape=SHAPE, effort=QUICK
    )
    np.testing.assert_array_equal(flat.parameters, found.parameters)


def test_an_image_alone_has_the_same_answer(pats):
    model, images, found = pats
    alone = model.project(images[2:3], QUICK)
    # Other numbers of rows are vectorised otherwise: float32.
    np.testing.assert_allclose(alone.parameters[0], found.parameters[2], atol=1e-4)
    np.testing.assert_allclose(alone.distances[0], found.distances[2], atol=1e-4)


def test_the_command_line_has_the_same_answer(pats, tmp_path, monkeypatch):
    model, images, found = pats
    monkeypatch.setitem(EFFORTS, "quick", QUICK)
    model.save(tmp_path / "model.pfold")
    np.save(tmp_path / "images.npy", images)
    arguments = ["align", tmp_path / "model.pfold", tmp_path / "images.npy"]
    arguments += ["-o", tmp_path / "out.npz", "--effort", "quick", "--quiet"]
    assert main([str(a) for a in arguments]) == 0
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["parameters"], found.parameters)
        np.testing.assert_array_equal(out["distances"], found.distances)


def test_classes_have_the_same_answer_through_every_door():
    model, images, _ = small_jpats()
    found = pf.project(model.patterns_, images, FAMILY, effort=QUICK)
    np.testing.assert_array_equal(model.project(images, QUICK).parameters, found.parameters)
    np.testing.assert_array_equal(model.distances(images, QUICK), found.distances)
    nearest = model.classes_[found.distances.argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(images, QUICK), nearest)
    views = AlignedViews(features="pixels", parameters=True, image_shape=SHAPE)
    names = ("classes_", "image_shape_", "n_features_in_", "_stacked", "patterns_")
    vars(views).update({name: getattr(model, name) for name in names})
    views.transformation_, views.lighting_ = model.transformation_, PLAIN
    features = views.transform(images, QUICK)
    n_pixels = SHAPE[0] * SHAPE[1]
    np.testing.assert_array_equal(features[:, 2 * n_pixels : 2 * n_pixels + 2], found.distances)
    np.testing.assert_array_equal(features[:, -8:], found.parameters.reshape(len(images), -1))
    view = pf.align(images, found.parameters[:, 1], FAMILY)
    # The same samples, computed beside others.
    np.testing.assert_allclose(
        features[:, n_pixels : 2 * n_pixels], view.reshape(len(images), -1), atol=1e-5
    )


def test_what_counts_as_a_misfit(rng):
    """Blots and thin lines do, noise does not, whatever of it there is."""
    n, grid = 2000, Grid(40, 50)
    noise = rng.normal(size=(4, n)).astype(np.float32)
    blot = np.zeros(grid.shape, np.float32)
    blot[10:20, 10:20] = 1
    lines = np.zeros(grid.shape, np.float32)
    lines[10, 5:40], lines[11, 5:40] = 1, -1  # neighbours across differ in sign
    residuals = jnp.concatenate([noise, blot.reshape(1, n), lines.reshape(1, n)])
    energies = (residuals**2).sum(axis=1)
    found = np.asarray(misfit_of(residuals, energies, jnp.full(6, n, np.float32), grid))
    # Of the noise's energy: 0.53/√n from its sizes, 0.71/√n from neighbours, four deviations.
    assert (np.abs(found[:4]) < 4 * 0.71 / np.sqrt(n)).all()
    assert (found[4:] > 0.8).all()


def test_an_unfinished_search_goes_on(pats):
    """One step at a time, as long as there is structure left; what was found beside λ stays."""
    model, images, _ = pats
    one_step = Effort(max_iter=1, coarse_steps=1, middle_steps=1)
    stopped = model.project(images, one_step)
    # Everything is structure here, and nothing is searched again.
    more = replace(one_step, again=one_step, misfit=np.inf, unfinished=-np.inf)
    went_on = model.project(images, more)
    unfinished = stopped.status == "max-iter"
    assert unfinished.sum() > 3
    assert (went_on.distances[unfinished] < stopped.distances[unfinished]).all()
    np.testing.assert_array_equal(went_on.distances[~unfinished], stopped.distances[~unfinished])
    np.testing.assert_array_equal(went_on.second, stopped.second)
    np.testing.assert_array_equal(went_on.modes[:, 0], went_on.parameters)
    # Nothing goes on where noise is all that is left.
    done = model.project(images, replace(more, unfinished=np.inf))
    np.testing.assert_array_equal(done.parameters, stopped.parameters)


@pytest.mark.slow
def test_more_effort_is_never_worse(rng):
    """On images that the pattern does not fit, which have many local optima."""
    pattern, other = (datasets.random_pattern(6, rng) for _ in range(2))
    images, _ = datasets.random_images(other, 6, rng, FAMILY, shape=SHAPE, noise=0.05)
    quick, normal, thorough = (
        pf.project(pattern, images, FAMILY, effort=name).distances for name in EFFORTS
    )
    # Steps end at a share of 1e-6 of the squared distance.
    assert (normal <= quick * (1 + 1e-6)).all()
    assert (thorough <= quick * (1 + 1e-6)).all()
    assert (thorough <= normal * (1 + 1e-4)).all()
    assert (thorough < 0.999 * quick).any()  # there was something to find


@pytest.mark.usefixtures("as_users_run")
def test_unknown_efforts_are_refused_with_a_hint(pats):
    model, images, _ = pats
    for call in (model.transform, model.distances, model.align, small_jpats()[0].predict):
        with pytest.raises(ValueError, match=r"effort='thorow'.*thorough"):
            call(images, "thorow")
    with pytest.raises(ValueError, match=r"effort='fast'.*quick"):
        pf.project(model.pattern_, images, FAMILY, effort="fast")
    with pytest.raises(TypeError, match="effort=3 must be a name"):
        pf.project(model.pattern_, images, FAMILY, effort=3)


def test_names_and_records():
    assert list(EFFORTS) == ["quick", "normal", "thorough"]
    assert as_effort("quick") == EFFORTS["quick"] == as_effort(EFFORTS["quick"])
    assert not Effort(max_iter=4, newton_after=4).newton
    assert Effort(max_iter=5, newton_after=4).newton
