"""A fit as a whole: all fitted attributes or none, and no Ctrl-C goes unheard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
