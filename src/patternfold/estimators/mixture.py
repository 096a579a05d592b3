"""`PatternMixture`: several patterns in one set of images, as a scikit-learn clusterer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import (
    ImageEstimator,
    Pixels,
    as_weights,
    distinct_rows,
    pixels_of,
)
from patternfold.estimators.mixture_options import check_mixture, mixture_settings
from patternfold.estimators.options import family_of, lighting_of, transformation_of
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.coarse import coarsened
from patternfold.learning.mixture.mixture import Assigned, Mixture, learn_mixture
from patternfold.learning.mixture.outliers import usual_limits
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.learning.project import align
from patternfold.learning.state import Progress
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.grid import Grid
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.precision import precision

OUTLIER = -1
"""Label of images that fit no group."""


@dataclass(frozen=True)
class Assignment:
    """Where images belong.

    Attributes
    ----------
    labels : array of shape (N,)
        Group of each image, −1 for those that fit none.
    parts : array of shape (N,)
        The part of that group that fits it best, an index into ``parts_``.
    parameters : array of shape (N, d)
        λ on that part's manifold.
    distances : array of shape (N,)
        ‖u − g·U_λ(p) − b‖ there.
    confidence : array of shape (N,)
        How much of the image belongs to its group, from 1/G to 1.
    runner_up : array of shape (N,)
        The group it belongs to next; its own where there is no other.
    gain, offset : arrays of shape (N,)
        g and b of the image.
    """

    labels: np.ndarray
    parts: np.ndarray
    parameters: np.ndarray
    distances: np.ndarray
    confidence: np.ndarray
    runner_up: np.ndarray
    gain: np.ndarray
    offset: np.ndarray


class PatternMixture(ClusterMixin, TransformerMixin, ImageEstimator):
    """Sort unaligned images into kinds, and learn the patterns of each.

    Many *parts* are learned first: each image belongs to the parts that fit it best in any pose,
    and each part is the mean of its aligned images. Parts of one kind share images, so that they
    are then merged into groups where the graph of shared images falls apart. A kind may be no
    single pattern: its group has as many as it needs. In the end each part is written as a pattern
    of atoms; images are compared with the means themselves.

    Parameters
    ----------
    n_patterns : int or "auto", default=10
        Number of groups. "auto" takes as many as the graph of shared images falls apart into, one
        if it does not.
    n_parts : int or "auto", default="auto"
        Number of parts; by default one for 25 images, more where there are few images, at most 40
        for each group.
    n_atoms : int, default=8
        Atoms of each part.
    transformation, mother, dictionary, bounds
        As in `PATS`.
    flexible : bool, default=True
        Whether images are compared with parts up to small smooth displacements and the width of
        strokes, which a transformation does not tell. Poses and distances are without them.
    outliers : bool, default=False
        Whether images that fit no group are labelled −1: those whose misfit is far above what is
        usual in their group. Parts of a single image are then given up.
    gain : bool, default=True
        Whether each image has a gain of its own, as in `PATS`: images are compared by their shape,
        whatever their contrast.
    offset : bool, default=False
        Whether each image has an offset of its own.
    max_iter : int, default=12
        Passes over the images in which parts are learned.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.
    random_state : int, RandomState or None, default=None
        Seed for the images that parts begin with.
    callback : callable, optional
        Called with a `Progress` after each pass; return True to end the passes.
    verbose : int, default=0
        Print progress to standard error.

    Attributes
    ----------
    labels_ : array of shape (N,)
        Group of each training image, 0 for the largest; −1 for outliers.
    patterns_ : list of Pattern
        One for each group: its part with the most images.
    parts_ : list of Pattern
        All parts.
    part_labels_ : array
        Group of each part.
    proportions_ : array
        Share of the images in each group.
    outlier_share_ : float
        Share of the images in none.
    parameters_ : array of shape (N, d)
        λ of the training images on their own parts.
    assignment_ : Assignment
        All that is known of the training images.
    merge_tree_ : array of shape (parts − 1, 4)
        How parts were merged, as `scipy.cluster.hierarchy.linkage` tells it.
    eigenvalues_ : array
        Leading eigenvalues of the graph of shared images; as many near 1 as there are groups that
        share nothing, and a gap after them.
    error_path_ : array
        Mean misfit after each pass: the share of an image's energy that is left over, or without
        gains the square.
    n_iter_ : int
        Number of passes.
    stop_reason_ : str
        Why learning stopped.
    image_shape_, transformation_, n_features_in_
        As in `PATS`.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import Pattern, PatternMixture, datasets
    >>> bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.1]])
    >>> dot = Pattern([1.0], [[0.0, 0.0, 0.0, 0.2, 0.2]])
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([datasets.random_images(p, 12, rng, "rotation-translation",
    ...                                            shape=(16, 16))[0] for p in (bar, dot)])
    >>> model = PatternMixture(2, n_atoms=2, transformation="rotation-translation", random_state=0)
    >>> labels = model.fit_predict(X)
    >>> bool(len(set(labels[:12])) == 1 and len(set(labels)) == 2)
    True
    """

    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        n_patterns: int | str = 10,
        *,
        n_parts: int | str = "auto",
        n_atoms: int = 8,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        mother: str | AbstractMother = "gaussian",
        dictionary: str | AbstractDictionary | None = None,
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        flexible: bool = True,
        outliers: bool = False,
        gain: bool = True,
        offset: bool = False,
        max_iter: int = 12,
        image_shape: tuple[int, int] | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
        verbose: int = 0,
    ):
        self.n_patterns = n_patterns
        self.n_parts = n_parts
        self.n_atoms = n_atoms
        self.transformation = transformation
        self.mother = mother
        self.dictionary = dictionary
        self.bounds = bounds
        self.flexible = flexible
        self.outliers = outliers
        self.gain = gain
        self.offset = offset
        self.max_iter = max_iter
        self.image_shape = image_shape
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_mask: Any = None
    ) -> PatternMixture:
        """Learn the parts and their groups.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W)
            Images u_i.
        y : ignored
        sample_weight : array of shape (N,), optional
            Weights w_i ≥ 0 of the images.
        sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
            True where a pixel counts; NaN never does.
        """
        with fitting(self):
            check_mixture(self)
            pixels = pixels_of(self, X, sample_mask, reset=True)
            weights = as_weights(sample_weight, len(pixels.rows))
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            amplitude = Amplitude.of_images("X", pixels.rows)
            with precision(pixels.rows.dtype):
                problem, place = self._problem(pixels.lowered(amplitude), weights)
                settings = mixture_settings(self, len(problem.observations), seed)
                learned = learn_mixture(problem, settings, self._report(problem))
            self.parts_: list[Pattern] = [amplitude.raised_pattern(p) for p in learned.patterns]
            self._store_mixture(learned.mixture, amplitude)
            self.transformation_ = problem.transformation
            self.merge_tree_, self.eigenvalues_ = learned.merged.tree, learned.merged.eigenvalues
            self.error_path_ = np.array(learned.path)
            self.n_iter_ = len(learned.path)
            self.stop_reason_ = learned.reason
            self._store_images(learned.assigned, problem, pixels, weights, place)
        return self

    def predict(self, X: Any, sample_mask: Any = None) -> np.ndarray:
        """Return the group of each image, −1 for those that fit none."""
        return self.assign(X, sample_mask).labels

    def assign(self, X: Any, sample_mask: Any = None) -> Assignment:
        """Return the group, part, pose, distance and confidence of each image."""
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        with precision(pixels.rows.dtype):
            images, scale = self._observations(pixels)
            found = self.mixture_.assign(images)
            return self._assignment(found, images.squares, scale)

    def transform(self, X: Any, sample_mask: Any = None) -> np.ndarray:
        """Return the distance ‖u − g·U_λ(p) − b‖ of each image to every group, shape (N, G).

        It is that to the group's best part, without small displacements.
        """
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        with precision(pixels.rows.dtype):
            images, scale = self._observations(pixels)
            squares = self.mixture_.group_squares(images)
        return (scale * np.sqrt(squares)).astype(pixels.rows.dtype)

    def align(self, X: Any, sample_mask: Any = None, **options: Any) -> np.ndarray:
        """Return images resampled in the frames of their own parts, shape (N, H, W).

        Options, such as ``interpolation="cubic"``, go to `patternfold.align`.
        """
        found = self.assign(X, sample_mask)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        rows, offset = pixels.rows, found.offset[:, None].astype(pixels.rows.dtype)
        if pixels.counted is not None:
            rows = np.where(pixels.counted, rows, offset)
        options |= {"image_shape": self.image_shape_}
        aligned = align(rows - offset, found.parameters, self.transformation_, **options)
        return aligned + offset[:, :, None]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return 1 − Σ w d² / Σ w‖u‖²: the share of the images' energy that their parts explain."""
        check_is_fitted(self)
        pixels = pixels_of(self, X, None, reset=False)
        weights = as_weights(sample_weight, len(pixels.rows))
        with precision(pixels.rows.dtype):
            images, _ = self._observations(pixels)
            found, squares = self.mixture_.assign(images), images.squares
        total = (weights * squares).sum()
        return float(1 - (weights * found.square).sum() / total) if total else 1.0

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `patternfold.load` reads."""
        from patternfold.persistence import save

        save(self, path)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the distances: pattern0, pattern1, ..."""
        check_is_fitted(self)
        return np.array([f"pattern{g}" for g in range(len(self.patterns_))], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return len(self.patterns_)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def mixture_(self) -> Mixture:
        """Parts and groups, in the unit that images are compared in."""
        return Mixture(
            self._pictures, self.part_labels_, self.transformation_, self.temperature_, self.noise_
        )

    def _problem(self, pixels: Pixels, weights: np.ndarray) -> tuple[Problem, np.ndarray]:
        """Return the images to learn from, and the place of each of the user's among them."""
        index, summed, place = distinct_rows(pixels, weights)
        images = pixels.take(index)
        if images.blank(self.offset).all():
            raise ValueError(
                "All images with positive weight are blank: there is no pattern to learn."
            )
        if not isinstance(self.n_patterns, str) and self.n_patterns > len(index):
            raise ValueError(
                f"n_patterns={self.n_patterns} but only n_samples={len(index)} of the images in X "
                "differ. Ask for fewer patterns, or for 'auto'."
            )
        grid, lighting = Grid(*self.image_shape_), lighting_of(self)
        put = Observations.put(images.rows, grid, summed, images.counted, lighting=lighting)
        smaller = coarsened(put)
        put = put if smaller is None else smaller
        return Problem(put, transformation_of(self), family_of(self)), place

    def _observations(self, pixels: Pixels) -> tuple[Observations, float]:
        """Images in the unit of the parts, on few pixels; what distances are to be raised by."""
        unit = Amplitude(self._exponent)
        rows, counted = pixels.lowered(unit)
        grid = Grid(*self.image_shape_)
        images = Observations.put(rows, grid, pixel_weights=counted, lighting=lighting_of(self))
        smaller = coarsened(images)
        images = images if smaller is None else smaller
        pixels_each = grid.n_pixels / images.grid.n_pixels
        return images, float(np.ldexp(np.sqrt(pixels_each), unit.exponent))

    def _store_mixture(self, mixture: Mixture, amplitude: Amplitude) -> None:
        """Set what images are compared with."""
        self._exponent, self._pictures = amplitude.exponent, mixture.pictures
        self.part_labels_ = mixture.groups
        self.temperature_, self.noise_ = mixture.temperature, mixture.noise

    def _store_images(
        self,
        found: Assigned,
        problem: Problem,
        pixels: Pixels,
        weights: np.ndarray,
        place: np.ndarray,
    ) -> None:
        """Set what is known of the training images, in the user's order."""
        images, n_groups = problem.observations, int(self.part_labels_.max()) + 1
        self.limits_ = np.full(n_groups, np.inf)
        if self.outliers:
            left = found.square / np.maximum(images.squares, np.finfo(np.float64).tiny)
            self.limits_ = usual_limits(left, found.group, n_groups)
        size = np.bincount(found.part, images.weights, len(self.parts_))
        self.patterns_: list[Pattern] = []
        for g in range(n_groups):
            own = np.flatnonzero(self.part_labels_ == g)
            self.patterns_.append(self.parts_[own[np.argmax(size[own])]])
        if (place >= 0).all():
            group, part, lam, square, gain, offset, share = (v[place] for v in found[:7])
            chosen = Assigned(group, part, lam, square, gain, offset, share, found.near)
            pixels_each = np.prod(self.image_shape_) / images.grid.n_pixels
            scale = float(np.ldexp(np.sqrt(pixels_each), self._exponent))
            self.assignment_ = self._assignment(chosen, images.squares[place], scale)
        else:  # images without weight took no part; they belong somewhere all the same
            with precision(pixels.rows.dtype):
                images, scale = self._observations(pixels)
                self.assignment_ = self._assignment(
                    self.mixture_.assign(images), images.squares, scale
                )
        self.labels_ = self.assignment_.labels
        self.parameters_ = self.assignment_.parameters
        inside = self.labels_ >= 0
        shares = np.bincount(self.labels_[inside], weights[inside], n_groups) / weights.sum()
        self.proportions_ = shares
        self.outlier_share_ = float(weights[~inside].sum() / weights.sum())

    def _assignment(self, found: Assigned, squares: np.ndarray, scale: float) -> Assignment:
        """What is found of images, in the user's unit."""
        left = found.square / np.maximum(squares, np.finfo(np.float64).tiny)
        labels = np.where(left > self.limits_[found.group], OUTLIER, found.group)
        rows = np.arange(len(labels))
        others = found.share.copy()
        others[rows, found.group] = -1
        return Assignment(
            labels,
            found.part,
            found.lam,
            scale * np.sqrt(found.square),
            found.share[rows, found.group],
            others.argmax(axis=1) if others.shape[1] > 1 else found.group,
            found.gain,
            np.ldexp(found.offset, self._exponent),
        )

    def _report(self, problem: Problem) -> Callable[[str, float], bool]:
        """Return what tells the user of each pass."""
        count = len(problem.observations)

        def tell(stage: str, misfit: float) -> bool:
            if self.verbose:
                line = f"{stage}: {count} images, misfit {misfit:.4f}"
                print(line, file=sys.stderr, flush=True)
            if self.callback is None:
                return False
            return self.callback(Progress(count, 0, 0, misfit, 0.0, stage)) is True

        return tell
