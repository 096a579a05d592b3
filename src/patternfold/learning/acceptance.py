"""Whether the updates of a JPATS iteration stand, line 14 of Algorithm 2.

The paper decides by E_c alone, which must be "reduced" in one place and "non-increasing" in
another. E_c counts images, so that ties are frequent where images are few.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from patternfold.learning.joint import JointProblem, JointState

Acceptance = Callable[[JointProblem, JointState, JointState], JointState | None]
"""The state that stands, of one before and one after an iteration; None where all is rejected."""


def must_fall(problem: JointProblem, state: JointState, new: JointState) -> JointState | None:
    """Accept if E_c falls."""
    return new if new.errors(problem)[0] < state.errors(problem)[0] else None


def must_not_rise(problem: JointProblem, state: JointState, new: JointState) -> JointState | None:
    """Accept if E_c does not rise."""
    return new if new.errors(problem)[0] <= state.errors(problem)[0] else None


def no_worse(problem: JointProblem, state: JointState, new: JointState) -> JointState | None:
    """Accept if E_c falls, or stays while E_a falls."""
    return new if new.errors(problem) < state.errors(problem) else None


def by_class(problem: JointProblem, state: JointState, new: JointState) -> JointState | None:
    """Accept the updates of those patterns that together leave the lowest E_c, ties the lowest E_a.

    Distances to a manifold concern its pattern alone, so that a choice of patterns costs no further
    projection. Patterns change sides one by one as long as that helps.
    """
    best = no_worse(problem, state, new) or state
    chosen = np.full(problem.n_patterns, best is new)
    changed = True
    while changed:
        changed = False
        for m in range(problem.n_patterns):
            flipped = chosen ^ (np.arange(problem.n_patterns) == m)
            other = state.with_patterns(new, flipped)
            if other.errors(problem) < best.errors(problem):
                best, chosen, changed = other, flipped, True
    return best if chosen.any() else None


ACCEPTANCES: dict[str, Acceptance] = {
    "fall": must_fall,
    "no-rise": must_not_rise,
    "tie": no_worse,
    "by-class": by_class,
}
"""Rules by name."""
