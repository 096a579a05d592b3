"""JPATS as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.checkpoints import checkpointing
from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import (
    ImageEstimator,
    Pixels,
    as_targets,
    as_weights,
    distinct_rows,
    pixels_of,
    pixels_to_project,
)
from patternfold.estimators.joint_options import check_joint, for_images, joint_settings
from patternfold.estimators.options import announce, make_callback, make_problem
from patternfold.estimators.pats import PATS
from patternfold.estimators.probabilities import ProbabilityMixin
from patternfold.estimators.stack_classes import fit_jointly
from patternfold.estimators.streams import in_blocks
from patternfold.estimators.symmetric import learned_symmetries
from patternfold.files.stacks import as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import Effort
from patternfold.learning.fitted import fitted_manifolds
from patternfold.learning.joint import JointProblem
from patternfold.learning.jpats import JointLearned, learn_jointly
from patternfold.learning.project import Projection
from patternfold.learning.retune import known_terms
from patternfold.learning.select.solvers import AbstractSolver
from patternfold.learning.state import INTERRUPTED, Progress
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.symmetry import Symmetry
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.precision import precision

REJECTED_SHARE = 0.025
"""Share of the training images that a calibrated threshold takes for outliers."""


class JPATS(ProbabilityMixin, ClassifierMixin, ImageEstimator):
    r"""Learn the patterns of classes, one each or several, and classify by the nearest manifold.

    Joint parameterised atom selection (Algorithm 2 of the paper) lowers a weighted sum of the
    approximation and the classification error,

    .. math:: E = \sum_{m,i} \|u_i^m - U_{λ_i^m}(p^m)\|^2 + α I(u_i^m) .

    The defaults go beyond the paper: the first atoms of each class are learned as `PATS` does, the
    last few jointly, and then all atoms of all classes are corrected together, for as many steps as
    serve images that are held out. `JPATS.paper` gives the published algorithm.

    Parameters
    ----------
    n_atoms : int, "auto" or dict, default=12
        Number of atoms K of each class, or a number by class. With "auto" each class has as many
        as `PATS` chooses for it alone, and ``n_joint`` more.
    n_patterns : int, "auto" or dict, default=1
        Number of patterns of each class, or numbers by class. A class with several is split into
        parts as by `PatternMixture`, an image belongs to the nearest pattern of its class, and the
        nearest manifold of all decides. With "auto" a class has as many as bring its images nearer
        that were held out.
    transformation, mother, dictionary, bounds
        As in `PATS`.
    reference : {"centroid", "farthest"}, default="centroid"
        Ψ^m: the image of each class that is nearest its centroid, or farthest from it.
    solver, solver_options, tangent_refinement, refit, projection, n_starts, n_exchanges
        As in `PATS`.
    n_joint : int, optional
        How many atoms of each class are selected jointly, the last ones; by default 1, or none if
        some class has a single atom, which is better learned alone and corrected jointly.
    max_coef : float or "auto", default="auto"
        C: atoms that are selected jointly have ``|c|`` of at most this. Where images of other
        classes outweigh, the error has no minimum without a bound. By default so much that an
        atom reaches the brightest pixel of an image, on average.
    alpha : float, callable, "auto" or "cv", optional
        α, or a function of the iteration 1, 2, ..., in units of the images' mean squared norm,
        which is 1 in the paper; by default from 0.5 to 10 along a sigmoid. With "auto" it rises
        from 0.1 to 2 in units of the mean ``|f|``. With "cv" it is chosen among such schedules,
        and C among multiples of itself, by what patterns of two thirds of the images misclassify
        of the last third: 12 fits for α and 6 for C. With 0 every class is learned alone, as by
        `PATS`.
    beta : float or callable, optional
        β of the sigmoid, or a function of f before and I after an iteration, in units as those of
        α; by default a logistic fit.
    n_base_updates : int, default=1
        How often atoms are chosen within an iteration, each time around new base values f_0.
    significance : float, default=0.01
        An atom joins if its coefficient is at least this share of the largest one.
    acceptance : {"tie", "fall", "no-rise", "by-class"}, default="tie"
        When the updates of an iteration stand: if fewer images are misclassified, or as many with
        a lower approximation error; only if fewer are; if no more are; or those of the classes
        that together leave the fewest.
    patience : int, default=2
        Rejected iterations in a row before joint selection ends; each has another α and β.
    n_tuning : int, default=30
        Most steps of the joint correction at the end. It is tried without a third of the images
        first, and takes as many steps as lower the error of these.
    outlier_threshold : float or "calibrate", optional
        Images farther than this from every manifold get the ``outlier_label``; "calibrate" takes
        the distance that 2.5 % of the training images exceed.
    outlier_label : optional
        By default -1, or "outlier" where classes are named by strings.
    gain, offset : bool, default=False
        Whether each image has a gain and an offset of its own, as in `PATS`.
    loss, prior
        As in `PATS`. The scale of the loss is common to all classes, so that the nearest manifold
        is that of the least cost; priors are learned by pattern.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.
    random_state, callback, verbose
        As in `PATS`; the error reported in joint stages is the share of misclassified images.

    Attributes
    ----------
    patterns_ : list of Pattern
        p^m, in the order of ``classes_``.
    pattern_labels_ : array
        The class of each pattern.
    classes_ : array
        Class labels.
    error_path_ : array of shape (iterations, 2)
        Share of misclassified training images, and normalised approximation error, after the start
        and after each accepted iteration.
    cross_parameters_ : array of shape (N, M, d)
        λ_i^{m,r} of the training images on the manifolds of all M patterns.
    outlier_threshold_ : float
        Infinite unless ``outlier_threshold`` is given.
    outlier_label_ : label
        What outliers are called.
    loss_ : loss
        The loss with its scale.
    prior_ : list of Prior, or None
        The prior on λ of each pattern.
    n_iter_ : int
        Number of accepted iterations.
    stop_reason_ : str
        Why learning stopped.
    cv_trials_ : list
        With ``alpha="cv"``, each α and bound that was compared, and the share of the held out
        images that it misclassifies; else empty. Files of models do not hold it.
    symmetry_ : list of Symmetry
        That of each pattern; worked out when first asked for.
    image_shape_, transformation_, n_features_in_
        As in `PATS`.

    References
    ----------
    E. Vural and P. Frossard, Learning Smooth Pattern Transformation Manifolds, IEEE Transactions
    on Image Processing, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import JPATS, Pattern, datasets
    >>> bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.1]])
    >>> dot = Pattern([1.0], [[0.0, 0.0, 0.0, 0.2, 0.2]])
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([datasets.random_images(p, 6, rng, "rotation-translation",
    ...                                            shape=(16, 16))[0] for p in (bar, dot)])
    >>> y = np.repeat(["bar", "dot"], 6)
    >>> model = JPATS(n_atoms=2, transformation="rotation-translation", n_tuning=2).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    classes_: np.ndarray
    pattern_labels_: np.ndarray

    takes_missing: ClassVar[bool] = True

    loss_: AbstractLoss = SQUARES
    prior_: list[Prior] | None = None

    def __init__(
        self,
        n_atoms: int | str | Mapping[Any, int] = 12,
        *,
        n_patterns: int | str | Mapping[Any, int | str] = 1,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        mother: str | AbstractMother = "gaussian",
        dictionary: str | AbstractDictionary | None = None,
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        reference: str = "centroid",
        solver: str | AbstractSolver = "search",
        solver_options: Mapping[str, Any] | None = None,
        tangent_refinement: bool = True,
        refit: str | None = "all",
        projection: str = "global",
        n_starts: int = 1,
        n_exchanges: int = 0,
        n_joint: int | None = None,
        max_coef: float | str = "auto",
        alpha: float | str | Callable[[int], float] | None = None,
        beta: float | Callable[[np.ndarray, np.ndarray], float] | None = None,
        n_base_updates: int = 1,
        significance: float = 0.01,
        acceptance: str = "tie",
        patience: int = 2,
        n_tuning: int = 30,
        outlier_threshold: float | str | None = None,
        outlier_label: Any = None,
        gain: bool = False,
        offset: bool = False,
        loss: str | AbstractLoss = "squared",
        prior: Mapping[str, tuple[Bound, Bound]] | str | Prior | None = None,
        image_shape: tuple[int, int] | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
        verbose: int = 0,
    ):
        self.n_atoms = n_atoms
        self.n_patterns = n_patterns
        self.transformation = transformation
        self.mother = mother
        self.dictionary = dictionary
        self.bounds = bounds
        self.reference = reference
        self.solver = solver
        self.solver_options = solver_options
        self.tangent_refinement = tangent_refinement
        self.refit = refit
        self.projection = projection
        self.n_starts = n_starts
        self.n_exchanges = n_exchanges
        self.n_joint = n_joint
        self.max_coef = max_coef
        self.alpha = alpha
        self.beta = beta
        self.n_base_updates = n_base_updates
        self.significance = significance
        self.acceptance = acceptance
        self.patience = patience
        self.n_tuning = n_tuning
        self.outlier_threshold = outlier_threshold
        self.outlier_label = outlier_label
        self.gain = gain
        self.offset = offset
        self.loss = loss
        self.prior = prior
        self.image_shape = image_shape
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def paper(cls, n_atoms: int | Mapping[Any, int] = 12, **options: Any) -> JPATS:
        """Return an estimator with the published algorithm: all atoms jointly, none revisited.

        All λ are searched over the whole box after each iteration, α is in units of the mean
        ``|f|``, and the updates of some classes may stand without those of others; where the paper
        leaves a choice, docs/claims says what was tried.
        """
        alone = PATS.paper().get_params()
        names = ("solver", "refit", "n_starts", "n_exchanges")
        settings: dict[str, Any] = {name: alone[name] for name in names}
        most = max(n_atoms.values()) if isinstance(n_atoms, Mapping) else n_atoms
        settings |= {"n_joint": most, "n_tuning": 0, "alpha": "auto"}
        settings |= {"acceptance": "by-class", "patience": 10}
        return cls(n_atoms, **(settings | options))

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sample_mask: Any = None,
        checkpoint: str | Path | None = None,
    ) -> JPATS:
        """Learn the patterns of all classes.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W)
            Images u_i.
        y : array of shape (N,)
            Their classes.
        sample_weight : array of shape (N,), optional
            Weights w_i ≥ 0 of the images.
        sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
            True where a pixel counts; NaN never does.
        checkpoint : path, optional
            As in `PATS.fit`; the joint correction at the end is one step.
        """
        data = {"y": y, "sample_weight": sample_weight, "sample_mask": sample_mask}
        if (stack := as_stack(X)) is not None:
            with fitting(self), checkpointing(self, checkpoint, X, **data):
                fit_jointly(self, stack, y, sample_weight, sample_mask, REJECTED_SHARE)
            return self
        with fitting(self) as interrupts, checkpointing(self, checkpoint, X, **data):
            self.temperature_ = None
            pixels = pixels_of(self, X, sample_mask, reset=True)
            rows = pixels.rows
            labels = as_targets(self, y, len(rows))
            weights = as_weights(sample_weight, len(rows))
            self._check_options()
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            settings = joint_settings(self, seed)
            amplitude = Amplitude.of_images("X", rows, always=settings.joint)
            with precision(rows.dtype):
                problem, inverse = self._problem(pixels, labels, weights, amplitude)
                announce(self, problem.all.observations)
                settings, trials = for_images(settings, self, problem, amplitude)
                learned = learn_jointly(problem, settings, self.reference, make_callback(self))
            if interrupts.asked:
                learned = learned._replace(reason=INTERRUPTED)
            self._store(learned, problem, inverse, amplitude)
            self.cv_trials_ = trials
        return self

    def predict(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the class of the nearest manifold, or the outlier label.

        ``effort`` and ``sample_mask`` are those of `patternfold.project`; searching harder hardly
        ever changes which manifold is nearest.
        """
        distances = self.distances(X, effort, sample_mask)
        found = self.classes_[distances.argmin(axis=1)]
        outlier = distances.min(axis=1) > self.outlier_threshold_
        if not outlier.any():
            return found
        return np.where(outlier, np.asarray(self.outlier_label_), found)

    def decision_function(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return −d² to each class; with two classes the difference, positive for the second."""
        scores = -(self.distances(X, effort, sample_mask).astype(np.float64) ** 2)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def distances(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the distance of each image to every class: to the nearest of its manifolds."""
        found = self.project(X, effort, sample_mask)
        return fitted_manifolds(self).by_class(found.distances)

    @in_blocks
    def project(
        self,
        X: Any,
        effort: str | Effort = "quick",
        sample_mask: Any = None,
        uncertainty: bool = False,
    ) -> Projection:
        """Project images on the manifolds of all M patterns: λ (N, M, d), distances (N, M).

        ``pattern_labels_`` tells the class of each.
        """
        check_is_fitted(self)
        pixels = pixels_to_project(self, X, sample_mask)
        return fitted_manifolds(self).project(pixels.rows, effort, pixels.counted, uncertainty)

    @property
    def symmetry_(self) -> list[Symmetry]:
        """Turns and mirrors that leave each pattern as it is."""
        check_is_fitted(self)
        return learned_symmetries(self)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `patternfold.load` reads."""
        from patternfold.persistence import save

        save(self, path)

    def _check_options(self) -> None:
        check_joint(self)

    def _problem(
        self, pixels: Pixels, labels: np.ndarray, weights: np.ndarray, amplitude: Amplitude
    ) -> tuple[JointProblem, np.ndarray]:
        """Return the images to learn from, and the place of each of the user's among them."""
        pixels = pixels.lowered(amplitude)
        index, summed, place = distinct_rows(pixels, weights, labels)
        images, labels = pixels.take(index), labels[index]
        blank = images.blank(self.offset)
        for m, name in enumerate(self.classes_):
            if blank[labels == m].all():
                raise ValueError(
                    f"All images of class {name!s} are blank or have no weight: there is no "
                    "pattern to learn. Leave the class out."
                )
        names = tuple(str(label) for label in self.classes_)
        whole = make_problem(self, images, summed, amplitude)
        return JointProblem(whole, labels, len(names), names), place

    def _store(
        self,
        learned: JointLearned,
        problem: JointProblem,
        inverse: np.ndarray,
        amplitude: Amplitude,
    ) -> None:
        """Set the fitted attributes, in the order and the unit of the user's images."""
        state, weights = learned.state, problem.all.weights
        self.patterns_: list[Pattern] = [amplitude.raised_pattern(p) for p in state.patterns]
        owners = state.owners or range(len(self.classes_))
        self.pattern_labels_ = self.classes_[list(owners)]
        self.transformation_ = problem.all.transformation
        terms = [
            known_terms(problem.all, own) for own in learned.terms or [None] * len(self.patterns_)
        ]
        self.loss_ = amplitude.raised_loss(terms[0][0])
        priors = [amplitude.raised_prior(prior) for _, prior in terms if prior is not None]
        self.prior_ = [p for p in priors if p is not None] or None
        # Images without weight took no part and have no λ.
        lam = state.lam[inverse]
        lam[inverse < 0] = np.nan
        self.cross_parameters_ = lam
        scale = np.array([weights.sum(), problem.all.energy])
        self.error_path_ = np.array(learned.path, np.float64) / scale
        self.n_iter_ = max(1, len(learned.path) - 1)
        self.stop_reason_ = learned.reason
        if learned.reason == INTERRUPTED:
            warnings.warn(
                "Learning was interrupted; the model holds the patterns found so far.",
                stacklevel=3,
            )
        threshold = self.outlier_threshold
        if threshold == "calibrate":
            nearest = amplitude.raised(np.sqrt(state.squares.min(axis=1)))
            threshold = float(np.quantile(nearest, 1 - REJECTED_SHARE))
        self.outlier_threshold_ = np.inf if threshold is None else float(threshold)
        named = self.classes_.dtype.kind in "OSU"
        default = "outlier" if named else -1
        self.outlier_label_ = default if self.outlier_label is None else self.outlier_label
