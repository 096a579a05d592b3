"""Images seen in the frame of every class's manifold: features for any classifier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.base import ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import lookup
from patternfold.estimators.checkpoints import checkpointing
from patternfold.estimators.fitting import fitting
from patternfold.estimators.gradients import (
    gathered_gradients,
    n_gradients,
    oriented_gradients,
)
from patternfold.estimators.images import (
    ImageEstimator,
    Pixels,
    as_targets,
    as_weights,
    pixels_of,
)
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.kernel_machine import as_kernel_machine
from patternfold.estimators.options import common_terms, lighting_of
from patternfold.estimators.pats import PATS
from patternfold.estimators.probabilities import ProbabilityMixin
from patternfold.estimators.stack_classes import (
    DECIDING,
    StackPixels,
    spread_over_classes,
    stack_pixels,
)
from patternfold.estimators.streams import in_blocks
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import Effort, as_effort
from patternfold.learning.lighting import Lighting
from patternfold.learning.observations import Chunk, Observations
from patternfold.learning.project import align
from patternfold.learning.project.align import sample
from patternfold.learning.project.expected import expected_terms
from patternfold.learning.project.locate import locate
from patternfold.learning.state import ASKED_TO_STOP, INTERRUPTED, STOPPED, telling_part
from patternfold.model.grid import Grid
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

FEATURES = {"pixels": "pixel", "gradients": "gradient"}
"""What can stand for a view, and the name of one value of it."""


class AlignedViews(TransformerMixin, ImageEstimator):
    """Turn images into views aligned to the manifold of every class.

    An image is projected on each class's manifold and resampled in that manifold's frame: seen
    from its own class it comes to rest in the class's common pose, whatever its transformation
    was. The views of all classes together are features for any classifier.

    Parameters
    ----------
    manifold_learner : PATS or JPATS, optional
        What learns the manifolds: `PATS` class by class (by default with 12 atoms), or `JPATS`.
    features : {"pixels", "gradients"}, default="pixels"
        What stands for a view: its pixels, or its gradients gathered by direction on a coarse grid,
        which tell shapes apart with fewer training images.
    distances : bool, default=True
        Append the distances to the manifolds.
    parameters : bool, default=False
        Append the transformation parameters λ.
    interpolation : {"linear", "cubic"}, default="linear"
        Of the views, as in `patternfold.align`.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.

    Attributes
    ----------
    patterns_ : list of Pattern
        One per class, in the order of ``classes_``.
    classes_ : array
        Class labels.
    loss_, prior_
        The loss with its scale, and the prior on λ of each class, as in `JPATS`.
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

    classes_: np.ndarray

    takes_missing: ClassVar[bool] = True

    loss_: AbstractLoss = SQUARES
    prior_: list[Prior] | None = None

    def __init__(
        self,
        manifold_learner: PATS | JPATS | None = None,
        *,
        features: str = "pixels",
        distances: bool = True,
        parameters: bool = False,
        interpolation: str = "linear",
        image_shape: tuple[int, int] | None = None,
    ):
        self.manifold_learner = manifold_learner
        self.features = features
        self.distances = distances
        self.parameters = parameters
        self.interpolation = interpolation
        self.image_shape = image_shape

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sample_mask: Any = None
    ) -> AlignedViews:
        """Learn one manifold per class; arguments are those of `JPATS.fit`."""
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
                self.stop_reason_ = learner.stop_reason_
                self.loss_, self.prior_ = learner.loss_, learner.prior_
            else:
                self._fit_class_by_class(learner, pixels, labels, weights)
            self.lighting_ = lighting_of(learner)
        return self

    def _fit_class_by_class(
        self, learner: PATS, pixels: Pixels | StackPixels, labels: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn each class by itself.

        Ctrl-C is raised unless every class has a pattern. When the learner's callback asks to stop,
        the classes that are left get an atom each: views need all of them.
        """
        self.patterns_: list[Pattern] = []
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

    @in_blocks
    def transform(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the views of all classes as rows, then what else was asked for.

        ``effort`` and ``sample_mask`` are those of `patternfold.project`. Pixels and distances of
        images that are not within 2⁻¹⁶ and 2¹⁷ are divided by a power of two, the same for all
        images. Where images have gains and offsets of their own, views are less the offset, and
        views and distances are divided by the image's norm about its mean.
        """
        check_is_fitted(self)
        return self._views_of(pixels_of(self, X, sample_mask, reset=False), effort)

    def _views_of(self, pixels: Pixels, effort: str | Effort) -> np.ndarray:
        """Views of checked images, which go to the devices once.

        They stay in the unit of the computation: classifiers square them, too.
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
            parts = [self._views(images, found.lam, found.offset)]
            norms = np.sqrt(images.squares) if lighting.gain else np.ones(len(rows))
        if self.distances:
            parts.append(np.sqrt(found.square) / np.where(norms > 0, norms, 1)[:, None])
        if self.parameters:
            parts.append(found.lam.reshape(len(rows), -1))
        return np.concatenate(parts, axis=1).astype(rows.dtype, copy=False)

    def _views(self, images: Observations, lam: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """The images as every manifold sees them, as rows of features."""
        if self.interpolation == "linear":
            stage = partial(
                _views_of_chunk,
                family=self.transformation_,
                grid=images.grid,
                gradients=self.features == "gradients",
                lighting=images.lighting,
            )
            return images.map(stage, lam, offset)
        lit = images.map(partial(_lit, lighting=images.lighting), offset)
        return np.concatenate([self._view(lit[:, m], lam[:, m]) for m in range(lam.shape[1])], 1)

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
        fresh: Any = clone(learner)
        return fresh.set_params(image_shape=self.image_shape_)


@compiled
def _lit(chunk: Chunk, offset: Float[Array, "B M"], lighting: Lighting) -> Float[Array, "B M n"]:
    """Images without their own light, as each manifold sees it."""
    return jax.vmap(partial(_in_one_light, chunk, lighting), in_axes=1, out_axes=1)(offset)


def _in_one_light(chunk: Chunk, lighting: Lighting, offset: Float[Array, " B"]) -> Array:
    """Images less their offset, of one norm about their mean; pixels that don't count are 0."""
    images = chunk.images
    if lighting.offset:
        images = images - offset[:, None]
    if chunk.roots is not None:
        images = jnp.where(chunk.roots > 0, images, 0)
    if lighting.gain:
        norms = jnp.sqrt(lighting.energies(chunk.images, chunk.roots))[:, None]
        images = images / jnp.where(norms > 0, norms, 1)
    return images


@partial(compiled, hot=True, static_argnames=("grid", "gradients"))
def _views_of_chunk(
    chunk: Chunk,
    lam: Float[Array, "B M d"],
    offset: Float[Array, "B M"],
    family: AbstractTransformation,
    grid: Grid,
    gradients: bool,
    lighting: Lighting,
) -> Float[Array, "B f"]:
    """Views of a chunk in the frame of every manifold, side by side."""

    def view(pose: tuple[Array, Array]) -> Float[Array, "B v"]:
        images = _in_one_light(chunk, lighting, pose[1])
        aligned = sample(images, pose[0], family, grid, inverse=True)
        return gathered_gradients(aligned, grid.shape) if gradients else aligned

    views = jax.lax.map(view, (jnp.moveaxis(lam, 1, 0), offset.T))
    return jnp.moveaxis(views, 0, 1).reshape(len(lam), -1)


class AlignedViewsClassifier(ProbabilityMixin, ClassifierMixin, ImageEstimator):
    """Classify images whatever their transformation: aligned views and a classifier on them.

    Parameters
    ----------
    n_atoms : int or "auto", default=12
        Atoms of each class's pattern.
    transformation, mother, bounds, gain, offset, loss, prior
        As in `PATS`.
    classifier : classifier, optional
        What classifies the views; by default a support vector machine, ``SVC(C=10)``.
    manifold_learner : PATS or JPATS, optional
        What learns the manifolds, in place of the options above.
    features : {"gradients", "pixels"}, default="gradients"
        What stands for a view, as in `AlignedViews`.
    distances, parameters, image_shape
        As in `AlignedViews`.
    random_state : int, RandomState or None, default=None
        Seed of the manifold learner.

    Attributes
    ----------
    views_ : AlignedViews
        The fitted transformer.
    classifier_ : classifier
        The fitted classifier; of a model that was loaded, what it decides by.
    classes_ : array
        Class labels.
    stop_reason_ : str
        Why learning the manifolds stopped.
    n_features_in_ : int
        Number of pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import AlignedViewsClassifier, Pattern, datasets
    >>> bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.1]])
    >>> dot = Pattern([1.0], [[0.0, 0.0, 0.0, 0.2, 0.2]])
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([datasets.random_images(p, 6, rng, "rotation-translation",
    ...                                            shape=(16, 16))[0] for p in (bar, dot)])
    >>> y = np.repeat(["bar", "dot"], 6)
    >>> model = AlignedViewsClassifier(2, transformation="rotation-translation").fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    classes_: np.ndarray

    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        n_atoms: int | str = 12,
        *,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        mother: str | AbstractMother = "gaussian",
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        gain: bool = False,
        offset: bool = False,
        loss: str | AbstractLoss = "squared",
        prior: Mapping[str, tuple[Bound, Bound]] | str | Prior | None = None,
        classifier: Any = None,
        manifold_learner: PATS | JPATS | None = None,
        features: str = "gradients",
        distances: bool = True,
        parameters: bool = False,
        image_shape: tuple[int, int] | None = None,
        random_state: Any = None,
    ):
        self.n_atoms = n_atoms
        self.transformation = transformation
        self.mother = mother
        self.bounds = bounds
        self.gain = gain
        self.offset = offset
        self.loss = loss
        self.prior = prior
        self.classifier = classifier
        self.manifold_learner = manifold_learner
        self.features = features
        self.distances = distances
        self.parameters = parameters
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_mask: Any = None,
        checkpoint: str | Path | None = None,
    ) -> AlignedViewsClassifier:
        """Learn the manifolds, then the classifier on the aligned views.

        ``sample_mask`` and ``checkpoint`` are those of `PATS.fit`.
        """
        keeping = checkpointing(self, checkpoint, X, y=y, sample_mask=sample_mask)
        with fitting(self), keeping:
            self.temperature_ = None
            pixels: Any = stack_pixels(self, X, sample_mask)
            most = DECIDING
            if pixels is None:
                pixels = pixels_of(self, X, sample_mask, reset=True)
                most = len(pixels.rows)
            labels = as_targets(self, y, len(pixels.rows))
            targets = self.classes_[labels]
            rows, counted = pixels.rows, pixels.counted
            self.views_ = self._aligned_views().fit(rows, targets, sample_mask=counted)
            self.stop_reason_ = self.views_.stop_reason_
            classifier: Any = clone(self.classifier or _default_classifier())
            index = spread_over_classes(labels, most)
            rows, counted = (rows, counted) if len(index) == len(rows) else pixels.take(index)
            views = self.views_.transform(rows, sample_mask=counted)
            self.classifier_ = classifier.fit(views, targets[index])
        return self

    def _aligned_views(self) -> AlignedViews:
        """Return the unfitted transformer, for images of this shape."""
        learner = self.manifold_learner
        if learner is None:
            learner = PATS(
                self.n_atoms,
                transformation=self.transformation,
                mother=self.mother,
                bounds=self.bounds,
                gain=self.gain,
                offset=self.offset,
                loss=self.loss,
                prior=self.prior,
                n_starts=1,
                n_exchanges=0,
                random_state=self.random_state,
            )
        return AlignedViews(
            learner,
            features=self.features,
            distances=self.distances,
            parameters=self.parameters,
            image_shape=self.image_shape_,
        )

    @in_blocks
    def predict(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the class of each image; options are those of `patternfold.project`."""
        views = self._views(X, effort, sample_mask)
        return (as_kernel_machine(self.classifier_) or self.classifier_).predict(views)

    @in_blocks
    def decision_function(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the classifier's decision values."""
        views = self._views(X, effort, sample_mask)
        return self.classifier_.decision_function(views)

    def _views(self, X: Any, effort: str | Effort, sample_mask: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.views_._views_of(pixels_of(self, X, sample_mask, reset=False), effort)


def _default_classifier() -> Any:
    from sklearn.svm import SVC  # late: those who learn patterns need not wait for it

    return SVC(C=10)
