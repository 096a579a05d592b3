"""Support vector machines of version 0.1, whose files hold the support vectors but no weights."""

from __future__ import annotations

import warnings

import numpy as np

from patternfold.estimators.kernel_machine import KernelMachine, as_kernel_machine

PENALTY = 10.0
"""C of every machine that version 0.1 could save."""

MOST_WORK = 2**36
"""Largest number of products in the kernel of all support vectors: half a minute."""

MOST_STEPS = 100_000
"""Of the solver; on the support vectors alone it needs a few for each."""


def refit_machine(
    vectors: np.ndarray, labels: np.ndarray, classes: np.ndarray, penalty: float, gamma: float
) -> KernelMachine:
    """Fit a machine on its support vectors again, which gives the same decision.

    Anyone can write a file that would keep the solver busy for hours, so what version 0.1 did not
    write is refused, and steps are counted.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    if penalty != PENALTY:
        raise ValueError(f"'C' must be {PENALTY}, not {penalty}, in a file without 'dual_coef'")
    if len(vectors) ** 2 * vectors.shape[1] > MOST_WORK:
        raise ValueError(
            f"its {len(vectors)} support vectors of {vectors.shape[1]} features have no weights, "
            "and are too many to find them again; train the classifier anew"
        )
    if set(labels.tolist()) != set(range(len(classes))):
        raise ValueError("its support vectors do not fit together")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            machine = SVC(C=penalty, max_iter=MOST_STEPS).set_params(gamma=gamma)
            fitted = as_kernel_machine(machine.fit(vectors, classes[labels]))
        except ConvergenceWarning as warning:
            raise ValueError("the weights of its support vectors can't be found") from warning
    assert fitted is not None
    return fitted
