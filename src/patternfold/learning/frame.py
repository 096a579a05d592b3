"""The frame of a learned pattern: fix what the data leave open.

Moving the pattern and all λ_i together leaves every image U_λi(p) as it is. Runs compare only
once this freedom is used up: the mean transformation is made the identity.
"""

from __future__ import annotations

import jax
import numpy as np

from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractAffineTransformation, AbstractTransformation
from patternfold.numerics.precision import precision

SAME = 1e-6
"""How far F and t may be off: λ on a bound is rounded to it."""

Frame = tuple[np.ndarray, Pattern]
"""λ of all images and the pattern, which together make the same images."""


def fix_frame(
    pattern: Pattern, lam: np.ndarray, transformation: AbstractTransformation
) -> tuple[Pattern, np.ndarray]:
    """Return the same images with mean scale 1, mean shift 0 and, where it is free, mean angle 0.

    Done for affine families as far as the box Λ allows, and as far as the dictionary has the atoms
    of the moved pattern; otherwise a pattern is returned as it is.
    """
    if not isinstance(transformation, AbstractAffineTransformation) or not len(lam):
        return pattern, lam
    names = transformation.parameters.names
    frame = lam.astype(np.float64), pattern
    frame = _scale_to_mean(transformation, frame)
    if "theta" in names and not {"sx", "sy"} & set(names):
        frame = _turn_to_mean(transformation, frame)
    if transformation.translation is not None:
        frame = _centre(transformation, frame)
    moved, pattern = frame
    return pattern, moved.astype(lam.dtype)


def _scale_to_mean(transformation: AbstractAffineTransformation, frame: Frame) -> Frame:
    """Divide the scales by their geometric means."""
    box, factors = transformation.parameters, np.ones(2)
    lam = frame[0].copy()
    for name, axes in (("s", [0, 1]), ("sx", [0]), ("sy", [1])):
        if name in box.names:
            k = box.index(name)
            logs = np.log(lam[:, k])
            # As far as all scales stay within their bounds.
            low, high = logs.max() - np.log(box.upper[k]), logs.min() - np.log(box.lower[k])
            factors[axes] = np.exp(np.clip(logs.mean(), low, high))
            lam[:, k] = np.clip(lam[:, k] / factors[axes[0]], box.lower[k], box.upper[k])
    return _moved(transformation, frame, lam, np.diag(1 / factors), np.zeros(2))


def _turn_to_mean(transformation: AbstractAffineTransformation, frame: Frame) -> Frame:
    """Turn the pattern so that the mean direction of the angles is 0."""
    k = transformation.parameters.index("theta")
    turned = frame[0].copy()
    mean = np.angle(np.exp(1j * turned[:, k]).mean())
    turned[:, k] -= mean
    turned = transformation.parameters.wrap(turned)
    if not transformation.parameters.contains(turned).all():
        return frame
    return _moved(transformation, frame, turned, _rotation(-mean), np.zeros(2))


def _centre(transformation: AbstractAffineTransformation, frame: Frame) -> Frame:
    """Move the pattern's origin to where the shifts t_i are smallest in the mean square."""
    lam = frame[0]
    linear, _ = _motions(transformation, lam)
    index = [transformation.parameters.index(n) for n in transformation.translation or ()]
    shift = lam[:, index]
    # t_i'' = t_i + F_i g, least over g.
    g = np.linalg.lstsq(linear.reshape(-1, 2), -shift.reshape(-1), rcond=None)[0]
    for share in (1.0, 0.5, 0.25):
        moved = lam.copy()
        moved[:, index] = shift + share * linear @ g
        if transformation.parameters.contains(moved).all():
            return _moved(transformation, frame, moved, np.eye(2), share * g)
    return frame


def _moved(
    transformation: AbstractAffineTransformation,
    frame: Frame,
    lam: np.ndarray,
    linear: np.ndarray,
    shift: np.ndarray,
) -> Frame:
    """Return λ'' and q(x'') = p(D x'' + g), or all as it is where q has no atoms of this kind."""
    old, pattern = frame
    gamma = pattern.dictionary.in_frame(pattern.gamma, linear, shift, pattern.mother.is_radial)
    if gamma is None:
        return frame
    (before, t), (after, t_after) = (_motions(transformation, rows) for rows in (old, lam))
    # Names tell scales and angles; in a family where they mean something else F'' is not F D.
    same = np.allclose(after, before @ linear, atol=SAME)
    same = same and np.allclose(t_after, t + before @ shift, atol=SAME)
    return (lam, pattern.replace(pattern.coef, gamma)) if same else frame


_linear_and_shift = jax.jit(
    lambda transformation, lam: jax.vmap(
        lambda row: (transformation.linear(row), transformation.shift(row))
    )(lam)
)


def _motions(
    transformation: AbstractAffineTransformation, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """F (N, 2, 2) and t (N, 2) of all images."""
    with precision(np.dtype(np.float64)):
        linear, shift = _linear_and_shift(transformation, lam)
    return np.asarray(linear), np.asarray(shift)


def _rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])
