"""A fit as a whole: all fitted attributes or none, and no Ctrl-C goes unheard."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from patternfold.learning.pats import Learned
from patternfold.learning.state import INTERRUPTED
from patternfold.numerics.interrupts import Interrupts, listening


@contextmanager
def fitting(estimator: Any) -> Iterator[Interrupts]:
    """Fit within this block: if it fails or is given up, the estimator stays as it was before.

    After Ctrl-C the block either raises KeyboardInterrupt or sets ``stop_reason_`` to tell of it.
    """
    before = dict(vars(estimator))
    with listening() as interrupts:
        try:
            yield interrupts
            if getattr(estimator, "stop_reason_", None) != INTERRUPTED:
                interrupts.check()
        except BaseException:
            with interrupts.held():
                vars(estimator).clear()
                vars(estimator).update(before)
            raise


def record_run(estimator: Any, learned: Learned, energy: float) -> None:
    """Set what tells of the run: the error after each atom, their number, and why it ended."""
    path = np.array(learned.path) / energy
    if estimator.warm_start and hasattr(estimator, "error_path_"):
        path = np.append(estimator.error_path_, path)
    estimator.error_path_ = path
    estimator.n_iter_ = max(1, len(path))
    estimator.stop_reason_ = learned.reason
    if learned.reason == INTERRUPTED:
        warnings.warn(
            f"Learning was interrupted after {estimator.pattern_.n_atoms} atoms; the model is "
            "usable, and fit with warm_start=True goes on from here.",
            stacklevel=4,
        )
