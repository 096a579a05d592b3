"""What a search has found, and how it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from patternfold.model.box import Box

CONVERGED, BOUND, DEGENERATE, BLANK, EMPTY, UNFINISHED, AMBIGUOUS = range(7)
"""How a search ended; `STATUS` in project.py has the words, in this order."""

SAME_POSE = 0.02
"""Ends that differ by less than this share of the box in every parameter are one."""

MODES = 6
"""Most poses of an image that are told, the best one among them."""


class Found(NamedTuple):
    """λ*, the squared distance, how the search ended, and the misfit, by image and pattern.

    The misfit is the share of the image's energy that is left over, white noise not counted. Gain
    and offset are those of the image at λ*. ``modes`` are the best ends that are different poses,
    λ* first, no number where there is none, and ``mode_squares`` their squared distances; the first
    ``n_modes`` are as good as λ* within the noise. Arrays of JAX inside a stage, of NumPy outside.
    """

    lam: Float[Any, "B M d"]
    square: Float[Any, "B M"]
    status: Int[Any, "B M"]
    misfit: Float[Any, "B M"]
    gain: Float[Any, "B M"]
    offset: Float[Any, "B M"]
    modes: Float[Any, "B M P d"]
    mode_squares: Float[Any, "B M P"]
    n_modes: Int[Any, "B M"]

    @classmethod
    def undescribed(cls, lam: np.ndarray, square: np.ndarray) -> Found:
        """Return ends of which no more is known, outside a stage."""
        none = np.zeros_like(square)
        modes = np.full((*square.shape, MODES, lam.shape[-1]), np.nan, lam.dtype)
        mode_squares = np.full((*square.shape, MODES), np.inf, square.dtype)
        modes[:, :, 0], mode_squares[:, :, 0] = lam, square
        status, single = (np.full(square.shape, n, np.int8) for n in (UNFINISHED, 1))
        return cls(lam, square, status, none, none + 1, none, modes, mode_squares, single)

    def with_modes(self, other: Found, box: Box) -> Found:
        """Return the same ends with the poses that another search, outside a stage, came upon.

        λ* itself comes first, in place of what that search has made of it.
        """
        apart = box.separation(other.modes, self.lam[:, :, None])
        apart = np.nan_to_num(apart, nan=np.inf)
        own = apart.argmin(axis=-1)[..., None]
        order = np.argsort(np.arange(apart.shape[-1]) != own, axis=-1, kind="stable")
        modes = np.take_along_axis(other.modes, order[..., None], axis=2)
        squares = np.take_along_axis(other.mode_squares, order, axis=2)
        known = apart.min(axis=-1) < SAME_POSE
        modes[known, 0], squares[known, 0] = self.lam[known], self.square[known]
        sure = np.isin(self.status, (CONVERGED, BOUND, UNFINISHED))
        status = np.where(sure & (other.n_modes > 1), AMBIGUOUS, self.status)
        return self._replace(
            status=status, modes=modes, mode_squares=squares, n_modes=other.n_modes
        )
