"""The approximation experiments on tiny instances: what they claim can be seen there already."""

import csv

import numpy as np
import pytest

from patternfold import Pattern, datasets
from patternfold.experiments import complexity, occlusion_outliers, solvers
from patternfold.experiments.approximation import (
    ellipse,
    errors_of_first_atoms,
    normalised_error,
)
from patternfold.experiments.results import run_experiment


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """An empty folder: generated faces stand in."""
    return tmp_path_factory.mktemp("data")


def quick(name, results, data):
    """Run an experiment and return its claims, and its table of errors at the most atoms."""
    record = run_experiment(name, results, data=data, quick=True)
    assert all(path.exists() for path, _ in record.pictures)
    rows = list(csv.DictReader((record.folder / "metrics.csv").read_text().splitlines()))
    return record.claims, rows


def last_errors(rows, column="method"):
    """The error of each method at its greatest number of atoms."""
    counted = sorted((r for r in rows if r["atoms"]), key=lambda r: int(r["atoms"]))
    return {row[column]: float(row["error"]) for row in counted}


def test_error_is_that_of_the_nearest_points():
    pattern = Pattern([1.0, -0.5], [[0.0, 0.2, 0.0, 0.3, 0.1], [0.5, -0.2, 0.1, 0.1, 0.2]])
    rng = np.random.default_rng(0)
    images, _ = datasets.random_images(pattern, 4, rng, "translation", shape=(16, 16))
    assert normalised_error(pattern, images, "translation") < 1e-9
    # With half the amplitude, a quarter of the energy is left over, (1 - 1/2)², but for the little
    # that pixels of another phase can show more of.
    half = Pattern(0.5 * pattern.coef, pattern.gamma)
    assert normalised_error(half, images, "translation") == pytest.approx(0.25, abs=5e-3)
    errors = errors_of_first_atoms(pattern, images, "translation", [1, 2, 5])
    assert errors[0] > 10 * errors[1]
    assert errors[1] == errors[2]


@pytest.mark.exhaustive
def test_digits_pats_is_ahead_and_ours_before_it(results, data):
    claims, rows = quick("digits-approximation", results, data)
    assert [claim.holds for claim in claims] == [True, True]
    last = last_errors(rows)
    assert last["ours (default)"] < last["PATS"] < min(last["SMP"], last["MP"])


@pytest.mark.exhaustive
def test_faces_are_easier_than_digits(results, data):
    claims, rows = quick("faces-approximation", results, data)
    pursuits, variation = claims[2:]
    assert pursuits.holds
    assert variation.holds
    last = last_errors(rows)
    assert last["ours (default)"] < last["PATS"]


def test_the_ellipse_keeps_the_middle_and_drops_the_corners():
    mask = ellipse((28, 20))
    assert mask[14, 10] == 1
    assert mask[0, 0] == mask[-1, -1] == 0


def test_stripes_cover_a_little_of_each_digit():
    pictures = np.ones((40, 28, 28), np.float32)
    striped = occlusion_outliers.occlude(pictures, np.random.default_rng(0))
    hidden = (striped == 0).sum(axis=(1, 2))
    one, two = 2 * 28, 2 * 2 * 28 - 4
    assert set(hidden.tolist()) == {one, two}
    assert pictures.all()  # the originals are left alone


@pytest.mark.exhaustive
def test_occluded_digits_pats_is_ahead_of_smp(results, data):
    claims, rows = quick("occlusion-outliers", results, data)
    assert claims[0].holds
    assert {row["outliers"] for row in rows} == {"0", "30"}


@pytest.mark.exhaustive
def test_ours_does_not_depend_on_the_start(results, data):
    claims, rows = quick("illumination", results, data)
    last = last_errors(rows, "setting")
    assert last["ours, bad start"] == pytest.approx(last["ours (default)"], rel=0.02)
    assert last["ours (default)"] < last["PATS"]
    assert len(claims) == 3


@pytest.mark.exhaustive
def test_error_grows_linearly_with_noise(results, data):
    claims, _ = quick("noise-approximation", results, data)
    assert [claim.holds for claim in claims] == [True, True]
    assert "passes through the origin" in claims[1].ours.replace("does pass", "passes")


def test_exponents_are_slopes():
    sizes = [10, 20, 40]
    assert complexity.exponent(sizes, np.array([3.0, 12.0, 48.0])) == pytest.approx(2)


@pytest.mark.exhaustive
def test_cost_is_measured_along_every_axis(results, data):
    _, rows = quick("complexity", results, data)
    assert {row["axis"] for row in rows} == set(complexity.AXES)
    assert all(float(row["seconds"]) > 0 for row in rows if row["seconds"])


@pytest.mark.exhaustive
def test_solvers_are_compared_on_both_tasks(results, data):
    claims, rows = quick("solvers", results, data)
    assert len(claims) == 3
    assert {(row["task"], row["solver"]) for row in rows} == {
        (task, solver)
        for task in ("approximation", "PATS", "JPATS")
        for solver in ("cutting plane", "our search")
    }


def test_curves_lie_together_or_apart():
    plane = np.array([[0.5, 0.4], [0.5, 0.4]])
    near, far = ({"cutting-plane": plane, "search": share * plane} for share in (1.04, 1.06))
    assert solvers.approximation_claim(near).holds
    assert not solvers.approximation_claim(far).holds
    near, far = ({"cutting-plane": plane, "search": plane - points} for points in (2.9, 3.1))
    assert solvers.classification_claim("PATS", near).holds
    assert not solvers.classification_claim("PATS", far).holds
