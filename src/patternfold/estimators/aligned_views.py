"""Images seen in the frame of every class's manifold: features for any classifier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.base import ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import lookup
from patternfold.estimators.fitting import fitting
from patternfold.estimators.gradients import (
    gathered_gradients,
    n_gradients,
    oriented_gradients,
)
from patternfold.estimators.images import ImageEstimator, as_targets, as_weights, rows_of
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.kernel_machine import as_kernel_machine
from patternfold.estimators.pats import PATS
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import Effort, as_effort
from patternfold.learning.observations import Chunk, Observations
from patternfold.learning.project import align
from patternfold.learning.project.align import sample
from patternfold.learning.project.locate import locate
from patternfold.learning.state import ASKED_TO_STOP, INTERRUPTED, STOPPED, telling_part
from patternfold.model.grid import Grid
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AlignedViews:
        """Learn one manifold per class."""
        with fitting(self):
            lookup("features", self.features, FEATURES)
            rows = rows_of(self, X, reset=True)
            labels = as_targets(self, y, len(rows))
            weights = as_weights(sample_weight, len(rows))
            learner = self._learner()
            if isinstance(learner, JPATS):
                learner.fit(rows, self.classes_[labels], weights)
                self.patterns_, self.transformation_ = learner.patterns_, learner.transformation_
                self.stop_reason_ = learner.stop_reason_
            else:
                self._fit_class_by_class(learner, rows, labels, weights)
        return self

    def _fit_class_by_class(
        self, learner: PATS, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn each class by itself.

        Ctrl-C is raised unless every class has a pattern. When the learner's callback asks to stop,
        the classes that are left get an atom each: views need all of them.
        """
        self.patterns_: list[Pattern] = []
        self.stop_reason_ = "every class was learned"
        names = [str(label) for label in self.classes_]
        for m in range(len(self.classes_)):
            own = labels == m
            fresh: Any = clone(learner)
            if self.stop_reason_ == ASKED_TO_STOP:
                fresh.set_params(n_atoms=1, callback=None)
            fresh.callback = telling_part(fresh.callback, m, names)
            fitted = fresh.fit(rows[own], sample_weight=weights[own])
            self.patterns_.append(fitted.pattern_)
            self.transformation_ = fitted.transformation_
            if fitted.stop_reason_ in STOPPED:
                self.stop_reason_ = fitted.stop_reason_
            if self.stop_reason_ == INTERRUPTED and m + 1 < len(self.classes_):
                raise KeyboardInterrupt

    def transform(self, X: Any, effort: str | Effort = "quick") -> np.ndarray:
        """Return the views of all classes as rows, then what else was asked for.

        ``effort`` is that of `patternfold.project`. Pixels and distances of images that are not
        within 2⁻¹⁶ and 2¹⁷ are divided by a power of two, the same for all images.
        """
        check_is_fitted(self)
        return self._views_of(rows_of(self, X, reset=False), effort)

    def _views_of(self, rows: np.ndarray, effort: str | Effort) -> np.ndarray:
        """Views of checked images, which go to the devices once.

        They stay in the unit of the computation: classifiers square them, too.
        """
        grid, amplitude = Grid(*self.image_shape_), Amplitude.of_patterns(self.patterns_)
        patterns = [amplitude.lowered_pattern(p) for p in self.patterns_]
        with precision(rows.dtype):
            images = Observations.put(amplitude.lowered(rows), grid)
            how = as_effort(effort)
            found = locate(images, patterns, self.transformation_, how)
            parts = [self._views(images, found.lam)]
        if self.distances:
            parts.append(np.sqrt(found.square))
        if self.parameters:
            parts.append(found.lam.reshape(len(rows), -1))
        return np.concatenate(parts, axis=1).astype(rows.dtype, copy=False)

    def _views(self, images: Observations, lam: np.ndarray) -> np.ndarray:
        """The images as every manifold sees them, as rows of features."""
        if self.interpolation == "linear":
            stage = partial(
                _views_of_chunk,
                family=self.transformation_,
                grid=images.grid,
                gradients=self.features == "gradients",
            )
            return images.map(stage, lam)
        rows = images.map(lambda chunk: chunk.images)
        return np.concatenate([self._view(rows, lam[:, m]) for m in range(lam.shape[1])], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names such as ``view_5_pixel_0``, ``distance_5`` and ``theta_5``."""
        check_is_fitted(self)
        count = Grid(*self.image_shape_).n_pixels if self.features == "pixels" else n_gradients()
        value = FEATURES[self.features]
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
    def _n_features_out(self) -> int:
        return len(self.get_feature_names_out())

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


@partial(compiled, hot=True, static_argnames=("grid", "gradients"))
def _views_of_chunk(
    chunk: Chunk,
    lam: Float[Array, "B M d"],
    family: AbstractTransformation,
    grid: Grid,
    gradients: bool,
) -> Float[Array, "B f"]:
    """Views of a chunk in the frame of every manifold, side by side."""

    def view(lam: Float[Array, "B d"]) -> Float[Array, "B v"]:
        aligned = sample(chunk.images, lam, family, grid, inverse=True)
        return gathered_gradients(aligned, grid.shape) if gradients else aligned

    views = jax.lax.map(view, jnp.moveaxis(lam, 1, 0))
    return jnp.moveaxis(views, 0, 1).reshape(len(lam), -1)


class AlignedViewsClassifier(ClassifierMixin, ImageEstimator):
    """Classify images whatever their transformation: aligned views and a classifier on them.

    Parameters
    ----------
    n_atoms : int, default=12
        Atoms of each class's pattern.
    transformation, mother, bounds
        As in `PATS`.
    classifier : classifier, optional
        What classifies the views; by default a support vector machine, ``SVC(C=10)``.
    manifold_learner : PATS or JPATS, optional
        What learns the manifolds, in place of the four options above.
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

    def __init__(
        self,
        n_atoms: int = 12,
        *,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        mother: str | AbstractMother = "gaussian",
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
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
        self.classifier = classifier
        self.manifold_learner = manifold_learner
        self.features = features
        self.distances = distances
        self.parameters = parameters
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> AlignedViewsClassifier:
        """Learn the manifolds, then the classifier on the aligned views."""
        with fitting(self):
            rows = rows_of(self, X, reset=True)
            labels = as_targets(self, y, len(rows))
            targets = self.classes_[labels]
            self.views_ = self._aligned_views().fit(rows, targets)
            self.stop_reason_ = self.views_.stop_reason_
            classifier: Any = clone(self.classifier or _default_classifier())
            self.classifier_ = classifier.fit(self.views_.transform(rows), targets)
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

    def predict(self, X: Any, effort: str | Effort = "quick") -> np.ndarray:
        """Return the class of each image; ``effort`` is that of `patternfold.project`."""
        views = self._views(X, effort)
        return (as_kernel_machine(self.classifier_) or self.classifier_).predict(views)

    def decision_function(self, X: Any, effort: str | Effort = "quick") -> np.ndarray:
        """Return the classifier's decision values."""
        views = self._views(X, effort)
        return self.classifier_.decision_function(views)

    def _views(self, X: Any, effort: str | Effort) -> np.ndarray:
        check_is_fitted(self)
        return self.views_._views_of(rows_of(self, X, reset=False), effort)


def _default_classifier() -> Any:
    from sklearn.svm import SVC  # late: those who learn patterns need not wait for it

    return SVC(C=10)
