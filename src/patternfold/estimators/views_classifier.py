"""Classify images by their aligned views: manifolds of the classes and a classifier in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.aligned_views import AlignedViews
from patternfold.estimators.checkpoints import checkpointing
from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import ImageEstimator, as_targets, pixels_of
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.kernel_machine import as_kernel_machine, fit_kernel_machine
from patternfold.estimators.pats import PATS
from patternfold.estimators.probabilities import ProbabilityMixin
from patternfold.estimators.saving import SavingMixin
from patternfold.estimators.stack_classes import DECIDING, spread_over_classes, stack_pixels
from patternfold.estimators.streams import in_blocks
from patternfold.estimators.view_variants import check_variants, count_of, variants
from patternfold.files.stacks import Stack
from patternfold.learning.effort import Effort
from patternfold.learning.state import STOPPED
from patternfold.model.losses import AbstractLoss
from patternfold.model.mothers import AbstractMother
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound

AT_ONCE = 2**14
"""Images whose views exist at a time where only the decision on them is asked for."""

EFFORT = "quick"
"""Of projecting what the classifier learns from, as of what it decides on by default."""

PENALTY = 10.0
"""C of the support vector machine. Between 3 and 100 it hardly matters."""


class AlignedViewsClassifier(SavingMixin, ProbabilityMixin, ClassifierMixin, ImageEstimator):
    """Classify images whatever their transformation: aligned views and a classifier on them.

    Parameters
    ----------
    n_atoms : int or "auto", default=12
        Atoms of each pattern.
    n_patterns : int, "auto" or dict, default=1
        Number of patterns of each class, as in `JPATS`.
    n_variants : int or "auto", default="auto"
        Copies of each training image, what they show deformed a little at random, that the
        classifier learns from beside the images: a number, 0 for none, or up to 24, as long as
        there are no more than 5,000 images in all. "auto" is 0 with a ``classifier`` of your own:
        one that divides images among folds would find copies of an image in several.
    mirror : bool, default=False
        Whether things and their mirror images are of one class. Every other variant is turned over
        then, the first one too; with "auto" there is at least one.
    transformation, mother, bounds, gain, offset, loss, prior
        As in `PATS`.
    classifier : classifier, optional
        What classifies the views; by default a support vector machine, as ``SVC(C=10)`` fits it.
    manifold_learner : PATS or JPATS, optional
        What learns the manifolds, in place of the options above but ``n_patterns``.
    features : {"gradients", "pixels"}, default="gradients"
        What stands for a view, as in `AlignedViews`.
    distances, parameters, image_shape
        As in `AlignedViews`.
    random_state : int, RandomState or None, default=None
        Seed of the manifold learner and of the variants, which with None is that of
        ``manifold_learner``, where that is given.

    Attributes
    ----------
    views_ : AlignedViews
        The fitted transformer.
    classifier_ : classifier
        The fitted classifier; without one of your own, what the support vector machine decides by:
        ``support_vectors_``, ``dual_coef_`` and the like, and `predict`, but no ``SVC``.
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
        n_patterns: int | str | Mapping[Any, int | str] = 1,
        n_variants: int | str = "auto",
        mirror: bool = False,
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
        self.n_patterns = n_patterns
        self.n_variants = n_variants
        self.mirror = mirror
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
            check_variants(self.n_variants, self.mirror)
            self.temperature_ = None
            pixels: Any = stack_pixels(self, X, sample_mask)
            most = DECIDING
            if pixels is None:
                pixels = pixels_of(self, X, sample_mask, reset=True)
                most = len(pixels.rows)
            labels = as_targets(self, y, len(pixels.rows))
            rows, counted = pixels.rows, pixels.counted
            learned = self._aligned_views().fit(rows, self.classes_[labels], sample_mask=counted)
            self.views_, self.stop_reason_ = learned, learned.stop_reason_
            index = spread_over_classes(labels, most)
            rows, counted = (rows, counted) if len(index) == len(rows) else pixels.take(index)
            features, labels = self._examples(rows, counted, labels[index])
            self.classifier_ = self._fitted_classifier(features, self.classes_[labels])
        return self

    def _examples(
        self, rows: Any, counted: Any, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Views of images and of their variants, and the class of each.

        Whoever has stopped learning waits for no variants.
        """
        views, n_images = self.views_, len(labels)
        if self.stop_reason_ in STOPPED or not (count := self._n_variants(n_images)):
            return views.transform(rows, EFFORT, counted), labels
        images = rows.images(0, n_images) if isinstance(rows, Stack) else rows
        pixels = pixels_of(views, images, counted, reset=False)
        seen, own = views._seen(pixels, EFFORT), (np.arange(n_images), labels)
        where = (self.image_shape_, seen.lam[own], seen.offset[own], views.transformation_)
        moved = variants(pixels, *where, count, self.mirror, self._seed_of_variants())
        parts = [seen.features, *(views._seen(variant, EFFORT).features for variant in moved)]
        return np.concatenate(parts), np.tile(labels, len(parts))

    def _n_variants(self, n_images: int) -> int:
        own = self.classifier is not None
        return count_of(self.n_variants, n_images, self.mirror, chosen=not own)

    def _seed_of_variants(self) -> int:
        given = self.random_state
        if given is None and self.manifold_learner is not None:
            given = self.manifold_learner.random_state
        return int(check_random_state(given).randint(2**31 - 1))

    def _fitted_classifier(self, features: np.ndarray, targets: np.ndarray) -> Any:
        if self.classifier is None:
            return fit_kernel_machine(features, targets, PENALTY)
        classifier: Any = clone(self.classifier)
        return classifier.fit(features, targets)

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
            n_patterns=self.n_patterns,
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
        check_is_fitted(self)
        machine = as_kernel_machine(self.classifier_) or self.classifier_
        return self._decided(machine.predict, X, effort, sample_mask)

    @in_blocks
    def decision_function(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the classifier's decision values."""
        check_is_fitted(self)
        return self._decided(self.classifier_.decision_function, X, effort, sample_mask)

    def _decided(
        self, decide: Callable[[np.ndarray], np.ndarray], X: Any, effort: str | Effort, mask: Any
    ) -> np.ndarray:
        """What a function says of the views, of which only some exist at a time."""
        pixels = pixels_of(self, X, mask, reset=False)
        parts = [
            decide(self.views_._seen(pixels.take(slice(begin, begin + AT_ONCE)), effort).features)
            for begin in range(0, max(len(pixels.rows), 1), AT_ONCE)
        ]
        return np.concatenate(parts)
