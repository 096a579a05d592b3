"""What a learned pattern is good for: poses, distances and aligned images of new pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import as_parameters
from patternfold.estimators.images import (
    ImageEstimator,
    Pixels,
    as_weights,
    pixels_of,
    pixels_to_project,
)
from patternfold.estimators.options import lighting_of
from patternfold.estimators.remarks import Evidence, Remark, remarks_on
from patternfold.estimators.saving import SavingMixin
from patternfold.estimators.streams import in_blocks
from patternfold.estimators.symmetric import learned_symmetry
from patternfold.learning.effort import Effort
from patternfold.learning.observations import Observations
from patternfold.learning.project import Projection, align, project
from patternfold.model import manifold
from patternfold.model.grid import Grid
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.matrices import matrices, require_affine
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.symmetry import Symmetry
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.precision import precision


class LearnedPattern(SavingMixin, TransformerMixin, ImageEstimator):
    """An estimator that has learned one pattern; how it has is left to others."""

    takes_missing: ClassVar[bool] = True

    gain: bool
    offset: bool
    pattern_: Pattern
    transformation_: AbstractTransformation
    loss_: AbstractLoss = SQUARES
    prior_: Prior | None = None
    error_path_: np.ndarray
    n_iter_: int
    stop_reason_: str

    def transform(
        self, X: Any, effort: str | Effort = "normal", sample_mask: Any = None
    ) -> np.ndarray:
        """Return λ of images, shape (N, d): their projections on the manifold."""
        return self.project(X, effort, sample_mask).parameters

    def distances(
        self, X: Any, effort: str | Effort = "normal", sample_mask: Any = None
    ) -> np.ndarray:
        """Return ‖u − U_λ(p)‖ of images, shape (N,): their distances to the manifold."""
        return self.project(X, effort, sample_mask).distances

    @in_blocks
    def project(
        self,
        X: Any,
        effort: str | Effort = "normal",
        sample_mask: Any = None,
        uncertainty: bool = False,
    ) -> Projection:
        """Project images on the manifold: λ, distances and how each search ended.

        The options are those of `patternfold.project`.
        """
        check_is_fitted(self)
        return self._project(pixels_to_project(self, X, sample_mask), effort, uncertainty)

    def _project(
        self, pixels: Pixels, effort: str | Effort = "normal", uncertainty: bool = False
    ) -> Projection:
        return project(
            self.pattern_,
            pixels.rows,
            self.transformation_,
            image_shape=self.image_shape_,
            effort=effort,
            gain=self.gain,
            offset=self.offset,
            sample_mask=pixels.counted,
            loss=self.loss_,
            prior=self.prior_,
            uncertainty=uncertainty,
        )

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Render the pattern for given λ, shape (N, d): images shaped as those of `fit`."""
        check_is_fitted(self)
        lam = as_parameters("X", X, self.transformation_.parameters.names)
        images = manifold.render(self.pattern_, lam, self.transformation_, Grid(*self.image_shape_))
        return images.reshape(len(lam), *self.image_shape_) if self._stacked else images

    @in_blocks
    def align(
        self,
        X: Any,
        effort: str | Effort = "normal",
        sample_mask: Any = None,
        **options: Any,
    ) -> np.ndarray:
        """Return images resampled in the pattern's frame, shape (N, H, W).

        What lies outside an image, and pixels that do not count, have its own offset. Options,
        such as ``interpolation="cubic"``, go to `patternfold.align`.
        """
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        return self._align(pixels, self._project(pixels, effort), **options)

    def _align(self, pixels: Pixels, found: Projection, **options: Any) -> np.ndarray:
        """Resample images whose poses are known."""
        rows, offset = pixels.rows, found.offset[:, None].astype(pixels.rows.dtype)
        if pixels.counted is not None:
            rows = np.where(pixels.counted, rows, offset)
        options |= {"image_shape": self.image_shape_}
        aligned = align(rows - offset, found.parameters, self.transformation_, **options)
        return aligned + offset[:, :, None]

    def matrices(
        self, X: Any, effort: str | Effort = "normal", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the matrices that take images into the pattern's frame, shape (N, 2, 3).

        They are in pixels, as OpenCV takes them: see `patternfold.matrices`.
        """
        check_is_fitted(self)
        require_affine(self.transformation_)
        return matrices(
            self.transform(X, effort, sample_mask), self.transformation_, self.image_shape_
        )

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_mask: Any = None
    ) -> float:
        """Return 1 − Σ w d²(u, M(p)) / Σ w‖u‖²: the share of the images' energy explained.

        Where images have offsets of their own, ‖u‖ is their norm about the mean.
        """
        check_is_fitted(self)
        rows, counted = pixels_of(self, X, sample_mask, reset=False)
        distances = self._project(Pixels(rows, counted)).distances.astype(np.float64)
        weights = as_weights(sample_weight, len(distances))
        with precision(np.dtype(np.float64)):
            square = Observations.put(
                rows.astype(np.float64),
                Grid(*self.image_shape_),
                pixel_weights=counted,
                lighting=lighting_of(self),
            ).squares
        return float(1 - (weights * distances**2).sum() / (weights * square).sum())

    def examine(
        self,
        X: Any,
        effort: str | Effort = "normal",
        sample_mask: Any = None,
        *,
        names: Sequence[str] | None = None,
        uncertainty: bool = False,
    ) -> Evidence:
        """Project images and return what `remarks` looks at: errors, baseline, spread, misfits."""
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        found = self._project(pixels, effort, uncertainty)
        return Evidence(self, pixels.rows, found, pixels.counted, names)

    def remarks(
        self, X: Any = None, *, names: Sequence[str] | None = None, sample_mask: Any = None
    ) -> list[Remark]:
        """Return what is worth a second look, as sentences with a code; none is good news.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W), optional
            Images, usually those of `fit`, for checks that look at them: a spread that grew,
            strangers, blank pictures, light and dark exchanged, two groups, two poses.
        names : sequence of str, optional
            Names of the images.
        sample_mask : array, optional
            As in `fit`.
        """
        check_is_fitted(self)
        if X is None:
            return remarks_on(self, None)
        return remarks_on(self, self.examine(X, names=names, sample_mask=sample_mask))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the transformation parameters."""
        check_is_fitted(self)
        return np.array(self.transformation_.parameters.names, dtype=object)

    @property
    def symmetry_(self) -> Symmetry:
        """Turns and mirrors that leave the pattern as it is, as far as its error allows to tell."""
        check_is_fitted(self)
        return learned_symmetry(self)

    @property
    def _n_features_out(self) -> int:
        return self.transformation_.parameters.dim

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
