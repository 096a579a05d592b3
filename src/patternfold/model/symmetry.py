"""Symmetries of a pattern: turns and mirrors about a centre that leave it as it is.

p and its image under an isometry g are compared by their correlation ρ(g) = ⟨p, g p⟩ / ⟨p, p⟩. For
a group G, 1 − mean ρ(g) is the share of the energy of p that is lost in its mean over G: its
*asymmetry*, 0 if p has the symmetry. A learned pattern has it up to a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize

from patternfold.model.overlaps import Overlap, centroid, mirrors, overlap_of, turns
from patternfold.model.pattern import Pattern

MOST_TURNS = 12
"""Largest order that is looked for; a pattern that has them all is round."""

FIRST_GUESS = 0.05
"""Asymmetry about the centroid above which a better centre will not make a pattern symmetric."""

NEARBY = 0.15
"""How far from the centroid of the energy a centre may lie."""

STEP = np.pi / 90
"""Between two angles of the curves."""


@dataclass(frozen=True)
class Symmetry:
    """Turns and mirrors that leave a pattern as it is.

    Attributes
    ----------
    order : int
        Number of turns, by multiples of 360° / order: 1 for none but the full turn, 0 for a round
        pattern, which every turn leaves as it is.
    mirror : bool
        Whether there are mirror axes, as many as turns.
    centre : tuple of float
        What the pattern turns about, in its own frame.
    axis : float
        Angle of a mirror axis in radians, from x towards y; NaN without.
    confidence : float
        How clear the answer is: 1 if the asymmetry is far below the tolerance and that of every
        larger group far above, 1/2 if one of them is just as large.
    asymmetry : float
        Share of the pattern's energy that does not have the symmetry.
    tolerance : float
        What was allowed.
    angles, turned, mirrored : arrays
        Correlation of the pattern with itself turned by each angle, in radians, and mirrored at an
        axis with half that angle.
    """

    order: int
    mirror: bool
    centre: tuple[float, float]
    axis: float
    confidence: float
    asymmetry: float
    tolerance: float
    angles: np.ndarray
    turned: np.ndarray
    mirrored: np.ndarray

    @property
    def name(self) -> str:
        """Say it in a few words."""
        mirror = "mirror" if self.mirror else "no mirror"
        if self.order == 0:
            return "round"
        if self.order == 1:
            return "mirror" if self.mirror else "none"
        return f"{self.order} turns, {mirror}"

    def __repr__(self) -> str:
        """Say it with what it rests on."""
        return (
            f"Symmetry: {self.name}; confidence {self.confidence:.3f}, asymmetry "
            f"{self.asymmetry:.2g}, tolerance {self.tolerance:.2g}"
        )


@lru_cache(maxsize=64)
def symmetry_of(pattern: Pattern, tolerance: float = 1e-3) -> Symmetry:
    """Find the turns and mirrors that leave a pattern as it is.

    Parameters
    ----------
    pattern : Pattern
        The pattern p.
    tolerance : float
        Share of its energy that may be asymmetric.

    Examples
    --------
    >>> bar = Pattern([1.0], [[0.5, 0.1, 0.0, 0.4, 0.1]])
    >>> found = symmetry_of(bar)
    >>> found.order, found.mirror, round(found.axis % (np.pi / 2), 3)
    (2, True, 0.5)
    """
    if not pattern.n_atoms:
        raise ValueError("pattern has no atoms: there is nothing that may be symmetric.")
    overlap, middle = overlap_of(pattern), centroid(pattern)
    found = {k: _about(overlap, k, middle, tolerance) for k in range(2, MOST_TURNS + 1)}
    asymmetries = {k: asymmetry for k, (asymmetry, _) in found.items()}
    order = max((k for k, value in asymmetries.items() if value <= tolerance), default=1)
    centre = found[order][1] if order > 1 else middle
    asymmetry, axis, about = _mirrored(overlap, order, centre)
    mirror = asymmetry <= tolerance
    centre = about if mirror else centre
    same, curves = turns(np.zeros(1)), np.arange(0, 2 * np.pi, STEP)
    energy = overlap(same, centre)[0]
    turned, flipped = overlap(turns(curves), centre), overlap(mirrors(curves / 2), centre)
    whole = not order % MOST_TURNS and float(turned.min()) >= (1 - 2 * tolerance) * energy
    kept = asymmetry if mirror else asymmetries.get(order, 0.0)
    larger = [value for k, value in asymmetries.items() if k > order and not k % order]
    rejected = [] if whole else larger + ([] if mirror else [asymmetry])
    return Symmetry(
        order=0 if whole else order,
        mirror=bool(mirror),
        centre=(float(centre[0]), float(centre[1])),
        axis=float(axis) if mirror else float("nan"),
        confidence=_confidence(kept, rejected, tolerance),
        asymmetry=float(max(kept, 0.0)),
        tolerance=tolerance,
        angles=curves,
        turned=turned / energy,
        mirrored=flipped / energy,
    )


def _about(
    overlap: Overlap, order: int, middle: np.ndarray, tolerance: float
) -> tuple[float, np.ndarray]:
    """Asymmetry under turns, about the best centre near the centroid, and that centre."""
    group = turns(2 * np.pi * np.arange(order) / order)
    asymmetry = _asymmetry(overlap, group, middle)
    if asymmetry > max(FIRST_GUESS, 4 * tolerance):
        return asymmetry, middle
    best = _minimised(lambda centre: _asymmetry(overlap, group, centre), middle, middle)
    return float(best.fun), best.x


def _mirrored(overlap: Overlap, order: int, centre: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Asymmetry under turns and mirrors, the angle of an axis, and a point on all axes."""
    multiples = np.arange(order) / order

    def lost(point: np.ndarray) -> float:
        group = np.concatenate(
            [turns(2 * np.pi * multiples), mirrors(point[0] + np.pi * multiples)]
        )
        return _asymmetry(overlap, group, point[1:])

    angles = np.arange(0, np.pi / order, STEP / 2)
    start = min((np.append(angle, centre) for angle in angles), key=lost)
    best = _minimised(lost, start, centre)
    return float(best.fun), float(best.x[0]) % (np.pi / order), best.x[1:]


def _asymmetry(overlap: Overlap, group: np.ndarray, centre: np.ndarray) -> float:
    """Share of the energy that is lost in the mean over a group, whose first is the identity."""
    products = overlap(group, centre)
    return float(1 - products.mean() / products[0])


def _minimised(
    function: Callable[[np.ndarray], float], start: np.ndarray, centre: np.ndarray
) -> Any:
    """Minimise over a point whose last two coordinates stay near the centre."""
    simplex = start + np.vstack([np.zeros(len(start)), 0.03 * np.eye(len(start))])
    near = [(value - NEARBY, value + NEARBY) for value in centre]
    return minimize(
        function,
        start,
        method="Nelder-Mead",
        bounds=[(None, None)] * (len(start) - 2) + near,
        options={"xatol": 1e-4, "fatol": 1e-7, "maxiter": 120, "initial_simplex": simplex},
    )


def _confidence(kept: float, rejected: list[float], tolerance: float) -> float:
    """How far, in squares of ratios, asymmetries are from the tolerance: the worst of them."""
    ratios = [max(kept, 0.0) / tolerance, *(tolerance / value for value in rejected)]
    return float(min(1 / (1 + ratio**2) for ratio in ratios))
