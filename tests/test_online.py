"""`PATS.partial_fit`: batches that are seen once."""

import copy

import numpy as np
import pytest
from helpers import STACK_OPTIONS

import patternfold as pf
from patternfold import datasets
from patternfold.learning.refit.eliminate import Reduced
from patternfold.learning.stream.online import agreement

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture(scope="module")
def truth():
    return datasets.random_pattern(3, np.random.default_rng(3))


def draw(truth, count, seed):
    rng = np.random.default_rng(seed)
    return datasets.random_images(truth, count, rng, "translation", shape=(16, 16), noise=0.02)[0]


@pytest.fixture(scope="module")
def images(truth):
    return draw(truth, 160, 0)


@pytest.fixture(scope="module")
def in_batches(images):
    model = pf.PATS(3, **STACK_OPTIONS)
    for begin in range(0, len(images), 40):
        model.partial_fit(images[begin : begin + 40])
    return model


def test_batches_are_as_good_as_all_at_once(images, in_batches):
    whole, first = (
        pf.PATS(3, **STACK_OPTIONS).fit(images),
        pf.PATS(3, **STACK_OPTIONS).fit(images[:40]),
    )
    error, best, alone = (1 - model.score(images) for model in (in_batches, whole, first))
    assert error < 1.01 * best
    assert error < alone - 0.3 * (alone - best), "later batches must have told something"
    assert in_batches.n_seen_ == 160
    assert len(in_batches.parameters_) == 40


@pytest.mark.exhaustive
def test_a_pattern_that_changes_is_followed(truth, in_batches):
    other = truth.replace(truth.coef * 0.6, truth.gamma + np.array([0, 0.05, 0, 0, 0]))
    model, late = in_batches, draw(other, 160, 1)
    before = model.score(late)
    model = copy.deepcopy(model)
    for begin in range(0, 160, 40):
        model.partial_fit(late[begin : begin + 40])
    best = pf.PATS(3, **STACK_OPTIONS).fit(late).score(late)
    assert best - model.score(late) < 0.2 * (best - before)


def test_memory_survives_files(images, in_batches, tmp_path):
    in_batches.save(tmp_path / "x.ptm")
    loaded = pf.load(tmp_path / "x.ptm")
    assert loaded.n_seen_ == in_batches.n_seen_
    for one, other in zip(loaded.memory_, in_batches.memory_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_agreement_of_halves(rng):
    size, zero = 12, np.zeros(())
    root = rng.normal(size=(size, size))
    matrix = root @ root.T
    signal = matrix @ rng.normal(size=size)

    def told(noise):
        found = []
        for _ in range(200):
            halves = [
                Reduced(zero, np.diag(matrix), matrix / 2, signal / 2 + noise * root @ n, zero)
                for n in rng.normal(size=(2, size))
            ]
            whole = Reduced(*(a + b for a, b in zip(*halves, strict=True)))
            found.append(agreement(halves, whole))
        return np.mean(found)

    assert told(1e-3) > 0.99
    assert told(1e3) < 0.2
    assert told(1e-3) > told(1.0) > told(1e3)
