"""The frame of a learned pattern: fix what the data leave open.

Moving the pattern and all λ_i together leaves every image U_λi(p) as it is. Runs compare only
once this freedom is used up: the mean transformation is made the identity.
"""

from __future__ import annotations

import jax
import numpy as np

from patternfold.model.dictionaries import AtomDictionary
from patternfold.model.mothers import AbstractRadialMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractAffineTransformation, AbstractTransformation
from patternfold.numerics.precision import precision


def fix_frame(
    pattern: Pattern, lam: np.ndarray, transformation: AbstractTransformation
) -> tuple[Pattern, np.ndarray]:
    """Return the same images with mean scale 1, mean shift 0 and, where it is free, mean angle 0.

    Done for affine families and the built-in dictionary as far as the box Λ allows; a pattern
    from other components is returned as it is.
    """
    if not isinstance(transformation, AbstractAffineTransformation) or not len(lam):
        return pattern, lam
    if not isinstance(pattern.dictionary, AtomDictionary):
        return pattern, lam
    names = transformation.parameters.names
    moved = lam.astype(np.float64)
    # Only a radial mother absorbs a stretched frame into its widths and angle.
    if isinstance(pattern.mother, AbstractRadialMother):
        linear = _scale_to_mean(transformation, moved)
        pattern = _change_frame(pattern, linear)
        if "theta" in names and not {"sx", "sy"} & set(names):
            moved, pattern = _turn_to_mean(transformation, moved, pattern)
    if transformation.translation is not None:
        moved, pattern = _centre(transformation, moved, pattern)
    return pattern, moved.astype(lam.dtype)


def _scale_to_mean(transformation: AbstractAffineTransformation, lam: np.ndarray) -> np.ndarray:
    """Divide the scales in ``lam`` by their geometric means; return D of x' = D x''."""
    box, factors = transformation.parameters, np.ones(2)
    for name, axes in (("s", [0, 1]), ("sx", [0]), ("sy", [1])):
        if name in box.names:
            k = box.index(name)
            logs = np.log(lam[:, k])
            # As far as all scales stay within their bounds.
            low, high = logs.max() - np.log(box.upper[k]), logs.min() - np.log(box.lower[k])
            factors[axes] = np.exp(np.clip(logs.mean(), low, high))
            lam[:, k] = np.clip(lam[:, k] / factors[axes[0]], box.lower[k], box.upper[k])
    return np.diag(1 / factors)


def _turn_to_mean(
    transformation: AbstractAffineTransformation, lam: np.ndarray, pattern: Pattern
) -> tuple[np.ndarray, Pattern]:
    """Turn the pattern so that the mean direction of the angles is 0."""
    k = transformation.parameters.index("theta")
    mean = np.angle(np.exp(1j * lam[:, k]).mean())
    turned = lam.copy()
    turned[:, k] -= mean
    turned = transformation.parameters.wrap(turned)
    if not transformation.parameters.contains(turned).all():
        return lam, pattern
    return turned, _change_frame(pattern, _rotation(-mean))


_linear = jax.jit(lambda transformation, lam: jax.vmap(transformation.linear)(lam))


def _centre(
    transformation: AbstractAffineTransformation, lam: np.ndarray, pattern: Pattern
) -> tuple[np.ndarray, Pattern]:
    """Move the pattern's origin to where the shifts t_i are smallest in the mean square."""
    with precision(np.dtype(np.float64)):
        linear = np.asarray(_linear(transformation, lam))
    index = [transformation.parameters.index(n) for n in transformation.translation or ()]
    shift = lam[:, index]
    # t_i'' = t_i + F_i g, least over g.
    g = np.linalg.lstsq(linear.reshape(-1, 2), -shift.reshape(-1), rcond=None)[0]
    for share in (1.0, 0.5, 0.25):
        moved = lam.copy()
        moved[:, index] = shift + share * linear @ g
        if transformation.parameters.contains(moved).all():
            gamma = pattern.gamma.copy()
            gamma[:, 1:3] -= share * g
            return moved, pattern.replace(pattern.coef, gamma)
    return lam, pattern


def _change_frame(pattern: Pattern, linear: np.ndarray) -> Pattern:
    """Return q with q(x'') = p(D x''): each atom's matrix is multiplied by D and split again."""
    gamma = pattern.gamma.copy()
    for row in gamma:
        psi, tau, sigma = row[0], row[1:3], row[3:5]
        matrix = np.diag(1 / sigma) @ _rotation(-psi) @ linear
        # B = U diag(1/σ) Vᵀ; the radial mother does not see U.
        _, singular, right = np.linalg.svd(matrix)
        row[0] = np.arctan2(right[0, 1], right[0, 0])
        row[1:3] = np.linalg.solve(linear, tau)
        row[3:5] = 1 / singular
    return pattern.replace(pattern.coef, gamma)


def _rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])
