"""The classification experiments, as a quick look: their parts, and their main statements."""

import os
from functools import partial

import numpy as np
import pytest

from patternfold import Pattern, datasets
from patternfold.datasets import Split
from patternfold.experiments import class_claims, class_steps, outlier_classification
from patternfold.experiments.class_steps import (
    JPATS,
    LDA,
    LLA,
    OURS,
    PATS,
    SLLE,
    VIEWS,
    Configuration,
    first_steps,
    fitted_counts,
)
from patternfold.experiments.classification import (
    manifold_distances,
    pack,
    percent_wrong,
    pursued,
    registered,
    unpack,
)
from patternfold.experiments.noise_classification import noisy
from patternfold.experiments.results import run_experiment
from patternfold.experiments.standins import split_shapes

FAMILY = "rotation-translation"
SHAPE = (16, 16)


@pytest.fixture(scope="module")
def patterns():
    return [
        Pattern([1.0, 0.5], [[0.0, 0.0, 0.0, 0.5, 0.1], [0.0, 0.3, 0.0, 0.1, 0.1]]),
        Pattern([1.0], [[0.0, 0.0, 0.0, 0.25, 0.25]]),
    ]


@pytest.fixture(scope="module")
def split(patterns):
    """Images of a bar and a dot, turned and shifted."""
    rng = np.random.default_rng(0)
    parts = [
        datasets.unit(datasets.random_images(p, 12, rng, FAMILY, shape=SHAPE)[0]) for p in patterns
    ]
    X, X_test = (np.concatenate([p[i : i + 6] for p in parts]) for i in (0, 6))
    y = np.repeat([3, 8], 6)
    return Split(X, y, X_test, y)


class Constant:
    def predict(self, X):
        return np.full(len(X), 3)


def test_errors_are_percentages(split):
    assert percent_wrong(Constant(), split.X_test, split.y_test) == 50.0


def test_patterns_survive_packing(patterns):
    assert unpack(pack(patterns)) == patterns
    assert unpack(pack(patterns[:1])) == patterns[:1]


def test_registration_brings_images_of_a_class_together(split, patterns):
    options = {"transformation": FAMILY}
    together = registered(split, patterns, options)
    for label in (3, 8):
        own = split.y == label
        spread = [np.var(images[own], axis=0).sum() for images in (together, split.X)]
        assert spread[0] < 0.1 * spread[1]


def test_pursuits_report_errors_for_all_counts(split, patterns):
    options = {"transformation": FAMILY}
    aligned = registered(split, patterns, options)
    found = pursued("SMP", aligned, split, [1, 3], options)
    assert found["n_atoms"] == [3, 3]
    assert found["errors"].shape == (2,)
    assert found["errors"][1] <= 20.0
    nearest = manifold_distances(unpack(found), split.X_test, options).argmin(axis=1)
    wrong = 100 * np.mean(np.array([3, 8])[nearest] != split.y_test)
    assert found["errors"][1] == pytest.approx(wrong)


def test_ours_are_fitted_with_fewer_atoms_on_the_first_splits_only(split):
    settings = Configuration(6, 6, n_repeats=2, counts=(1, 4), counts_ours=(2, 4))
    assert fitted_counts(settings, 0) == [4, 2]
    assert fitted_counts(settings, 1) == [4]
    steps = first_steps([split, split], settings, {"transformation": FAMILY})
    assert {"ours-4-0", "ours-2-0", "ours-4-1", "registration-1"} <= set(steps)
    assert "ours-2-1" not in steps
    assert {"JPATS-printed-0", "PATS-global-0"} <= set(steps)
    assert "JPATS-printed-1" not in steps


def test_registered_images_wait_for_what_registers_them(split):
    settings = Configuration(6, 6, n_repeats=1, counts=(1, 4), counts_ours=(4,))
    options = {"transformation": FAMILY}
    patterns = {"coef": np.ones(1), "gamma": np.ones((1, 5)), "n_atoms": [1]}
    follow = partial(class_steps.registered_steps, [split], settings, options)
    assert follow({}) == {}
    assert set(follow({"views-4-0": patterns})) == {"SMP-0", "SAS-0"}
    both = {"registration-0": {"aligned": split.X, "aligned_test": split.X_test}}
    assert set(follow(both)) == {"aligned-pixels-0"}
    known = split._replace(aligned=split.X, aligned_test=split.X_test)
    follow = partial(class_steps.registered_steps, [known], settings, options)
    assert set(follow({"views-4-0": patterns})) == {"SMP-registered-0"}
    steps = first_steps([known], settings, options)
    assert {"SMP-0", "SAS-0", "aligned-pixels-0"} <= set(steps)
    assert "registration-0" not in steps


def test_noise_has_the_energy_asked_for(rng):
    images = datasets.unit(rng.normal(size=(50, 20, 20)))
    energy = ((noisy(images, 0.23, rng) - images) ** 2).sum(axis=(1, 2))
    # 20,000 squared normal values: the mean is within 3 % of its expectation.
    assert energy.mean() == pytest.approx(0.23, rel=0.03)
    np.testing.assert_array_equal(noisy(images, 0.0, rng), images)


def test_outliers_are_averages_of_all_classes(split, rng):
    pure = outlier_classification.make_outliers(split, 30, 0.0, rng)
    np.testing.assert_allclose(np.linalg.norm(pure, axis=(1, 2)), 1, rtol=1e-5)  # float32
    bars, dots = split.X_test[:6].reshape(6, -1), split.X_test[6:].reshape(6, -1)
    sums = datasets.unit((bars[:, None] + dots[None]).reshape(36, *SHAPE)).reshape(36, -1)
    nearest = np.abs(pure.reshape(30, 1, -1) - sums).max(axis=2).min(axis=1)
    np.testing.assert_allclose(nearest, 0, atol=1e-5)  # float32
    noise = outlier_classification.make_outliers(split, 30, 4e-3, rng)
    assert np.abs(np.diff(noise, axis=1)).mean() > 2 * np.abs(np.diff(pure, axis=1)).mean()


def test_the_best_threshold_is_the_best_of_all():
    found = {
        "distances": np.array([0.1, 0.2, 0.3, 0.6]),
        "right": np.array([True, True, False, True]),
        "outliers": np.array([[0.5, 0.7], [0.05, 0.08]]),
    }
    threshold = outlier_classification.best_threshold(found, 0)
    wrong = partial(outlier_classification.percent_wrong, found, 0)
    assert wrong(threshold)[0] == min(wrong(t)[0] for t in np.linspace(0, 1, 101))
    # The image at 0.3 is of another class and the one at 0.6 is taken for an outlier.
    assert wrong(threshold) == pytest.approx([100 * 2 / 6, 0, 50])
    # Outliers nearer than everything: nothing is taken for an outlier but what is wrong anyway.
    everything = outlier_classification.percent_wrong(found, 1, np.inf)
    assert everything == pytest.approx([50, 100, 25])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results that the experiments below share, as users do."""
    return tmp_path_factory.mktemp("results")


def errors_in(record, method, column="error_percent"):
    import csv

    with open(record.folder / "metrics.csv", encoding="utf-8") as file:
        return [float(row[column]) for row in csv.DictReader(file) if row["method"] == method]


@pytest.mark.exhaustive
def test_digits_and_outliers(results):
    """More atoms tell more; patterns beat neighbours of images; aligned views do best."""
    record = run_experiment("digits-classification", results, quick=True)
    assert len(record.claims) == 3
    assert {path.name for path, _ in record.pictures} == {"patterns.png", "error.png"}
    neighbours = min(errors_in(record, LLA)[0], errors_in(record, SLLE)[0])
    for method in (OURS, JPATS, PATS):
        assert errors_in(record, method)[-1] < neighbours
    for method in (JPATS, PATS):
        assert errors_in(record, method)[-1] < errors_in(record, method)[0] - 10
    assert errors_in(record, VIEWS)[-1] <= errors_in(record, LDA)[-1]
    told = []
    record = run_experiment("outlier-classification", results, quick=True, say=told.append)
    assert sum("from an earlier run" in line for line in told) == 3
    for method in (JPATS, PATS, OURS):
        errors = errors_in(record, method)
        # Noisy outliers are easier to tell than averages of digits.
        assert errors[-1] < errors[0]
    missed = errors_in(record, OURS, "outliers_missed_percent")
    assert missed[-1] < missed[0]


@pytest.mark.exhaustive
@pytest.mark.xfail(reason="ours 15.0 % of 40 digits, the published 7.5; outliers 43.3 and 38.3 %")
def test_ours_are_ahead_of_the_published(results):
    """Held until the published algorithms were mended; larger runs are to tell whether it does."""
    digits = run_experiment("digits-classification", results, quick=True)
    assert errors_in(digits, OURS)[-1] <= errors_in(digits, JPATS)[-1]
    outliers = run_experiment("outlier-classification", results, quick=True)
    assert errors_in(outliers, OURS)[0] < errors_in(outliers, PATS)[0]


@pytest.mark.exhaustive
def test_noise_costs_ours_little(results):
    record = run_experiment("noise-classification", results, quick=True)
    clean, noisy_training = errors_in(record, OURS)[:2]
    assert noisy_training <= clean + 5.0  # one test image is 2.5 %


@pytest.mark.exhaustive
@pytest.mark.skipif("PATTERNFOLD_DATA" not in os.environ, reason="needs the plankton images")
def test_microorganisms(results):
    record = run_experiment("microbiology-classification", results, quick=True)
    assert record.stand_in == ""
    assert errors_in(record, OURS)[-1] <= 10.0
    assert errors_in(record, JPATS)[-1] <= 10.0


@pytest.mark.exhaustive
def test_generated_shapes_stand_in_for_microorganisms(tmp_path):
    record = run_experiment("microbiology-classification", tmp_path, data=tmp_path, quick=True)
    assert "generated shapes" in record.stand_in
    assert errors_in(record, OURS)[-1] <= 10.0


def test_generated_shapes_of_a_class_are_alike_but_not_equal():
    split = split_shapes(4, 0, 2, 3, 24)
    assert split.X.shape == (12, 24, 24)
    assert split.y_test.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(np.linalg.norm(split.X, axis=(1, 2)), 1, rtol=1e-5)  # float32
    assert np.abs(split.X[0] - split.X[1]).max() > 0.01
    np.testing.assert_array_equal(split.X, split_shapes(4, 0, 2, 3, 24).X)


def test_claims_are_judged_by_the_numbers():
    table = {name: ([12], np.array([[5.0]])) for name in (JPATS, PATS, OURS, VIEWS)}
    others = {name: ([], np.array([[9.0]])) for name in ("SMP", "SAS", "LLA", "SLLE", LDA)}
    errors = table | others | {class_steps.NETWORK: ([], np.array([[4.0]]))}
    assert not class_claims.best_claim(errors, "digits").holds
    assert not class_claims.aligned_claim(errors, "digits").holds
    errors[JPATS] = ([12], np.array([[3.0]]))
    assert class_claims.best_claim(errors, "digits").holds
    assert class_claims.aligned_claim(errors, "digits").holds


def test_an_early_end_is_told():
    settings = Configuration(6, 6, n_repeats=2, counts=(1, 4))
    complete = {"JPATS-0": {"n_atoms": [4, 4]}, "JPATS-1": {"n_atoms": [4, 4]}}
    assert class_claims.early_end(complete, settings) == ""
    ended = class_claims.early_end(complete | {"JPATS-1": {"n_atoms": [2, 4]}}, settings)
    assert "3.5 of 4 atoms" in ended
