"""The transformed atom U_λ(φ_γ)(l) and the error Ẽ as formulas that decompose themselves.

All pixels of all images are seen from the pattern's frame, where a_λi takes them: pixel l of
image i lies at (ν, ξ) = a_λi(x_l, y_l), appendix C. There its value under the atom depends on
(ν, ξ) and γ alone, so that images and pixels are one long list of points with weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.dc import elementary
from patternfold.dc.elementary import chain, cos, power, quadratic, sin, square
from patternfold.dc.function import Function
from patternfold.model.box import Box
from patternfold.model.dictionaries import DICTIONARIES, AbstractDictionary, AtomDictionary
from patternfold.model.mothers import MOTHERS, AbstractMother, Gaussian

VARIABLES = ("psi", "tau_x", "tau_y", "sigma_x", "sigma_y", "coef")
"""γ and c: the variables of Ẽ."""


def unsupported(mother: AbstractMother, dictionary: AbstractDictionary) -> str | None:
    """Say why there is no DC decomposition for these components, or return None."""
    if not dictionary.is_dict_model:
        return _known([k for k in DICTIONARIES.values() if k.is_dict_model], dictionary)
    if mother.convex_profile(1.0, 1, elementary) is None:
        own = AbstractMother.convex_profile
        return _known([k for k in MOTHERS.values() if k.convex_profile is not own], mother)
    return None


def _known(kinds: list[Any], component: object) -> str:
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    return f"a DC decomposition is known for {names}, not for {type(component).__name__}"


@dataclass(frozen=True)
class Atom:
    """U_λ(φ_γ)(l)^n at points (ν, ξ), a function of γ = (ψ, τ_x, τ_y, σ_x, σ_y)."""

    mother: AbstractMother
    n: int = 1

    def __call__(self, gamma: Any, nu: Any, xi: Any) -> Any:
        """x̃ = (cos ψ (ν − τ_x) + sin ψ (ξ − τ_y)) / σ_x and ỹ likewise, appendix C."""
        return self.profile(squared_radius(gamma, nu, xi))

    def profile(self, z: Any) -> Any:
        """φ^n as a function of z̃."""
        return self.mother.convex_profile(z, self.n, elementary)


def squared_radius(gamma: Any, nu: Any, xi: Any) -> Any:
    """z̃ = x̃² + ỹ², with x̃ and ỹ written as in appendix C.

    What ν and ξ multiply does not depend on the pixel and is decomposed once.
    """
    c, s = cos(gamma[0]), sin(gamma[0])
    tau_x, tau_y = gamma[1], gamma[2]
    over_x, over_y = 1 / gamma[3], 1 / gamma[4]
    c_x, s_x, c_y, s_y = c * over_x, s * over_x, c * over_y, s * over_y
    x = c_x * nu + s_x * xi - (c_x * tau_x + s_x * tau_y)
    y = c_y * xi - s_y * nu - (c_y * tau_y - s_y * tau_x)
    return square(x) + square(y)


def squared_radius_compact(gamma: Any, nu: Any, xi: Any) -> Any:
    """z̃ again, with fewer operations and, in jets, tighter bounds."""
    c, s = cos(gamma[0]), sin(gamma[0])
    dx, dy = nu - gamma[1], xi - gamma[2]

    def scaled(along: Any, sigma: Any) -> Any:
        return square(along) * power(sigma, -2.0)

    x = chain(scaled, c * dx + s * dy, gamma[3])
    return x + chain(scaled, c * dy - s * dx, gamma[4])


@dataclass(frozen=True)
class FrozenErrorTerms:
    """w (v − c φ)² − w v² at every point, as w (cφ)² − 2 w v (cφ).

    With ``expanded`` the terms of appendix A, c φ and c² φ², each decomposed.
    """

    mother: AbstractMother
    expanded: bool = False

    def __call__(self, x: Any, nu: Any, xi: Any, weighted: Any, weights: Any) -> Any:
        """The terms at x = (γ, c)."""
        gamma, coef = [x[k] for k in range(5)], x[5]
        if self.expanded:
            phi, phi_squared = (Atom(self.mother, n)(gamma, nu, xi) for n in (1, 2))
            return (coef * phi) * (-2 * weighted) + (square(coef) * phi_squared) * weights

        def of_radius(z: Any, coef: Any) -> Any:
            return quadratic(coef * Atom(self.mother).profile(z), weights, -2 * weighted)

        return chain(of_radius, squared_radius_compact(gamma, nu, xi), coef)


def frozen_error(
    x: np.ndarray,
    y: np.ndarray,
    weighted: np.ndarray,
    weights: np.ndarray,
    box: Box,
    mother: AbstractMother | None = None,
    constant: float | None = None,
) -> Function:
    r"""Ẽ of one new atom as a function on a box, with both of its decompositions.

    .. math:: \tilde E(γ, c) = \sum_i w_i \|v_i - c\, U_{λ_i}(φ_γ)\|^2

    Weights may have either sign: own images and impostors of JPATS (appendix D).

    Parameters
    ----------
    x, y : arrays of shape (P,)
        Where all pixels lie in the pattern's frame.
    weighted, weights : arrays of shape (P,)
        w v and w at each.
    box : Box
        Of (ψ, τ_x, τ_y, σ_x, σ_y, c), an interval of at most 2π for ψ. `Restricted` keeps some
        of them fixed.
    mother : mother function, optional
        φ, a Gaussian by default.
    constant : float, optional
        Σ w v²; by default computed from the points, none of which may then have been gathered.
    """
    mother = Gaussian() if mother is None else mother
    reason = unsupported(mother, AtomDictionary())
    if reason is not None:
        raise TypeError(f"mother={mother!r}: {reason}.")
    if box.names != VARIABLES:
        raise ValueError(f"box has the variables {box.names}; those of Ẽ are {VARIABLES}.")
    if box.width[0] > 2 * np.pi * (1 + 1e-12):
        raise ValueError(f"psi has an interval of length {box.width[0]:.6g}, more than a turn.")
    x, y, weighted, weights = (np.asarray(a, np.float64) for a in (x, y, weighted, weights))
    if constant is None:
        some = weights != 0
        constant = float((weighted[some] ** 2 / weights[some]).sum())
    return Function(
        FrozenErrorTerms(mother),
        box,
        (x, y, weighted, weights),
        constant=constant,
        dc_terms=FrozenErrorTerms(mother, expanded=True),
    )
