"""JPATS as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from patternfold.estimators.checkpoints import checkpointing
from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import as_targets, as_weights, pixels_of
from patternfold.estimators.joint_images import joint_problem, store_joint
from patternfold.estimators.joint_options import check_joint, for_images, joint_settings
from patternfold.estimators.nearest_manifold import NearestManifold
from patternfold.estimators.options import announce, make_callback
from patternfold.estimators.pats import PATS
from patternfold.estimators.stack_classes import fit_jointly
from patternfold.files.stacks import as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.jpats import learn_jointly
from patternfold.learning.select.solvers import AbstractSolver
from patternfold.learning.state import INTERRUPTED, Progress
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.losses import AbstractLoss
from patternfold.model.mothers import AbstractMother
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.precision import precision


class JPATS(NearestManifold):
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
        which is 1 in the paper; by default from 0.5 to 4 along a sigmoid, where the paper goes to
        10. With "auto" it rises from 0.1 to 2 in units of the mean ``|f|``. With "cv" it is chosen
        among such schedules, and C among multiples of itself, by what patterns of two thirds of the
        images misclassify of the last third: 12 fits for α and 6 for C. With 0 every class is
        learned alone, as by `PATS`.
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
        first, and takes as many steps as lower the error of these, at least three.
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

    cross_parameters_: np.ndarray
    error_path_: np.ndarray
    n_iter_: int

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
                fit_jointly(self, stack, y, sample_weight, sample_mask)
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
                problem, inverse = joint_problem(self, pixels, labels, weights, amplitude)
                announce(self, problem.all.observations)
                settings, trials = for_images(settings, self, problem, amplitude)
                learned = learn_jointly(problem, settings, self.reference, make_callback(self))
            if interrupts.asked:
                learned = learned._replace(reason=INTERRUPTED)
            store_joint(self, learned, problem, inverse, amplitude)
            self.cv_trials_ = trials
        return self

    def _check_options(self) -> None:
        check_joint(self)
