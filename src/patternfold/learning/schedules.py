"""The weights of JPATS: α along the iterations, β from the data, η from the sigmoid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

AlphaSchedule = Callable[[int, float], float]
"""α as a function of the iteration j = 1, 2, ... and of the scale of f, see `margin_scale`."""

BetaRule = Callable[[np.ndarray, np.ndarray], float]
"""β as a function of f(u_i) at the beginning and I(u_i) at the end of an iteration."""


@dataclass(frozen=True)
class SigmoidAlpha:
    """α from ``first`` to ``last`` along a sigmoid, the middle at iteration ``centre``.

    Where ``relative``, α is in units of the mean ``|f|``, and does not depend on the scale of the
    images. With β = 2 over the mean, α = 2 gives an impostor between two classes the weight of an
    image of the class itself.
    """

    first: float = 0.5
    last: float = 10.0
    centre: float = 6.0
    slope: float = 1.0
    relative: bool = False

    def __call__(self, j: int, scale: float = 1.0) -> float:
        """Return α of iteration j."""
        share = float(special.expit(self.slope * (j - self.centre)))
        unit = scale if self.relative else 1.0
        return unit * (self.first + (self.last - self.first) * share)

    def times(self, factor: float) -> SigmoidAlpha:
        """The same with all values multiplied."""
        return replace(self, first=factor * self.first, last=factor * self.last)


RELATIVE_ALPHA = SigmoidAlpha(0.1, 2.0, relative=True)
"""α in units of the mean |f|; it grows twentyfold, as in the paper."""


MODERATE_ALPHA = SigmoidAlpha(last=4.0)
"""The default. With the 10 of the paper the joint correction of all atoms bends patterns of rich
families far from their images: E_a rises by two thirds, and new images are classified worse, by a
point or more. With families of few parameters it makes no difference of half a point."""


@dataclass(frozen=True)
class ConstantAlpha:
    """The same α in every iteration."""

    value: float

    def __call__(self, j: int, scale: float = 1.0) -> float:
        """Return α."""
        return self.value


@dataclass(frozen=True)
class BetaSchedule:
    """β of the first iteration, as ``first`` over the mean ``|f|``, and how it is updated."""

    rule: BetaRule
    first: float = 2.0

    def start(self, scale: float) -> float:
        """Return β where no iteration has told anything yet; ``scale`` is the mean ``|f|``."""
        return self.first / scale

    def __call__(self, f: np.ndarray, wrong: np.ndarray) -> float:
        """Return β after an iteration."""
        return self.rule(f, wrong)

    def in_units(self, square: float) -> BetaSchedule:
        """Return what is meant for images of mean squared norm 1, for those of ``square``."""
        return BetaSchedule(lambda f, wrong: self.rule(f / square, wrong) / square, self.first)


@dataclass(frozen=True)
class ConstantBeta:
    """The same β in every iteration."""

    value: float

    def start(self, scale: float) -> float:
        """Return β."""
        return self.value

    def __call__(self, f: np.ndarray, wrong: np.ndarray) -> float:
        """Return β."""
        return self.value

    def in_units(self, square: float) -> ConstantBeta:
        """Return what is meant for images of mean squared norm 1, for those of ``square``."""
        return ConstantBeta(self.value / square)


@dataclass(frozen=True)
class AlphaInUnits:
    """α of a schedule that is meant for images of mean squared norm 1, for those of ``square``."""

    schedule: AlphaSchedule
    square: float

    def __call__(self, j: int, scale: float = 1.0) -> float:
        """Return α of iteration j."""
        return self.square * self.schedule(j, scale / self.square)


def fit_beta(f: np.ndarray, wrong: np.ndarray) -> float:
    """Fit the sigmoid's β to the pairs (f, I): logistic regression with one parameter.

    β stays within a factor of 30 of 2 over the mean |f|: where f tells I without fail, the fit
    would go to infinity.
    """
    usual = 2 / np.abs(f).mean()

    def loss(log_beta: float) -> float:
        z = np.exp(log_beta) * f
        return float((np.logaddexp(0, z) - wrong * z).mean())

    low, high = np.log(usual / 30), np.log(usual * 30)
    found = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded")
    return float(np.exp(found.x))  # pyright: ignore[reportAttributeAccessIssue]


def margin_scale(f: np.ndarray, squares: np.ndarray) -> float:
    """The mean |f|; where all are 0, the mean squared distance."""
    return max(float(np.abs(f).mean() or squares.mean()), float(np.finfo(np.float64).tiny))


def usual_beta(f: np.ndarray, squares: np.ndarray) -> float:
    """Two over the mean |f|, where no iteration has told more yet."""
    return 2 / margin_scale(f, squares)


def sigmoid_slopes(f: np.ndarray, beta: float) -> np.ndarray:
    """η_i, the sigmoid's derivative at f_0(u_i)."""
    s = special.expit(beta * f)
    return beta * s * (1 - s)
