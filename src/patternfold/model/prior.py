"""Priors on λ: which transformations are likely, parameter by parameter.

Shifts and other plain parameters have a Gaussian, scales a Gaussian on their logarithm, angles a
von Mises distribution. The cost of λ is σ² times −2 log of the density, less its value at the mode,

    ((λ − μ)/std)²,   (log(λ/μ)/std)²,   2 (1 − cos(λ − μ))/std²,

with σ² the variance of a pixel's noise: what makes ‖u − U_λ(p)‖² + σ² Σ cost the negative log of a
posterior density.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from patternfold._validation import unknown_name
from patternfold.model.component import Family
from patternfold.model.units import plain_bounds

LEARNED = "learned"
"""The prior that is fitted to the λ of the images that are learned from."""

FAR_OUTSIDE = 3.0
"""Standard deviations by which a mean may lie outside the bounds: beyond, no λ is likely."""

FLOOR = 0.02
"""Least standard deviation that is learned, as a share of the box, of half a turn for angles and of
1 for logarithms: a few images that are alike do not tell that all are."""

FREE = math.inf
"""Standard deviation of a parameter without prior."""


@dataclass(frozen=True)
class Prior:
    """Independent densities of the parameters of a family.

    Attributes
    ----------
    names : tuple of str
        Parameters.
    kinds : tuple of str
        "gaussian", "log" or "von-mises".
    mean, std : tuple of float
        μ and std of each; std is that of the logarithm for "log", and infinite for parameters
        without prior.
    noise : float, optional
        σ², the variance of a pixel's noise in the unit of the images; None for what the images
        tell.

    Examples
    --------
    >>> from patternfold import Prior
    >>> print(Prior(("theta",), ("von-mises",), (0.0,), (0.1,)))
    theta 0 ± 0.1
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    noise: float | None = None

    def __str__(self) -> str:
        """Say it in a line."""
        rows = (f"{name} {mean:.3g} ± {std:.2g}" for name, (mean, std) in self.known().items())
        return ", ".join(rows) or "none"

    def with_noise(self, noise: float | None) -> Prior:
        """Return the same densities with another σ²."""
        return replace(self, noise=None if noise is None else float(noise))

    @property
    def precision(self) -> np.ndarray:
        """1/std², 0 for parameters without prior."""
        return 1 / np.square(self.std)

    def known(self) -> dict[str, tuple[float, float]]:
        """Return mean and std by name, without parameters that have no prior."""
        rows = zip(self.names, self.mean, self.std, strict=True)
        return {name: (mean, std) for name, mean, std in rows if math.isfinite(std)}

    def sample(self, family: Family, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw λ inside the family's box, shape (size, d); uniformly where there is no prior."""
        box = family.parameters
        drawn = box.sample(rng, size)
        for k, (kind, mean, std) in enumerate(zip(self.kinds, self.mean, self.std, strict=True)):
            if not math.isfinite(std):
                continue
            if kind == "von-mises":
                wave = waves(family)[k]
                drawn[:, k] = mean + rng.vonmises(0, 1 / (wave * std) ** 2, size) / wave
            else:
                drawn[:, k] = rng.normal(math.log(mean) if kind == "log" else mean, std, size)
                drawn[:, k] = np.exp(drawn[:, k]) if kind == "log" else drawn[:, k]
        return box.put_inside(drawn)


def as_prior(prior: Any, family: Family, pixel: float | None = None) -> Prior | None:
    """Return the prior that a user gives, and the family's own on parameters not named.

    ``prior`` is a `Prior`, a dict of (mean, std) by name, or None. Means and deviations may have
    units as bounds do.
    """
    if isinstance(prior, Prior):
        _require_names(prior.names, family)
        return prior
    if prior is not None and not isinstance(prior, Mapping):
        raise TypeError(
            f"prior={prior!r} must be a dict such as {{'theta': (0, 0.2)}}, {LEARNED!r} or None."
        )
    given = {**(family.default_prior() or {}), **(prior or {})}
    if not given:
        return None
    _require_names(given, family)
    pairs = plain_bounds(given, family.measured, pixel, "prior", "(mean, std)")
    kinds, box = family.prior_kinds(), family.parameters
    rows = [pairs.get(name, (box.centre[k], FREE)) for k, name in enumerate(box.names)]
    for k, name in enumerate(box.names):
        if name in pairs:
            _check(name, kinds[k], *rows[k], (box.lower[k], box.upper[k]))
    mean, std = (tuple(float(v) for v in column) for column in zip(*rows, strict=True))
    return Prior(box.names, kinds, mean, std)


def no_prior(family: Family) -> Prior:
    """Return the prior under which all λ are equally likely."""
    box = family.parameters
    centre = tuple(float(v) for v in box.centre)
    return Prior(box.names, family.prior_kinds(), centre, (FREE,) * box.dim)


def waves(family: Family) -> np.ndarray:
    """Factors that make one turn of each periodic parameter 2π; 1 for others."""
    box = family.parameters
    return np.where(box.periodic, 2 * np.pi / box.width, 1.0)


def fit_prior(lam: np.ndarray, weights: np.ndarray, family: Family) -> Prior:
    """Fit the densities to λ (N, d) of images with weights; deviations have a floor.

    Deviations are those of the next image's λ, as far as so many images can tell.
    """
    box, kinds = family.parameters, family.prior_kinds()
    count = weights.sum() ** 2 / max((weights**2).sum(), 1e-300)
    turns = waves(family)
    rows = [
        _fitted(kind, lam[:, k].astype(np.float64), weights, count, box.width[k], turns[k])
        for k, kind in enumerate(kinds)
    ]
    mean, std = (tuple(float(v) for v in column) for column in zip(*rows, strict=True))
    return Prior(box.names, kinds, mean, std)


def _fitted(
    kind: str, values: np.ndarray, weights: np.ndarray, count: float, width: float, wave: float
) -> tuple[float, float]:
    """Mean and deviation of one parameter."""
    if count < 2:
        return float(np.average(values, weights=weights)), FREE
    if kind == "von-mises":
        mean, std = _fitted_angle(wave * values, weights, count)
        return mean / wave, std / wave
    values = np.log(values) if kind == "log" else values
    mean = np.average(values, weights=weights)
    variance = np.average((values - mean) ** 2, weights=weights) * (count + 1) / (count - 1)
    std = max(float(np.sqrt(variance)), FLOOR * (1.0 if kind == "log" else width))
    return float(np.exp(mean) if kind == "log" else mean), std


def _fitted_angle(values: np.ndarray, weights: np.ndarray, count: float) -> tuple[float, float]:
    """Mean direction, and 1/√κ from the resultant, corrected for what chance alone gives."""
    total = np.average(np.exp(1j * values), weights=weights)
    square = max((count * abs(total) ** 2 - 1) / (count - 1), 0.0)
    square = min(square, 1 - 1e-9)
    resultant = math.sqrt(square)
    # Banerjee's approximation of the inverse of I₁(κ)/I₀(κ), within some percent everywhere.
    kappa = resultant * (2 - square) / (1 - square)
    floor = FLOOR * math.pi
    return float(np.angle(total)), max(1 / math.sqrt(kappa), floor) if kappa > 1e-3 else FREE


def _require_names(names: Sequence[str] | Mapping[str, Any], family: Family) -> None:
    for name in names:
        if name not in family.parameters.names:
            raise unknown_name("prior", name, family.parameters.names)


def _check(name: str, kind: str, mean: float, std: float, bounds: tuple[float, float]) -> None:
    """Refuse deviations that are not positive, and means far outside the bounds."""
    if not std > 0 or not math.isfinite(mean):
        raise ValueError(
            f"prior[{name!r}]=({mean:g}, {std:g}): the standard deviation must be above 0; leave "
            f"{name!r} out for no prior, or bound it with bounds."
        )
    low, high, middle = *bounds, mean
    if kind == "log":
        if not mean > 0:
            raise ValueError(
                f"prior[{name!r}]=({mean:g}, {std:g}): {name} is a scale, whose mean must be above "
                "0 and whose standard deviation is that of its logarithm, such as (1, 0.1)."
            )
        low, high, middle = math.log(low), math.log(high), math.log(mean)
    reach = FAR_OUTSIDE * std
    if kind != "von-mises" and not low - reach <= middle <= high + reach:
        raise ValueError(
            f"prior[{name!r}]=({mean:g}, {std:g}) contradicts the bounds ({bounds[0]:g}, "
            f"{bounds[1]:g}), which lie more than {FAR_OUTSIDE:g} standard deviations away; move "
            f"the mean inside or widen them with bounds={{{name!r}: (lower, upper)}}."
        )
