"""A run from all images: at length on as many as that takes, and in passes on all."""

from __future__ import annotations

import numpy as np

from patternfold.learning.many import part_of
from patternfold.learning.passes import InMemory
from patternfold.learning.pats import Learned
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.references import reference_in
from patternfold.learning.settling import settle_in_passes
from patternfold.learning.start import run_at_length
from patternfold.learning.state import Callback, State
from patternfold.model.pattern import Pattern
from patternfold.numerics.threads import one_blas_thread


def run(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern | State,
    callback: Callback | None = None,
) -> Learned:
    """Learn from a reference, or go on from an earlier state, and fix the frame of the result."""
    part = part_of(problem, settings)
    if part is None:
        return run_at_length(problem, settings, reference, callback)
    begin = reference_in(problem, part.problem, part.index, reference)
    learned = run_at_length(part.problem, settings, begin, callback)
    with one_blas_thread():
        whole = InMemory(problem)
        return settle_in_passes(part, whole, settings, learned, begin, callback).learned
