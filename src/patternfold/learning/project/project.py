"""Projection of images on pattern transformation manifolds: λ* = argmin ‖u − U_λ(p)‖ over Λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from patternfold._validation import as_images, as_parameters, unknown_name
from patternfold.learning.project.search import Found, Search
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.model.manifold import render
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.precision import precision, working_dtype

METHODS = ("levenberg-marquardt", "line-search")

QUICK, THOROUGH = 6, 300
"""Candidates per image that will do for images of the pattern, and for images of something else."""

MISFIT = 0.1
"""Share of an image's energy that a residual with structure may have and still be a match."""

STATUS = {
    "converged": "The search ended at a minimum inside the box.",
    "bound": "The search ended with some parameter on a bound of the box.",
    "degenerate": "Some change of the parameters leaves the image as it is (a symmetric pattern, "
    "or one outside the window): the pose is not unique.",
    "blank": "The image is blank, so that its pose says nothing.",
    "empty": "The pattern has no atoms, so that every pose is as good; the identity is given.",
    "max-iter": "The search stopped at max_iter steps; the distance may still shrink.",
}
"""What each status of a projection means."""


@dataclass(frozen=True)
class Projection:
    """Where images lie on a manifold.

    Attributes
    ----------
    parameters : array of shape (N, d), or (N, M, d) for a list of M patterns
        λ*, in the order of ``names``.
    distances : array of shape (N,) or (N, M)
        ‖u − U_λ*(p)‖.
    status : array of str of shape (N,) or (N, M)
        How each search ended; `STATUS` explains the words.
    names : tuple of str
        Parameter names.
    """

    parameters: np.ndarray
    distances: np.ndarray
    status: np.ndarray
    names: tuple[str, ...]

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
    n_candidates: int | None = None,
    max_iter: int = 30,
) -> Projection:
    """Find the point of the manifold M(p) that is nearest to each image.

    The search is global: a grid over Λ gives several candidates per image, each is improved,
    and the best end point is kept. From known λ (``start``) it is local.

    Parameters
    ----------
    pattern : Pattern or list of Pattern
        p. With a list, every image is projected on every manifold.
    images : array of shape (N, H, W) or (N, H·W)
        u_i.
    transformation : str or transformation
        The family a(λ, x, y) with its box Λ.
    image_shape : (H, W), optional
        Shape of flattened images.
    start : array of shape (N, d) or (N, M, d), optional
        Known λ, to be improved in their neighbourhood.
    method : {"levenberg-marquardt", "line-search"}
        How candidates are improved; "line-search" is the paper's: from the best point of the
        grid along each dimension in turn.
    n_candidates : int, optional
        Candidates per image from the grid, besides ``start``. By default none with ``start``;
        without it 6, enough for images of the pattern, noisy or not, and then 300 for those
        images that it fits badly: images of something similar have many local optima of nearly
        the same distance. Give 6 to do without this second search, which takes about twenty times
        as long as the first.
    max_iter : int, default=30
        Most steps of the local search.

    Returns
    -------
    Projection
        With ``parameters``, ``distances`` and ``status``.

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
    twice = n_candidates is None and start is None and method != "line-search"
    if n_candidates is None:
        n_candidates = QUICK if start is None else 0
    for name, value, least in (
        ("n_candidates", n_candidates, int(start is None)),
        ("max_iter", max_iter, 1),
    ):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    patterns = [pattern] if isinstance(pattern, Pattern) else list(pattern)
    if not patterns or not all(isinstance(p, Pattern) for p in patterns):
        raise TypeError(f"pattern must be a Pattern or a list of them; got {pattern!r}.")
    rows, shape = as_images(images, image_shape)
    rows = rows.astype(working_dtype(rows), copy=False)
    starts = _starts(start, len(rows), len(patterns), family.parameters, rows.dtype)
    search = Search(family, Grid(*shape), method, n_candidates, max_iter)
    with precision(rows.dtype):
        found = [search(p, rows, s) for p, s in zip(patterns, starts, strict=True)]
        if twice:
            found = [
                _search_again(search, p, rows, f) for p, f in zip(patterns, found, strict=True)
            ]
    parameters, distances, status = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    if isinstance(pattern, Pattern):
        parameters, distances, status = parameters[:, 0], distances[:, 0], status[:, 0]
    return Projection(parameters, distances, status, family.parameters.names)


def _starts(
    start: Any, n_images: int, n_patterns: int, box: Box, dtype: np.dtype
) -> list[np.ndarray | None]:
    """Check ``start`` and split it by pattern."""
    if start is None:
        return [None] * n_patterns
    flat = as_parameters("start", np.reshape(start, (-1, np.shape(start)[-1])), box.names)
    if len(flat) != n_images * n_patterns:
        raise ValueError(
            f"start has shape {np.shape(start)}; expected one row of {box.dim} parameters for "
            f"each of {n_images} images"
            + (f" and {n_patterns} patterns." * (n_patterns > 1) or ".")
        )
    flat = box.put_inside(flat).astype(dtype).reshape(n_images, n_patterns, box.dim)
    return [flat[:, m] for m in range(n_patterns)]


def _search_again(search: Search, pattern: Pattern, images: np.ndarray, found: Found) -> Found:
    """Search at length for the images that the pattern does not fit."""
    if not pattern.n_atoms:
        return found
    misfit = np.flatnonzero(structured_residual(search, pattern, images, found.lam) > MISFIT)
    if not len(misfit):
        return found
    thorough = replace(search, n_candidates=THOROUGH)
    again = thorough(pattern, images[misfit], found.lam[misfit])
    better = again.distance < found.distance[misfit]
    whole = Found(*(part.copy() for part in found))
    for part, new in zip(whole, again, strict=True):
        part[misfit[better]] = new[better]
    return whole


def structured_residual(
    search: Search, pattern: Pattern, images: np.ndarray, lam: np.ndarray
) -> np.ndarray:
    """Share of each image's energy that is left over at λ, white noise not counted.

    Products of neighbouring pixels, which noise leaves near 0 on average, stand for the squares.
    """
    rendered = render(pattern, lam, search.transformation, search.grid, check=False)
    w = (images - rendered).reshape(-1, *search.grid.shape)
    across, down = (w[:, :, 1:] * w[:, :, :-1]).sum((1, 2)), (w[:, 1:] * w[:, :-1]).sum((1, 2))
    energy = (images**2).sum(axis=1)
    return (across + down) / 2 / np.maximum(energy, np.finfo(images.dtype).tiny)
