"""The estimator `PATS`: a scikit-learn transformer around Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from patternfold.estimators.checkpoints import checkpointing
from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import as_weights, pixels_of
from patternfold.estimators.learned_pattern import LearnedPattern
from patternfold.estimators.online import PartialFitMixin
from patternfold.estimators.options import (
    announce,
    check_atoms,
    check_learning,
    make_callback,
    make_settings,
)
from patternfold.estimators.pattern_images import pattern_problem, store_pattern
from patternfold.estimators.references import anchor_of, reference_of
from patternfold.estimators.streams import fit_stack
from patternfold.files.stacks import as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.run import run
from patternfold.learning.select.solvers import AbstractSolver
from patternfold.learning.state import INTERRUPTED, Progress
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.losses import AbstractLoss
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound
from patternfold.numerics.precision import precision


class PATS(PartialFitMixin, LearnedPattern):
    r"""Learn one pattern, and each image's transformation, from unaligned images.

    Parameterised atom selection (Algorithm 1 of the paper): the pattern is a sum of atoms, found
    one by one so that the transformed patterns come as near as possible to all images,

    .. math:: E = \sum_i w_i \min_{λ_i} \|u_i - U_{λ_i}(\sum_j c_j φ_{γ_j})\|^2 .

    The defaults go beyond the paper: λ is searched over the whole box as the pattern grows, and all
    atoms, coefficients and λ are corrected together. `PATS.paper` gives the published algorithm.

    Parameters
    ----------
    n_atoms : int or "auto", default=20
        Number of atoms K of the pattern. "auto" adds atoms as long as each lowers the error by
        1 %, at most 40: the error on one image in four, held out, or, with fewer than twelve
        images, that of the images themselves, corrected for the number of parameters.
    transformation : str or transformation, default="rotation-translation-scaling"
        How the images differ: "translation", "scaling", "rotation-translation", "similarity",
        "rotation-translation-scaling" (the paper's), "affine", or an object.
    mother : str or mother function, default="gaussian"
        φ: "gaussian", "inverse-multiquadric", or an object.
    dictionary : str or dictionary, optional
        How atoms are made from φ: "atoms", the paper's and the default, or an object.
    bounds : dict, optional
        Bounds of transformation parameters by name, such as ``{"theta": (-0.5, 0.5)}`` in
        radians and half sides of the image, or ``{"theta": ("-30deg", "30deg"), "tx": ("-5px",
        "5px")}`` in degrees and pixels of the images.
    reference : {"centroid", "farthest"}, int, array or Pattern, default="centroid"
        Ψ, on whose manifold the images are first projected: the image nearest the centroid or
        farthest from it, an image by its index, another image, or a pattern. One that is not chosen
        by name is also what the learned pattern stands like: its λ is the identity.
    solver : str or solver, default="search"
        How an atom is found that minimises Ẽ: by our own global search, "search", or by DC
        programming after a particle swarm, "cutting-plane", "branch-and-bound" or "dca", for which
        φ and the dictionary must have a DC decomposition; or a solver object.
    solver_options : dict, optional
        Options of a solver given by name. DC solvers have limits for each atom: ``max_iter``,
        ``time_limit`` in seconds, ``tol``. By default the cutting plane makes 60 cuts in at most
        30 s; the others stop after 10 s. The cutting plane also takes ``decomposition="rules"``,
        that of the paper's appendices.
    tangent_refinement : bool, default=True
        Improve each new atom on the tangent distance error Ê.
    refit : {"all", "coefficients", None}, default="all"
        What is corrected after each atom: all atoms, coefficients and λ together; only the
        coefficients; or nothing, as in the paper.
    projection : {"global", "local", "line-search", "fixed"}, default="global"
        How λ is updated after each atom: searched over the whole box (where everything is corrected
        together, after each of the first six atoms, then after every third and the last one);
        improved near its last value; likewise by the paper's line search; or kept ("high-speed
        mode" of the paper).
    n_starts : int, default=2
        Number of references that are tried for a few atoms, the one asked for, the centroid's,
        the farthest, then others; the best start is kept.
    n_exchanges : int, default=2
        Most atoms to exchange for better ones at the end.
    gain, offset : bool, default=False
        Whether each image has a gain g_i ≥ 0 and an offset b_i of its own, so that it is
        g_i·U_λi(p) + b_i: for images of varying contrast and background. The error is then that
        at the best ones, and is divided by the energy that images have about their own offsets.
    loss : {"squared", "huber", "student-t"} or loss, default="squared"
        What residuals cost: their squares, or less where they are large. With "student-t" outlying
        pixels, and images that are of something else, hardly count. The scale of ordinary
        residuals is estimated as the pattern grows, unless the loss has one.
    prior : dict, "learned" or Prior, optional
        Which λ are likely, such as ``{"theta": (0, 0.2), "tx": (0, 0.1)}`` with mean and standard
        deviation, as in `patternfold.project`; or learned from the λ of the images.
    tol : float, default=1e-5
        Stop when an atom lowers the error by less than this share of it.
    image_shape : (H, W), optional
        Shape of flattened images; by default a square, or one row of pixels.
    warm_start : bool, default=False
        Go on from the last fit and add atoms.
    random_state : int, RandomState or None, default=None
        Seed; only solvers of DC programming and dictionaries without shapes need random numbers.
    callback : callable, optional
        Called with a `Progress` after each atom and each long correction; return True to stop.
    verbose : int, default=0
        Print progress to standard error.

    Attributes
    ----------
    pattern_ : Pattern
        The learned pattern p.
    parameters_ : array of shape (N, d)
        λ of the training images; names from `get_feature_names_out`.
    gain_, offset_ : arrays of shape (N,)
        g and b of the training images; 1 and 0 where they are not their own.
    loss_ : loss
        The loss with its scale.
    prior_ : Prior or None
        The prior on λ, with the variance of a pixel's noise in whose units it counts.
    error_path_ : array
        Normalised error Σ w_i d²(u_i, M(p)) / Σ w_i‖u_i‖² after each atom; with another loss than
        the squared one, E at the scale of the residuals then.
    n_iter_ : int
        Number of atoms selected.
    stop_reason_ : str
        Why learning stopped.
    image_shape_ : (H, W)
        Shape of the images.
    transformation_ : transformation
        The family with its bounds.
    n_features_in_ : int
        Number of pixels.
    symmetry_ : Symmetry
        Turns and mirrors that leave the pattern as it is; worked out when first asked for.

    References
    ----------
    E. Vural and P. Frossard, Learning Smooth Pattern Transformation Manifolds, IEEE Transactions
    on Image Processing, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import PATS, Pattern, datasets
    >>> truth = Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]])
    >>> images, _ = datasets.random_images(truth, 8, np.random.default_rng(0), "translation",
    ...                                    shape=(16, 16))
    >>> model = PATS(n_atoms=2, transformation="translation").fit(images)
    >>> bool(model.error_path_[-1] < 1e-3)
    True
    """

    def __init__(
        self,
        n_atoms: int | str = 20,
        *,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        mother: str | AbstractMother = "gaussian",
        dictionary: str | AbstractDictionary | None = None,
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        reference: str | int | np.ndarray | Pattern = "centroid",
        solver: str | AbstractSolver = "search",
        solver_options: Mapping[str, Any] | None = None,
        tangent_refinement: bool = True,
        refit: str | None = "all",
        projection: str = "global",
        n_starts: int = 2,
        n_exchanges: int = 2,
        gain: bool = False,
        offset: bool = False,
        loss: str | AbstractLoss = "squared",
        prior: Mapping[str, tuple[Bound, Bound]] | str | Prior | None = None,
        tol: float = 1e-5,
        image_shape: tuple[int, int] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
        verbose: int = 0,
    ):
        self.n_atoms = n_atoms
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
        self.gain = gain
        self.offset = offset
        self.loss = loss
        self.prior = prior
        self.tol = tol
        self.image_shape = image_shape
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def paper(cls, n_atoms: int | str = 20, **options: Any) -> PATS:
        """Return an estimator with the published algorithm: greedy, nothing revisited.

        Atoms are chosen on Ẽ by a preliminary search and the cutting plane and improved on Ê, λ
        follows by line search from its last value, and learning ends when an atom raises the
        error.
        """
        settings: dict[str, Any] = {
            "solver": "cutting-plane",
            "refit": None,
            "projection": "line-search",
            "n_starts": 1,
            "n_exchanges": 0,
            "tol": 0.0,
        }
        return cls(n_atoms, **(settings | options))

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        sample_mask: Any = None,
        checkpoint: str | Path | None = None,
    ) -> PATS:
        """Learn the pattern.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W), Stack or path
            Images u_i. Those of a stack (`patternfold.files.open_stack`), a zarr array, an h5py
            dataset or a Dask array are read block by block; see docs/scaling.md.
        y : ignored
        sample_weight : array of shape (N,), optional
            Weights w_i ≥ 0 of the images.
        sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
            True where a pixel counts; NaN never does.
        checkpoint : path, optional
            File in which every step is kept, and from which a run that was killed goes on: with
            the same images and options it ends where it would have without a break.
        """
        data = {"sample_weight": sample_weight, "sample_mask": sample_mask}
        keeping = checkpointing(self, checkpoint, X, **data)
        with fitting(self) as interrupts, keeping:
            self._check_options()
            if (stack := as_stack(X)) is not None:
                fit_stack(self, stack, sample_weight, sample_mask)
                return self
            pixels = pixels_of(self, X, sample_mask, reset=True)
            rows = pixels.rows
            weights = as_weights(sample_weight, len(rows))
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            settings = make_settings(self, self.n_atoms, self.tol, seed)
            amplitude = Amplitude.of_images("X", rows)
            with precision(rows.dtype):
                lowered = pixels.lowered(amplitude)
                problem, inverse = pattern_problem(self, lowered, weights, amplitude)
                announce(self, problem.observations)
                reference = reference_of(self, problem, rows, inverse, amplitude)
                problem = replace(problem, anchor=anchor_of(self, rows, inverse))
                learned = run(problem, settings, reference, make_callback(self))
            if interrupts.asked:
                learned = learned._replace(reason=INTERRUPTED)
            store_pattern(self, learned, problem, pixels, inverse, amplitude)
        return self

    def _check_options(self) -> None:
        check_atoms("n_atoms", self.n_atoms)
        check_learning(self)
        if not self.tol >= 0:
            raise ValueError(f"tol={self.tol!r} must not be negative.")
