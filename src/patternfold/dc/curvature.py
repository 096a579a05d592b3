"""Bounds from the Hessian over boxes: ρ for a decomposition, and lower bounds of f.

With d = (x − m)/w ∈ [−½, ½]^s about the centre m of a box with widths w, and S and R the Hessian
at m and the bound on its change over the box, both in these units,

    ∇²f ⪰ S − r I everywhere in the box, r the spectral radius of R,

since |dᵀ(∇²f − S)d| ≤ |d|ᵀR|d| ≤ r‖d‖². All bounds here rest on this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternfold.dc.base import ByCurvature
from patternfold.dc.function import Bounds, Function
from patternfold.model.box import Box

SWEEPS = 12
"""Sweeps of coordinate descent for the small convex problems; the bound holds after any number."""


def least_eigenvalue(bounds: Bounds, scale: np.ndarray) -> np.ndarray:
    """A lower bound of the eigenvalues of D∇²fD on each box, D = diag(scale)."""
    outer = scale[..., :, None] * scale[..., None, :]
    centre = np.linalg.eigvalsh(bounds.hessian * outer)
    radius = np.linalg.eigvalsh(bounds.hessian_rad * outer)[:, -1]
    # Eigenvalues are computed to rounding of the largest.
    return centre[:, 0] - radius - 1e-12 * (np.abs(centre).max(axis=1) + radius)


def hessian_bound(function: Function, max_boxes: int = 512, slack: float = 1.2) -> np.ndarray:
    """ρ, shape (s,), with ∇²f + diag(ρ) positive semidefinite on the box of f.

    The box is cut into boxes, the worst first, and the bound is the worst of theirs: bounds over
    small boxes are tight. Units are chosen among a few so that Σ ρ_k w_k², which tells how much
    is added to f, is small.

    Parameters
    ----------
    function : Function
        f on its box.
    max_boxes : int
        How finely the box may be cut.
    slack : float
        Cutting ends when the bound is within this factor of what is needed.
    """
    box = function.box
    leaves = _Leaves.of(function, np.array([box.lower]), np.array([box.upper]))
    while len(leaves.lower) < max_boxes:
        shift = -least_eigenvalue(leaves.bounds, box.width)
        outer = box.width[:, None] * box.width[None]
        needed = -float(np.linalg.eigvalsh(leaves.bounds.hessian * outer)[:, 0].min())
        worst = np.argsort(-shift)[: min(16, max_boxes - len(shift))]
        # Centres show how much is needed at least: a bound close to that is good enough.
        if shift[worst[0]] <= max(0.0, slack * needed):
            break
        leaves = leaves.split(function, worst[shift[worst] > slack * max(0.0, needed)])
    candidates = [_rho(leaves.bounds, scale) for scale in _scales(leaves.bounds, box)]
    return min(candidates, key=lambda rho: float((rho * box.width**2).sum()))


def by_curvature(function: Function, max_boxes: int = 512) -> ByCurvature:
    """f with the decomposition that its Hessian's bound gives."""
    return ByCurvature(function, hessian_bound(function, max_boxes))


def _rho(bounds: Bounds, scale: np.ndarray) -> np.ndarray:
    worst = max(0.0, -float(least_eigenvalue(bounds, scale).min()))
    return worst / scale**2


def _scales(bounds: Bounds, box: Box) -> list[np.ndarray]:
    """Units to try: the box's widths, and those in which the diagonal of ∇²f is even."""
    rows = np.abs(bounds.hessian) + bounds.hessian_rad
    worst = np.diagonal(rows, axis1=1, axis2=2).max(axis=0)
    typical = np.median(np.diagonal(rows, axis1=1, axis2=2), axis=0)
    mixed = [np.sqrt(box.width / np.sqrt(np.maximum(d, 1e-300))) for d in (worst, typical)]
    return [box.width, *(1 / np.sqrt(np.maximum(d, 1e-300)) for d in (worst, typical)), *mixed]


class _Leaves(NamedTuple):
    """Boxes that make up a larger one, with f's bounds on each."""

    lower: np.ndarray
    upper: np.ndarray
    bounds: Bounds

    @classmethod
    def of(cls, function: Function, lower: np.ndarray, upper: np.ndarray) -> _Leaves:
        return cls(lower, upper, function.bounds(lower, upper))

    def split(self, function: Function, index: np.ndarray) -> _Leaves:
        """Halve some boxes where f's slope changes most."""
        width = self.upper[index] - self.lower[index]
        changes = np.einsum("bij,bi,bj->bi", self.bounds.hessian_rad[index], width, width)
        children = halve(self.lower[index], self.upper[index], changes.argmax(axis=1))
        new = _Leaves.of(function, *children)
        kept = np.setdiff1d(np.arange(len(self.lower)), index)
        return _Leaves(
            np.concatenate([self.lower[kept], new.lower]),
            np.concatenate([self.upper[kept], new.upper]),
            Bounds(
                *(
                    np.concatenate([a[kept], b])
                    for a, b in zip(self.bounds, new.bounds, strict=True)
                )
            ),
        )


def halve(lower: np.ndarray, upper: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut each box (B, s) in the middle of the given axis: 2B boxes."""
    rows = np.arange(len(lower))
    left_upper, right_lower = upper.copy(), lower.copy()
    middle = (lower[rows, axis] + upper[rows, axis]) / 2
    left_upper[rows, axis], right_lower[rows, axis] = middle, middle
    return np.concatenate([lower, right_lower]), np.concatenate([left_upper, upper])


def lower_bounds(
    bounds: Bounds, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Certified lower bounds of f on boxes, and where a low value is to be expected.

    The best of three: interval arithmetic; the mean value theorem; and the minimum of the convex
    quadratic below f that the bound on the Hessian gives, itself bounded by its tangent.
    """
    width = upper - lower
    slope, slope_rad = bounds.gradient * width, bounds.gradient_rad * width
    mean_value = bounds.value - 0.5 * (np.abs(slope) + slope_rad).sum(axis=1)
    outer = width[:, :, None] * width[:, None, :]
    hessian = bounds.hessian * outer
    least = least_eigenvalue(bounds, width)
    radius = np.linalg.eigvalsh(hessian)[:, 0] - least
    # S − rI is made convex by −λI; what that adds is at most ⅛λ⁻ for each variable.
    concave = np.maximum(0.0, -least)
    dim = lower.shape[1]
    convex = hessian + (concave - radius)[:, None, None] * np.eye(dim)
    step = _minimise(slope, convex)
    at = slope + np.einsum("bij,bj->bi", convex, step)
    model = (slope * step).sum(axis=1) + 0.5 * np.einsum("bi,bij,bj->b", step, convex, step)
    tangent = model - (at * step).sum(axis=1) - 0.5 * np.abs(at).sum(axis=1)
    quadratic = bounds.value - dim * concave / 8 + tangent
    best = np.maximum(np.maximum(bounds.low, mean_value), quadratic)
    return best, lower + width * (step + 0.5)


def _minimise(slope: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Roughly minimise slope·d + ½ dᵀMd over [−½, ½]^s for each row, by coordinate descent."""
    step = np.zeros_like(slope)
    diagonal = np.maximum(np.einsum("bii->bi", matrix), 1e-300)
    for _ in range(SWEEPS):
        for k in range(slope.shape[1]):
            rest = slope[:, k] + np.einsum("bj,bj->b", matrix[:, k], step)
            step[:, k] = np.clip(step[:, k] - rest / diagonal[:, k], -0.5, 0.5)
    return step
