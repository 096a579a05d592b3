"""Patterns from aligned images by matching pursuit."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.baselines.pursuit import Pursued, pursue, shared_energy
from patternfold.baselines.sampled_dictionary import SampledDictionary, sampled_dictionary
from patternfold.estimators.images import ImageEstimator, rows_of
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern


class PursuitEstimator(ImageEstimator):
    """What all pursuits share: the options of the sampled dictionary, and one run over it."""

    def __init__(
        self,
        n_atoms: int = 20,
        *,
        mother: str | AbstractMother = "gaussian",
        step: float = 1.0,
        n_widths: int = 5,
        n_angles: int = 8,
        image_shape: tuple[int, int] | None = None,
    ):
        self.n_atoms = n_atoms
        self.mother = mother
        self.step = step
        self.n_widths = n_widths
        self.n_angles = n_angles
        self.image_shape = image_shape

    def _dictionary(self) -> SampledDictionary:
        if not isinstance(self.n_atoms, (int, np.integer)) or self.n_atoms < 1:
            raise ValueError(f"n_atoms={self.n_atoms!r} must be an integer of at least 1.")
        return sampled_dictionary(
            self.image_shape_,
            step=self.step,
            n_widths=self.n_widths,
            n_angles=self.n_angles,
            mother=self.mother,
        )


class MatchingPursuit(PursuitEstimator):
    r"""Approximate the average one of aligned images: "MP on average pattern" of the paper.

    The image nearest the centroid is approximated by matching pursuit over a redundant sampling
    of the dictionary manifold. Coefficients never change, so that the first k atoms of
    ``pattern_``, ``pattern_.take(slice(k))``, are the pattern after k atoms.

    Parameters
    ----------
    n_atoms : int, default=20
        Number of atoms K.
    mother : str or mother function, default="gaussian"
        φ.
    step, n_widths, n_angles
        As in `sampled_dictionary`.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.

    Attributes
    ----------
    pattern_ : Pattern
        The pattern p.
    reference_ : int
        Index of the average image.
    error_path_ : array of shape (K,)
        ‖r‖² / ‖u‖² of that image after each atom.
    image_shape_, n_features_in_
        As in `patternfold.PATS`.

    References
    ----------
    S. Mallat and Z. Zhang, Matching pursuits with time-frequency dictionaries, IEEE Transactions
    on Signal Processing, 1993.

    Examples
    --------
    >>> from patternfold import Pattern
    >>> bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.2]]).render((16, 16))
    >>> model = MatchingPursuit(3).fit(bar[None])
    >>> bool(model.error_path_[-1] < 0.05)
    True
    """

    pattern_: Pattern

    def fit(self, X: Any, y: Any = None) -> MatchingPursuit:
        """Choose the average image among aligned images, (N, H, W) or (N, H·W), and its atoms."""
        rows = rows_of(self, X, reset=True)
        distance = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
        self.reference_ = int(distance.argmin())
        image = rows[[self.reference_]]
        dictionary = self._dictionary()
        pursued = pursue(dictionary, image, self.n_atoms, shared_energy)
        self.pattern_ = mean_pattern(dictionary, pursued)
        self.error_path_ = error_path(pursued, image)
        return self


class SimultaneousMatchingPursuit(PursuitEstimator):
    r"""Approximate all aligned images with the same atoms: "SMP on aligned patterns".

    Each atom is the one that takes most from all residuals, max Σ_i ⟨r_i, φ⟩², with a coefficient
    for every image; the pattern weighs it with their average. As in `MatchingPursuit`, the first k
    atoms are the pattern after k atoms.

    Parameters
    ----------
    n_atoms, mother, step, n_widths, n_angles, image_shape
        As in `MatchingPursuit`.

    Attributes
    ----------
    pattern_ : Pattern
        The pattern p, with averaged coefficients.
    error_path_ : array of shape (K,)
        Σ‖r_i‖² / Σ‖u_i‖² after each atom, every image with its own coefficients.
    image_shape_, n_features_in_
        As in `patternfold.PATS`.

    References
    ----------
    R. Sala Llonch, E. Kokiopoulou, I. Tošić and P. Frossard, 3D face recognition with sparse
    spherical representations, Pattern Recognition, 2010.
    """

    pattern_: Pattern

    def fit(self, X: Any, y: Any = None) -> SimultaneousMatchingPursuit:
        """Choose atoms for aligned images, (N, H, W) or (N, H·W)."""
        rows = rows_of(self, X, reset=True)
        dictionary = self._dictionary()
        pursued = pursue(dictionary, rows, self.n_atoms, shared_energy)
        self.pattern_ = mean_pattern(dictionary, pursued)
        self.error_path_ = error_path(pursued, rows)
        return self


def mean_pattern(dictionary: SampledDictionary, pursued: Pursued) -> Pattern:
    """Weigh the chosen atoms with their average coefficients."""
    return dictionary.pattern(pursued.coef.mean(axis=0), pursued.chosen)


def error_path(pursued: Pursued, images: np.ndarray) -> np.ndarray:
    """Σ‖r_i‖² / Σ‖u_i‖² after each atom; blank images have nothing left."""
    energy = float((images.astype(np.float64) ** 2).sum())
    return pursued.squares / energy if energy else np.zeros(len(pursued.squares))
