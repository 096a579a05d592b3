"""Images seen in the frame of every class's manifold: features for any classifier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import lookup
from patternfold.estimators.class_manifolds import ClassManifolds
from patternfold.estimators.fitting import fitting
from patternfold.estimators.gradients import n_gradients, oriented_gradients
from patternfold.estimators.images import Pixels, as_targets, as_weights, pixels_of
from patternfold.estimators.joint_options import check_patterns
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.options import common_terms, lighting_of
from patternfold.estimators.pats import PATS
from patternfold.estimators.stack_classes import StackPixels, stack_pixels
from patternfold.estimators.streams import in_blocks
from patternfold.estimators.view_stages import lit, views_of_chunk
from patternfold.files.stacks import Stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import Effort, as_effort
from patternfold.learning.fitted import fitted_manifolds
from patternfold.learning.observations import Observations
from patternfold.learning.project import align
from patternfold.learning.project.expected import expected_terms
from patternfold.learning.project.locate import locate
from patternfold.learning.state import ASKED_TO_STOP, INTERRUPTED, STOPPED, telling_part
from patternfold.model.grid import Grid
from patternfold.numerics.precision import precision

FEATURES = {"pixels": "pixel", "gradients": "gradient"}
"""What can stand for a view, and the name of one value of it."""

WEIGHT = 2.0
"""Of distances as shares of the images' norm, beside gradients, whose norm is about 6 in each view.
Few images are told apart better than with 1, many as well; from 6 on all are told apart worse."""

FIRST_OF_STACK = 1024
"""Images of a stack that tell how bright they are."""


class Seen(NamedTuple):
    """What is seen of images: features (N, f), and λ (N, M, d) and offset (N, M) by class."""

    features: np.ndarray
    lam: np.ndarray
    offset: np.ndarray


class AlignedViews(TransformerMixin, ClassManifolds):
    """Turn images into views aligned to the manifold of every class.

    An image is projected on each class's manifold and resampled in that manifold's frame: seen
    from its own class it comes to rest in the class's common pose, whatever its transformation
    was. The views of all classes together are features for any classifier. Where a class has
    several patterns, the view is in the frame of the one nearest to the image.

    Parameters
    ----------
    manifold_learner : PATS or JPATS, optional
        What learns the manifolds: `PATS` class by class (by default with 12 atoms), or `JPATS`.
    n_patterns : int, "auto" or dict, default=1
        Number of patterns of each class, as in `JPATS`; a `JPATS` as learner has its own.
    features : {"pixels", "gradients"}, default="pixels"
        What stands for a view: its pixels, or its gradients gathered by direction on a coarse grid,
        which tell shapes apart with fewer training images.
    distances : bool, default=True
        Append the distances to the classes, each to the nearest of its manifolds.
    parameters : bool, default=False
        Append the transformation parameters λ there.
    interpolation : {"linear", "cubic"}, default="linear"
        Of the views, as in `patternfold.align`.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.

    Attributes
    ----------
    patterns_ : list of Pattern
        In the order of ``classes_``.
    pattern_labels_ : array
        The class of each pattern.
    classes_ : array
        Class labels.
    loss_, prior_
        The loss with its scale, and the prior on λ of each pattern, as in `JPATS`.
    distance_unit_ : float or None
        What distances beside gradients are divided by: half the usual norm of the images learned
        from, or half of each image's own where images have gains. None beside pixels.
    stop_reason_ : str
        Why learning stopped.
    image_shape_, transformation_, n_features_in_
        As in `PATS`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from patternfold import PATS, AlignedViews, Pattern, datasets
    >>> bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.1]])
    >>> dot = Pattern([1.0], [[0.0, 0.0, 0.0, 0.2, 0.2]])
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([datasets.random_images(p, 6, rng, "rotation-translation",
    ...                                            shape=(16, 16))[0] for p in (bar, dot)])
    >>> y = np.repeat(["bar", "dot"], 6)
    >>> learner = PATS(n_atoms=2, transformation="rotation-translation")
    >>> make_pipeline(AlignedViews(learner), SVC()).fit(X, y).score(X, y)
    1.0
    """

    distance_unit_: float | None = None

    def __init__(
        self,
        manifold_learner: PATS | JPATS | None = None,
        *,
        n_patterns: int | str | Mapping[Any, int | str] = 1,
        features: str = "pixels",
        distances: bool = True,
        parameters: bool = False,
        interpolation: str = "linear",
        image_shape: tuple[int, int] | None = None,
    ):
        self.manifold_learner = manifold_learner
        self.n_patterns = n_patterns
        self.features = features
        self.distances = distances
        self.parameters = parameters
        self.interpolation = interpolation
        self.image_shape = image_shape

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sample_mask: Any = None
    ) -> AlignedViews:
        """Learn the manifolds of all classes; arguments are those of `JPATS.fit`."""
        with fitting(self):
            lookup("features", self.features, FEATURES)
            pixels: Any = stack_pixels(self, X, sample_mask)
            if pixels is None:
                pixels = pixels_of(self, X, sample_mask, reset=True)
            rows = pixels.rows
            labels = as_targets(self, y, len(rows))
            weights = as_weights(sample_weight, len(rows))
            learner = self._learner()
            if isinstance(learner, JPATS):
                learner.fit(rows, self.classes_[labels], weights, pixels.counted)
                self.patterns_, self.transformation_ = learner.patterns_, learner.transformation_
                self.pattern_labels_ = learner.pattern_labels_
                self.stop_reason_ = learner.stop_reason_
                self.loss_, self.prior_ = learner.loss_, learner.prior_
            else:
                self._fit_class_by_class(learner, pixels, labels, weights)
            self.lighting_ = lighting_of(learner)
            self.distance_unit_ = None
            if self.features == "gradients":
                self.distance_unit_ = (1.0 if self.lighting_.gain else usual_norm(rows)) / WEIGHT
        return self

    def _fit_class_by_class(
        self, learner: PATS, pixels: Pixels | StackPixels, labels: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn each class by itself.

        Ctrl-C is raised unless every class has a pattern. When the learner's callback asks to stop,
        the classes that are left get an atom each: views need all of them.
        """
        self.patterns_ = []
        self.stop_reason_ = "every class was learned"
        terms = []
        names = [str(label) for label in self.classes_]
        for m in range(len(self.classes_)):
            own = labels == m
            fresh: Any = clone(learner)
            if self.stop_reason_ == ASKED_TO_STOP:
                fresh.set_params(n_atoms=1, callback=None)
            fresh.callback = telling_part(fresh.callback, m, names)
            rows, counted = pixels.take(own)
            fitted = fresh.fit(rows, sample_weight=weights[own], sample_mask=counted)
            self.patterns_.append(fitted.pattern_)
            self.transformation_ = fitted.transformation_
            terms.append((fitted.loss_, fitted.prior_))
            if fitted.stop_reason_ in STOPPED:
                self.stop_reason_ = fitted.stop_reason_
            if self.stop_reason_ == INTERRUPTED and m + 1 < len(self.classes_):
                raise KeyboardInterrupt
        self.loss_, self.prior_ = common_terms(terms)
        self.pattern_labels_ = self.classes_

    @in_blocks
    def transform(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the views of all classes as rows, then what else was asked for.

        ``effort`` and ``sample_mask`` are those of `patternfold.project`. Pixels and distances of
        images that are not within 2⁻¹⁶ and 2¹⁷ are divided by a power of two, the same for all
        images. Gradients do not depend on how bright images are, and neither do the distances
        beside them, which are in units of half their usual norm. Where images have gains and
        offsets of their own, views are less the offset, and views and distances are divided by the
        image's norm about its mean.
        """
        check_is_fitted(self)
        return self._seen(pixels_of(self, X, sample_mask, reset=False), effort).features

    def _seen(self, pixels: Pixels, effort: str | Effort) -> Seen:
        """Views of checked images, with pose and offset on the manifold of each class.

        Images go to the devices once, and views stay in the unit of the computation: classifiers
        square them, too.
        """
        grid, amplitude = Grid(*self.image_shape_), Amplitude.of_patterns(self.patterns_)
        patterns = [amplitude.lowered_pattern(p) for p in self.patterns_]
        rows, lighting = pixels.rows, self.lighting_
        with precision(rows.dtype):
            images = Observations.put(
                amplitude.lowered(rows), grid, pixel_weights=pixels.counted, lighting=lighting
            )
            how = as_effort(effort)
            loss = amplitude.lowered_loss(self.loss_)
            priors = [amplitude.lowered_prior(p) for p in self.prior_ or [None] * len(patterns)]
            where = (images, patterns, self.transformation_)
            terms = expected_terms(*where, loss, priors, how)
            found = locate(*where, how, terms=terms)
            best = fitted_manifolds(self).nearest(found.square)
            square, offset = (np.take_along_axis(v, best, 1) for v in (found.square, found.offset))
            lam = np.take_along_axis(found.lam, best[:, :, None], axis=1)
            parts = [self._views(images, lam, offset)]
            norms = np.sqrt(images.squares) if lighting.gain else np.ones(len(rows))
            unit = np.ones(1)
            if self.distance_unit_ is not None:
                unit *= self.distance_unit_
                unit = unit if lighting.gain else amplitude.lowered(unit)
        if self.distances:
            parts.append(np.sqrt(square) / (unit * np.where(norms > 0, norms, 1))[:, None])
        if self.parameters:
            parts.append(lam.reshape(len(rows), -1))
        features = np.concatenate(parts, axis=1).astype(rows.dtype, copy=False)
        return Seen(features, lam, amplitude.raised(offset))

    def _views(self, images: Observations, lam: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """The images as every manifold sees them, as rows of features."""
        if self.interpolation == "linear":
            stage = partial(
                views_of_chunk,
                family=self.transformation_,
                grid=images.grid,
                gradients=self.features == "gradients",
                lighting=images.lighting,
            )
            return images.map(stage, lam, offset)
        bare = images.map(partial(lit, lighting=images.lighting), offset)
        return np.concatenate([self._view(bare[:, m], lam[:, m]) for m in range(lam.shape[1])], 1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names such as ``view_5_pixel_0``, ``distance_5`` and ``theta_5``."""
        check_is_fitted(self)
        count, value = self._n_values, FEATURES[self.features]
        names = [f"view_{c}_{value}_{i}" for c in self.classes_ for i in range(count)]
        if self.distances:
            names += [f"distance_{c}" for c in self.classes_]
        if self.parameters:
            known = self.transformation_.parameters.names
            names += [f"{name}_{c}" for c in self.classes_ for name in known]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_values(self) -> int:
        """Features of one view."""
        return Grid(*self.image_shape_).n_pixels if self.features == "pixels" else n_gradients()

    @property
    def _n_features_out(self) -> int:
        dim = self.transformation_.parameters.dim if self.parameters else 0
        return len(self.classes_) * (self._n_values + bool(self.distances) + dim)

    def _view(self, rows: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Return the images as one manifold sees them, as rows of features."""
        view = align(
            rows,
            lam,
            self.transformation_,
            image_shape=self.image_shape_,
            interpolation=self.interpolation,
        )
        if self.features == "gradients":
            return oriented_gradients(view.reshape(len(rows), *self.image_shape_))
        return view.reshape(len(rows), -1)

    def _learner(self) -> PATS | JPATS:
        """Return an unfitted copy of the learner, for images of this shape."""
        learner = self.manifold_learner
        if learner is None:
            learner = PATS(n_atoms=12, n_starts=1, n_exchanges=0)
        if not isinstance(learner, (PATS, JPATS)):
            raise TypeError(f"manifold_learner must be a PATS or a JPATS; got {learner!r}.")
        check_patterns(self.n_patterns)
        several = self.n_patterns != 1
        if several and isinstance(learner, JPATS):
            raise ValueError(
                f"n_patterns={self.n_patterns!r} is for learning class by class; give it to the "
                "JPATS instead."
            )
        fresh: Any = class_by_class(learner, self.n_patterns) if several else clone(learner)
        return fresh.set_params(image_shape=self.image_shape_)


def usual_norm(rows: Any) -> float:
    """The root of the images' mean squared norm; 1 where all are blank."""
    images = rows.images(0, min(len(rows), FIRST_OF_STACK)) if isinstance(rows, Stack) else rows
    images = np.nan_to_num(np.asarray(images).reshape(len(images), -1))
    peak = float(np.abs(images).max(initial=0.0))
    if not 0 < peak < np.inf:
        return 1.0
    squares = np.square(images / peak).sum(axis=1, dtype=np.float64)
    return peak * float(np.sqrt(squares.mean()))


def class_by_class(learner: Any, n_patterns: Any) -> JPATS:
    """A `JPATS` that learns several patterns of each class alone, as the `PATS` would learn one."""
    fresh: Any = clone(learner)
    given, known = fresh.get_params(deep=False), JPATS().get_params(deep=False)
    shared = {name: value for name, value in given.items() if name in known}
    return JPATS(**shared, n_patterns=n_patterns, alpha=0)
