"""Decisions of support vector machines by matrix products are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC, LinearSVC

from patternfold.estimators.kernel_machine import as_kernel_machine, fit_kernel_machine


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_predictions_are_those_of_svc(n_classes, dtype):
    X, y = make_blobs(240, 6, centers=n_classes, cluster_std=6.0, random_state=0)
    X, names = X.astype(dtype), np.array(["e", "b", "a", "d", "c"])
    fitted = SVC(C=10).fit(X[:160], names[y[:160]])
    machine = as_kernel_machine(fitted)
    assert as_kernel_machine(machine) is machine
    expected = fitted.predict(X)
    np.testing.assert_array_equal(machine.predict(X), expected)
    assert len(set(expected)) == n_classes
    assert (expected != names[y]).any()  # the classes overlap: some decisions are close
    scores = fitted.decision_function(X)
    assert np.abs(scores).max() > 0.5
    np.testing.assert_allclose(machine.decision_function(X), scores, atol=1e-9)


def test_features_far_from_the_origin(dtype):
    """As views of bright images are: their squares have no digits left for distances."""
    X, y = make_blobs(240, 6, centers=3, cluster_std=6.0, random_state=0)
    X = (X + 3000).astype(dtype)
    expected = SVC(C=10).fit(X[:160], y[:160])
    machine = fit_kernel_machine(X[:160], y[:160], 10.0)
    scores = expected.decision_function(X)
    np.testing.assert_allclose(machine.decision_function(X), scores, atol=0.02)  # they end at 1e-3
    ours, theirs = machine.predict(X), as_kernel_machine(expected).predict(X)
    clear = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0] > 0.1
    np.testing.assert_array_equal(ours[clear], expected.predict(X)[clear])
    np.testing.assert_array_equal(theirs[clear], expected.predict(X)[clear])
    assert clear.mean() > 0.9


def test_other_classifiers_predict_themselves():
    X, y = make_blobs(60, 6, centers=3, random_state=0)
    assert as_kernel_machine(SVC(kernel="linear").fit(X, y)) is None
    assert as_kernel_machine(SVC(break_ties=True, decision_function_shape="ovr").fit(X, y)) is None
    assert as_kernel_machine(LinearSVC().fit(X, y)) is None
