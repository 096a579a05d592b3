"""A pattern that grows on some images and settles on all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patternfold import PATS, Grid, datasets, manifold
from patternfold.learning import many
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem, Settings


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Forty images of a pattern of three atoms, with noise, on few pixels."""
    rng = np.random.default_rng(5)
    pattern = datasets.random_pattern(3, rng)
    return datasets.random_images(pattern, 40, rng, shape=(16, 16), noise=1e-4)[0]


def fit(images: np.ndarray, **options: Any) -> PATS:
    """Learn four atoms."""
    return PATS(4, random_state=0, **options).fit(images)


@pytest.mark.exhaustive
def test_as_good_as_all_images_at_once(images: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """E of all images, whether the pattern has grown on all or on twelve of them."""
    at_once = fit(images)
    monkeypatch.setattr(many, "GROWN_ON", 12)
    stages = []
    grown = fit(images, callback=lambda line: stages.append((line.stage, line.n_images)))
    assert ("settling on all images", 40) in stages
    assert {n for stage, n in stages if stage.startswith("start")} == {12}
    assert grown.parameters_.shape == at_once.parameters_.shape
    assert grown.error_path_[-1] <= 1.1 * at_once.error_path_[-1] + 1e-3
    model = manifold.render(grown.pattern_, grown.parameters_, grown.transformation_, (16, 16))
    error = ((images.reshape(40, -1) - model) ** 2).sum() / (images**2).sum()
    assert grown.error_path_[-1] == pytest.approx(error, rel=1e-3)
    assert (np.diff(grown.error_path_) <= 0).all()


def test_order_of_images_does_not_matter(
    images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The images that stand for all are chosen by what they show."""
    monkeypatch.setattr(many, "GROWN_ON", 12)
    order = np.random.default_rng(0).permutation(len(images))
    one, other = fit(images), fit(images[order])
    assert one.error_path_[-1] == pytest.approx(other.error_path_[-1], rel=1e-2)


def test_images_without_weight_stand_for_nothing(
    images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights decide which images stand for the others, and for how many."""
    monkeypatch.setattr(many, "GROWN_ON", 12)
    model = PATS(1, random_state=0).fit(images)
    weights = np.where(np.arange(40) < 20, 0.0, 3.0)
    seen = Observations.put(images.reshape(40, -1), Grid(16, 16), weights)
    problem = Problem(seen, model.transformation_, model.pattern_.family)
    found = many.representatives(problem, Settings())
    assert found is not None
    chosen, times = found
    assert (chosen >= 20).all()
    assert times.sum() == pytest.approx(60)
    assert many.representatives(problem, Settings(projection="fixed")) is None


def test_those_that_grow_a_pattern_are_among_those_it_settles_on() -> None:
    """Choosing at once, and by way of a part, gives the same images with the same weights."""
    rng = np.random.default_rng(0)
    distances, weights = rng.random(2000), rng.integers(0, 4, 2000).astype(float)
    some, shares = many.spread(distances, weights, 15 * 12)
    few = many.spread(distances[some], shares, 12)
    at_once = many.spread(distances, weights, 12)
    np.testing.assert_array_equal(some[few[0]], at_once[0])
    np.testing.assert_allclose(few[1], at_once[1])
    assert (weights[some] > 0).all()
    assert shares.sum() == pytest.approx(weights.sum())


def test_how_many_images_settle() -> None:
    """An odd multiple of those that grow a pattern; fewer where images are large."""
    assert many.settled_on(40 * 40 * 4) == 15 * 64
    assert many.settled_on(2**20) == 3 * 64
    assert many.settled_on(2**28) == 64
