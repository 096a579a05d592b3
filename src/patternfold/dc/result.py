"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

STATUS = {
    "certified": "The gap between the value and the lower bound is within the tolerance.",
    "converged": "The point no longer moves; it is a local minimum as far as the search can tell.",
    "max-iter": "The iteration limit was reached; max_iter allows more.",
    "time-limit": "The time limit was reached; time_limit allows more.",
    "max-vertices": "The polytope has as many vertices as allowed; max_vertices allows more.",
    "max-boxes": "As many boxes are open as allowed; max_boxes allows more.",
    "stalled": "Cuts no longer change the polytope: what is left of the gap is rounding.",
    "searched": "The points of the search were tried; nothing is certified.",
}
"""How a search can end, and what that means."""


@dataclass(frozen=True)
class Result:
    """The end of a search for the minimum of f over a box.

    Attributes
    ----------
    point : array of shape (s,)
        Best point found.
    value : float
        f there: an upper bound of the minimum.
    lower_bound : float
        Certified lower bound of the minimum, or −inf.
    status : str
        How the search ended, a key of `STATUS`.
    n_iter : int
        Number of iterations.
    time : float
        Seconds.
    history : list of (float, float)
        Value and lower bound after each iteration.
    n_vertices : int
        Vertices, or boxes, at the end; 0 for searches without.
    """

    point: np.ndarray
    value: float
    lower_bound: float
    status: str
    n_iter: int
    time: float
    history: list[tuple[float, float]] = field(default_factory=list, repr=False)
    n_vertices: int = 0

    @property
    def message(self) -> str:
        """The status as a sentence."""
        return STATUS[self.status]

    @property
    def gap(self) -> float:
        """(value − lower bound) / abs(value), infinite without a bound."""
        return relative_gap(self.value, self.lower_bound)


def relative_gap(value: float, lower_bound: float) -> float:
    """(value − lower bound) / abs(value); 0 where they meet, infinite where the value is 0."""
    if value <= lower_bound:
        return 0.0
    return (value - lower_bound) / abs(value) if abs(value) > 1e-300 else np.inf
