"""Projection of images on pattern transformation manifolds: λ* = argmin ‖u − U_λ(p)‖ over Λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from patternfold._validation import as_images, as_parameters, unknown_name
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import Effort, as_effort
from patternfold.learning.lighting import Lighting
from patternfold.learning.missing import as_mask
from patternfold.learning.project.brightness import in_range
from patternfold.learning.project.expected import as_priors
from patternfold.learning.project.found import Found
from patternfold.learning.project.task import METHODS, Task
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.model.losses import AbstractLoss, as_loss
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.precision import precision, working_dtype

LOCAL_STEPS = 30
"""Most steps from known λ: nothing else mends what they leave."""

STATUS = {
    "converged": "The search ended at a minimum inside the box.",
    "bound": "The search ended with some parameter on a bound of the box.",
    "degenerate": "Some change of the parameters leaves the image as it is (a symmetric pattern, "
    "one outside the window, or fewer pixels that count than parameters): the pose is not unique.",
    "blank": "The image is blank, or no pixel of it counts, so that its pose says nothing.",
    "empty": "The pattern has no atoms, so that every pose is as good; the identity is given.",
    "max-iter": "The search stopped at max_iter steps; the distance may still shrink.",
    "ambiguous": "Another pose is as good within the noise: any of modes may be the right one.",
}
"""What each status of a projection means, in the order of the codes in found.py."""

_WORDS = np.array(list(STATUS))


@dataclass(frozen=True)
class Projection:
    """Where images lie on a manifold.

    Attributes
    ----------
    parameters : array of shape (N, d), or (N, M, d) for a list of M patterns
        λ*, in the order of ``names``.
    distances : array of shape (N,) or (N, M)
        ‖u − U_λ*(p)‖. With another loss than the squared one √Σ ρ(r), the same for small residuals;
        with a prior, what λ* costs under it is included, √(‖r‖² + σ² cost).
    status : array of str of shape (N,) or (N, M)
        How each search ended; `STATUS` explains the words.
    names : tuple of str
        Parameter names.
    gain, offset : arrays of shape (N,) or (N, M)
        g and b of each image, u ≈ g·U_λ*(p) + b; 1 and 0 where they are not its own.
    second : array of shape (N, d) or (N, M, d)
        The best other pose that the search came upon at nearly the same distance, NaN where it
        came upon none.
    second_distances : array of shape (N,) or (N, M)
        ‖u − U_λ(p)‖ there, infinite where there is none.
    modes : array of shape (N, 6, d) or (N, M, 6, d)
        The best poses that the search came upon, ``parameters`` first, NaN where there are no more.
    mode_distances : array of shape (N, 6) or (N, M, 6)
        ‖u − U_λ(p)‖ there, infinite where there are no more.
    n_modes : array of int of shape (N,) or (N, M)
        How many of them are as good as the best one within the noise: 1 where the pose is unique.
        Only with ``uncertainty=True`` are other poses looked for.
    covariance : array of shape (N, d, d) or (N, M, d, d), or None
        Covariance of the parameters, with ``uncertainty=True``, taking the noise for white. NaN for
        a parameter on a bound of the box, the others then given it; infinite variance, and NaN
        beside it, for parameters that can change without changing the image.
    std : array of shape (N, d) or (N, M, d), or None
        Standard deviation of each parameter, the root of that variance.

    Examples
    --------
    >>> from patternfold import datasets
    >>> rng = np.random.default_rng(0)
    >>> p = datasets.random_pattern(2, rng)
    >>> images, truth = datasets.random_images(p, 3, rng, "translation", shape=(12, 12), noise=1e-4)
    >>> found = project(p, images, "translation", uncertainty=True)
    >>> found.names, found.parameters.shape, found.std.shape
    (('tx', 'ty'), (3, 2), (3, 2))
    >>> bool((abs(found.parameters - truth) < 5 * found.std).all())
    True
    """

    parameters: np.ndarray
    distances: np.ndarray
    status: np.ndarray
    names: tuple[str, ...]
    gain: np.ndarray
    offset: np.ndarray
    second: np.ndarray
    second_distances: np.ndarray
    modes: Any = None  # arrays, or None where nobody asked
    mode_distances: Any = None
    n_modes: Any = None
    covariance: Any = None

    @property
    def std(self) -> Any:
        """Standard deviation of each parameter, None where nobody asked."""
        if self.covariance is None:
            return None
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def __repr__(self) -> str:
        """Summarise the outcome."""
        words, counts = np.unique(self.status, return_counts=True)
        ends = ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
        return f"Projection of {len(self.parameters)} images on {self.names}: {ends}"


def project(
    pattern: Pattern | Sequence[Pattern],
    images: Any,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    *,
    image_shape: tuple[int, int] | None = None,
    start: Any = None,
    method: str = "levenberg-marquardt",
    effort: str | Effort = "normal",
    n_candidates: int | None = None,
    max_iter: int | None = None,
    gain: bool = False,
    offset: bool = False,
    sample_mask: Any = None,
    loss: str | AbstractLoss = "squared",
    prior: Any = None,
    uncertainty: bool = False,
) -> Projection:
    """Find the point of the manifold M(p) that is nearest to each image.

    The search is global: a bank of templates over Λ gives several candidates per image, each is
    improved, and the best end point is kept. From known λ (``start``) it is local.

    Parameters
    ----------
    pattern : Pattern or list of Pattern
        The pattern p. With a list, every image is projected on every manifold.
    images : array of shape (N, H, W) or (N, H·W)
        u_i.
    transformation : str or transformation
        The family a(λ, x, y) with its box Λ.
    image_shape : (H, W), optional
        Shape of flattened images.
    start : array of shape (N, d) or (N, M, d), optional
        Known λ, to be improved in their neighbourhood.
    method : {"levenberg-marquardt", "line-search"}
        How candidates are improved; "line-search" is the paper's: from the best template along
        each dimension in turn.
    effort : {"quick", "normal", "thorough"} or Effort
        How hard to search. "quick" is enough for images of the pattern, noisy or not; "normal"
        searches those images again that the pattern fits badly, since images of something similar
        have many local optima of nearly the same distance; "thorough" does so at length for all.
    n_candidates : int, optional
        Candidates per image from the bank, in place of the effort's, and no second search. With
        ``start``, by default none.
    max_iter : int, optional
        Most steps of the local search on all pixels, in place of the effort's.
    gain, offset : bool
        Whether an image has a gain g ≥ 0 and an offset b of its own: the distance is then that of
        u to g·U_λ(p) + b at the best ones, whatever the image's contrast and background.
    sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
        True where a pixel counts. Pixels that are NaN never count.
    loss : {"squared", "huber", "student-t"} or loss
        What residuals cost: their squares, or less where they are large, so that outlying pixels
        count little. The scale of ordinary residuals, unless the loss has one, is estimated from
        some of the images.
    prior : dict or Prior, optional
        Which λ are likely, such as ``{"theta": (0, 0.2)}`` with mean and standard deviation: a
        Gaussian on shifts, one on the logarithm of scales, von Mises on angles. What λ costs under
        it is added to the squared distance, in units of the variance of a pixel's noise. With a
        list of patterns it may be a list, too.
    uncertainty : bool
        Also tell the covariance of λ, and look for all poses that are as good as the best one.
        λ stays what it is without. Takes about three times as long.

    Returns
    -------
    Projection
        With ``parameters``, ``distances``, ``status`` and more.

    Examples
    --------
    >>> from patternfold import manifold
    >>> p = Pattern([1.0, -1.0], [[0.0, 0.2, 0.0, 0.3, 0.1], [0.5, -0.2, 0.1, 0.1, 0.2]])
    >>> image = manifold.render(p, [[2.0, 0.1, -0.2]], "rotation-translation", (24, 24))
    >>> found = project(p, image, "rotation-translation")
    >>> found.parameters.round(4).tolist()
    [[2.0, 0.1, -0.2]]
    """
    family = as_transformation(transformation)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    how = _effort(effort, n_candidates, max_iter, start is None)
    patterns = [pattern] if isinstance(pattern, Pattern) else list(pattern)
    if not patterns or not all(isinstance(p, Pattern) for p in patterns):
        raise TypeError(f"pattern must be a Pattern or a list of them; got {pattern!r}.")
    amplitude = Amplitude.of_patterns(patterns)
    # Small numbers are turned into floats on the device.
    rows, shape = as_images(images, image_shape, finite=False, small=not amplitude.exponent)
    dtype, grid = working_dtype(rows), Grid(*shape)
    rows = rows.astype(dtype, copy=False) if rows.dtype.kind == "f" else rows
    priors = as_priors(prior, family, len(patterns), grid.pixel)
    task = Task(
        [amplitude.lowered_pattern(p) for p in patterns],
        family,
        grid,
        Lighting(bool(gain), bool(offset)),
        amplitude.lowered_loss(as_loss(loss)),
        [amplitude.lowered_prior(p) for p in priors],
        method,
        how,
        _starts(start, len(rows), len(patterns), family.parameters, dtype),
        None if sample_mask is None else as_mask(sample_mask, rows.shape),
        with_bank=bool(n_candidates),
        all_poses=uncertainty,
    )
    spread = None
    with precision(dtype):
        found, distances = in_range(task.search, rows, amplitude)
        if uncertainty:
            spread = task.covariances(amplitude.lowered(rows), found).astype(rows.dtype)
    return _told(found, distances, spread, family.parameters.names, isinstance(pattern, Pattern))


def _told(
    found: Found,
    distances: np.ndarray,
    spread: np.ndarray | None,
    names: tuple[str, ...],
    single: bool,
) -> Projection:
    """What was found, in words; for a single pattern without the axis of patterns."""
    modes = np.sqrt(found.mode_squares)

    def of(part: Any) -> Any:
        return part[:, 0] if single and part is not None else part

    return Projection(
        of(found.lam),
        of(distances),
        of(_WORDS[found.status]),
        names,
        of(found.gain),
        of(found.offset),
        second=of(found.modes[:, :, 1]),
        second_distances=of(modes[:, :, 1]),
        modes=of(found.modes),
        mode_distances=of(modes),
        n_modes=of(found.n_modes),
        covariance=of(spread),
    )


def _effort(
    effort: str | Effort,
    n_candidates: int | None,
    max_iter: int | None,
    globally: bool,
) -> Effort:
    """Return the effort asked for, with some of it replaced."""
    how = as_effort(effort)
    for name, value, least in (
        ("n_candidates", n_candidates, int(globally)),
        ("max_iter", max_iter, 1),
    ):
        if value is not None and (not isinstance(value, (int, np.integer)) or value < least):
            raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    if n_candidates:
        how = replace(how, n_candidates=int(n_candidates), again=None)
    if max_iter is None:
        return how if globally else replace(how, max_iter=LOCAL_STEPS)
    return replace(how, max_iter=int(max_iter))


def _starts(
    start: Any, n_images: int, n_patterns: int, box: Box, dtype: np.dtype
) -> np.ndarray | None:
    """Check ``start`` and give it the shape (N, M, d)."""
    if start is None:
        return None
    flat = as_parameters("start", np.reshape(start, (-1, np.shape(start)[-1])), box.names)
    if len(flat) != n_images * n_patterns:
        raise ValueError(
            f"start has shape {np.shape(start)}; expected one row of {box.dim} parameters for "
            f"each of {n_images} images"
            + (f" and {n_patterns} patterns." * (n_patterns > 1) or ".")
        )
    return box.put_inside(flat).astype(dtype).reshape(n_images, n_patterns, box.dim)
