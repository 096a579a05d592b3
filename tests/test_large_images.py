"""Large images begin on averages over cells; what is learned and found holds for all pixels."""

import math

import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets
from patternfold.learning import coarse, levels
from patternfold.learning.coarse import coarse_grid, coarsened
from patternfold.learning.joint import JointProblem
from patternfold.learning.observations import Observations, chunk_size
from patternfold.learning.select import solvers

TRUTH = pf.Pattern([1.0, 0.6], [[0.3, 0.1, -0.1, 0.5, 0.25], [1.0, -0.2, 0.2, 0.3, 0.25]])


@pytest.fixture
def small_is_large(monkeypatch):
    """Take images of 32 pixels for large ones."""
    monkeypatch.setattr(coarse, "LARGE", 20)
    monkeypatch.setattr(coarse, "SIDES", (16, 12, 20))
    monkeypatch.setattr(levels, "PART", 256)


def test_grids():
    assert coarse_grid(pf.Grid(128, 100)) is None
    assert coarse_grid(pf.Grid(600, 600)).shape == (100, 100)
    assert coarse_grid(pf.Grid(300, 600)).shape == (50, 100)
    assert coarse_grid(pf.Grid(521, 521)).shape == (96, 96)  # a prime number
    assert coarse_grid(pf.Grid(1, 4096)).shape == (1, 128)


def test_averages(small_is_large, rng):
    images = rng.random((3, 32 * 24)).astype(np.float32)
    weights = rng.random(images.shape).astype(np.float32)
    cells = images.reshape(3, 16, 2, 12, 2)
    plain = coarsened(Observations.put(images, pf.Grid(32, 24)))
    assert plain.grid.shape == (16, 12)
    np.testing.assert_allclose(plain.image(1), cells.mean((2, 4))[1].ravel(), rtol=1e-5)
    weighted = coarsened(Observations.put(images, pf.Grid(32, 24), None, weights))
    mass = weights.reshape(cells.shape)
    expected = (cells * mass).mean((2, 4)) / mass.mean((2, 4))
    np.testing.assert_allclose(weighted.image(1), expected[1].ravel(), rtol=1e-5)


def test_cells_that_are_no_whole_pixels_keep_a_ramp(monkeypatch):
    monkeypatch.setattr(coarse, "LARGE", 20)
    monkeypatch.setattr(coarse, "SIDES", (10, 10, 10))
    grid = pf.Grid(31, 31)
    ramp = coarsened(Observations.put(grid.x[None].astype(np.float32), grid))
    np.testing.assert_allclose(ramp.image(0), ramp.grid.x, atol=2e-3)


def test_learning_and_projection(small_is_large, rng):
    clean, lam = datasets.random_images(TRUTH, 8, rng, "translation", shape=(32, 32))
    images = clean + 0.05 * rng.standard_normal(clean.shape).astype(clean.dtype)
    seen = []
    model = pf.PATS(
        2, transformation="translation", n_starts=1, n_exchanges=0, callback=seen.append
    ).fit(images)
    assert [line.stage for line in seen][:2] == ["learning (16×16)"] * 2
    assert seen[-1].stage == "all pixels"
    assert model.error_path_.shape == (2,)
    rest = ((images - model.inverse_transform(model.parameters_)) ** 2).sum()
    assert np.isclose(model.error_path_[-1], rest / (images**2).sum(), rtol=1e-4)
    noise = ((images - clean) ** 2).sum() / (images**2).sum()
    assert np.isclose(model.error_path_[-1], noise, rtol=0.02)
    found = pf.project(TRUTH, images, "translation", effort="quick")
    np.testing.assert_allclose(found.parameters, lam, atol=0.02)


@pytest.mark.parametrize(("n_joint", "loss"), [(1, "squared"), (2, "huber")])
def test_joint_atoms_are_searched_on_cells(small_is_large, rng, monkeypatch, n_joint, loss):
    sides, search = [], solvers.search_atom

    def seen(nodes, *others):
        sides.append(math.isqrt(len(nodes.x)))
        return search(nodes, *others)

    monkeypatch.setattr(solvers, "search_atom", seen)
    terms, chosen = [], JointProblem.for_selection

    def for_selection(self, *others):
        coarse = chosen(self, *others)
        terms.append(coarse.terms)
        return coarse

    monkeypatch.setattr(JointProblem, "for_selection", for_selection)
    patterns = (TRUTH, TRUTH.replace(TRUTH.coef * [1, -1], TRUTH.gamma))
    how = {"shape": (32, 32), "noise": 0.01}
    images = [datasets.random_images(p, 6, rng, "translation", **how)[0] for p in patterns]
    X, y = np.concatenate(images), np.repeat([0, 1], 6)
    options = {"transformation": "translation", "n_starts": 1, "loss": loss}
    model = pf.JPATS(2, n_joint=n_joint, n_tuning=2, **options).fit(X, y)
    assert (model.predict(X) == y).all()
    assert [p.n_atoms for p in model.patterns_] == [2, 2]
    assert set(sides) == {2 * round(1.35 / (2 / 16)) + 1}  # nodes as far apart as cells
    assert all((some is not None) == (loss == "huber") for some in terms)
    assert terms


def test_chunks_of_large_images_are_bounded():
    assert chunk_size(100, 28 * 28 * 4, "cpu") >= 128
    assert chunk_size(100, 512 * 512 * 4, "cpu") == 8
    assert chunk_size(100, 4096 * 4096 * 4, "cpu") == 1


def test_parts():
    assert [len(part) for part in levels.parts_of(512 * 512)] == [16_384] * 16
    sizes = {len(part) for part in levels.parts_of(521 * 521)}
    assert max(sizes) <= levels.PART
    assert len(sizes) <= 2
