"""`PatternMixture`: several patterns in one set of images, as a scikit-learn clusterer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.assignment import Assignment, assignment_of
from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import ImageEstimator, Pixels, as_weights, pixels_of
from patternfold.estimators.mixture_fitted import at_places, store_mixture, store_shares
from patternfold.estimators.mixture_images import Given, compared_images, given_images, raised_by
from patternfold.estimators.mixture_options import check_mixture, mixture_settings
from patternfold.estimators.saving import SavingMixin
from patternfold.estimators.stack_mixture import fit_mixture
from patternfold.estimators.streams import in_blocks
from patternfold.files.stacks import as_stack
from patternfold.learning.mixture.mixture import Assigned, Mixture, MixtureLearned, learn_mixture
from patternfold.learning.project import align
from patternfold.learning.state import Progress
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.precision import precision


class PatternMixture(SavingMixin, ClusterMixin, TransformerMixin, ImageEstimator):
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
    n_init : int, default=1
        How often parts are learned, from other images each time; those that leave least of the
        images are kept, and all tell which of these belong together. With few images 3 finds
        kinds that 1 leaves in doubt. No labels are asked for.
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

    parts_: list[Pattern]
    patterns_: list[Pattern]
    part_labels_: np.ndarray
    limits_: np.ndarray
    labels_: np.ndarray
    _pictures: np.ndarray
    _exponent: int
    transformation_: AbstractTransformation
    temperature_: float
    noise_: float | None
    proportions_: np.ndarray
    outlier_share_: float
    parameters_: np.ndarray
    merge_tree_: np.ndarray
    eigenvalues_: np.ndarray
    error_path_: np.ndarray
    n_iter_: int
    stop_reason_: str

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
        n_init: int = 1,
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
        self.n_init = n_init
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
        X : array of shape (N, H, W) or (N, H·W), Stack or path
            Images u_i. A stack is learned from as docs/scaling.md tells.
        y : ignored
        sample_weight : array of shape (N,), optional
            Weights w_i ≥ 0 of the images.
        sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
            True where a pixel counts; NaN never does.
        """
        if (stack := as_stack(X)) is not None:
            with fitting(self):
                fit_mixture(self, stack, sample_weight, sample_mask)
            return self
        with fitting(self):
            check_mixture(self)
            pixels = pixels_of(self, X, sample_mask, reset=True)
            weights = as_weights(sample_weight, len(pixels.rows))
            with precision(pixels.rows.dtype):
                given = given_images(self, pixels, weights)
                learned = self._learn(given)
                store_mixture(self, learned, given.amplitude)
                images, place = given.problem.observations, given.place
                if (place >= 0).all():
                    scale = raised_by(self, images.grid)
                    found = at_places(learned.assigned, place)
                    self.assignment_ = self._assignment(found, images.squares[place], scale)
                else:  # images without weight took no part; they belong somewhere all the same
                    self.assignment_ = self._assigned(pixels)
            store_shares(self, weights)
        return self

    def _learn(self, given: Given) -> MixtureLearned:
        """Sweep over the images: learn parts, merge them, make patterns of them."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        images = given.problem.observations
        settings = mixture_settings(self, len(images), seed)
        return learn_mixture(given.problem, settings, self._report(len(images)))

    def predict(self, X: Any, sample_mask: Any = None) -> np.ndarray:
        """Return the group of each image, −1 for those that fit none."""
        return self.assign(X, sample_mask).labels

    @in_blocks
    def assign(self, X: Any, sample_mask: Any = None) -> Assignment:
        """Return the group, part, pose, distance and confidence of each image."""
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        with precision(pixels.rows.dtype):
            return self._assigned(pixels)

    @in_blocks
    def transform(self, X: Any, sample_mask: Any = None) -> np.ndarray:
        """Return the distance ‖u − g·U_λ(p) − b‖ of each image to every group, shape (N, G).

        It is that to the group's best part, without small displacements.
        """
        check_is_fitted(self)
        pixels = pixels_of(self, X, sample_mask, reset=False)
        with precision(pixels.rows.dtype):
            images, scale = compared_images(self, pixels)
            squares = self.mixture_.group_squares(images)
        return (scale * np.sqrt(squares)).astype(pixels.rows.dtype)

    @in_blocks
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
            images, _ = compared_images(self, pixels)
            found, squares = self.mixture_.assign(images), images.squares
        total = (weights * squares).sum()
        return float(1 - (weights * found.square).sum() / total) if total else 1.0

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

    def _assigned(self, pixels: Pixels) -> Assignment:
        images, scale = compared_images(self, pixels)
        return self._assignment(self.mixture_.assign(images), images.squares, scale)

    def _assignment(self, found: Assigned, squares: np.ndarray, scale: float) -> Assignment:
        return assignment_of(found, squares, self.limits_, scale, self._exponent)

    def _report(self, count: int) -> Callable[[str, float], bool]:
        """Return what tells the user of each pass over so many images."""

        def tell(stage: str, misfit: float) -> bool:
            if self.verbose:
                line = f"{stage}: {count} images, misfit {misfit:.4f}"
                print(line, file=sys.stderr, flush=True)
            if self.callback is None:
                return False
            return self.callback(Progress(count, 0, 0, misfit, 0.0, stage)) is True

        return tell
