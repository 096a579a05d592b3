"""Correction: improve atoms already chosen, their coefficients and all λ_i together.

Greedy selection never revisits an atom. Here E is minimised over everything at once by
Levenberg-Marquardt. The parameters of the atoms are common to all images while λ_i concerns only
image i, so that the normal equations are an arrow: the λ_i are eliminated image by image, inside
each chunk, and a system in the atoms' parameters alone travels, as in the bundle adjustment of
photogrammetry.
"""

from __future__ import annotations

import numpy as np

from patternfold.learning.refit.equations import Equations
from patternfold.model.pattern import Pattern
from patternfold.numerics.least_squares import descend


def correct_all(
    start: Equations, max_iter: int = 10, tol: float = 1e-5
) -> tuple[Pattern, np.ndarray, float]:
    """Minimise E over all atoms, coefficients and λ from where they are; E never rises.

    Parameters
    ----------
    start : Equations
        Where to start, on which images and pixels.
    max_iter : int
        Most steps.
    tol : float
        Stop when a step lowers E by less than this share of it.

    Returns
    -------
    pattern, lam, error
        The error is Σ_i w_i ‖u_i − U_λi(p)‖², not normalised.
    """
    here: Equations = [start, *descend(start, max_iter, tol)][-1]
    return here.pattern, here.lam.astype(start.lam.dtype), here.cost


def least_useful(equations: Equations) -> int:
    """Return the atom whose loss costs least, the other coefficients adapting."""
    pattern = equations.pattern
    size = pattern.gamma.shape[1] + 1
    rows = np.arange(pattern.n_atoms) * size + size - 1
    matrix = equations.normal.atoms[np.ix_(rows, rows)]
    inverse = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    return int(np.argmin(pattern.coef**2 / np.maximum(np.diag(inverse), 1e-300)))
