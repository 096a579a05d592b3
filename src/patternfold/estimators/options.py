"""Options that the estimators share: checked, and turned into what the learning loops take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from patternfold._validation import unknown_name
from patternfold.estimators.images import Pixels
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.choose import MOST_CHOSEN
from patternfold.learning.lighting import Lighting
from patternfold.learning.observations import Observations
from patternfold.learning.pats import PROJECTIONS
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.select.solvers import as_solver
from patternfold.learning.state import Progress
from patternfold.model.atoms import AtomFamily
from patternfold.model.dictionaries import as_dictionary
from patternfold.model.grid import Grid
from patternfold.model.losses import AbstractLoss, as_loss
from patternfold.model.mothers import as_mother
from patternfold.model.pattern import MOST_ATOMS
from patternfold.model.prior import LEARNED, Prior, as_prior
from patternfold.model.transformations import AbstractTransformation, as_transformation

REFITS = ("all", "coefficients", None)
REFERENCES = ("centroid", "farthest")
AUTO = "auto"
"""The number of atoms by a rule, see `patternfold.learning.choose`."""


def is_auto(n_atoms: Any) -> bool:
    """Whether the number of atoms is to be chosen."""
    return isinstance(n_atoms, str) and n_atoms == AUTO


def check_atoms(name: str, value: Any) -> None:
    """Refuse numbers of atoms that are neither an integer within its limits nor "auto"."""
    if is_auto(value):
        return
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1, or {AUTO!r}.")
    if value > MOST_ATOMS:
        raise ValueError(f"{name}={value} must be at most {MOST_ATOMS}.")


def check_counts(estimator: Any, least: dict[str, int]) -> None:
    """Refuse options that are no integers of at least so much."""
    for name, bound in least.items():
        value = getattr(estimator, name)
        if not isinstance(value, (int, np.integer)) or value < bound:
            raise ValueError(f"{name}={value!r} must be an integer of at least {bound}.")


def check_learning(estimator: Any) -> None:
    """Check the options of atom selection."""
    if estimator.projection not in PROJECTIONS:
        raise unknown_name("projection", estimator.projection, PROJECTIONS)
    if estimator.refit not in REFITS:
        raise ValueError(f"refit={estimator.refit!r} must be 'all', 'coefficients' or None.")
    reference = estimator.reference
    if isinstance(reference, str) and reference not in REFERENCES:
        raise unknown_name("reference", reference, REFERENCES)
    check_counts(estimator, {"n_starts": 1, "n_exchanges": 0})
    lighting_of(estimator)
    as_loss(estimator.loss)
    check_prior(estimator)
    family = family_of(estimator)
    solver = as_solver(estimator.solver, estimator.solver_options)
    solver.check(family.mother, family.dictionary)


def family_of(estimator: Any) -> AtomFamily:
    """What the estimator's atoms are made of."""
    return AtomFamily(as_mother(estimator.mother), as_dictionary(estimator.dictionary))


def transformation_of(estimator: Any) -> Any:
    """The estimator's transformation on its bounds, which may be in pixels of its images."""
    family = as_transformation(estimator.transformation)
    return family.with_bounds(estimator.bounds or {}, Grid(*estimator.image_shape_).pixel)


def lighting_of(estimator: Any) -> Lighting:
    """Which of gain and offset are an image's own."""
    for name in ("gain", "offset"):
        if not isinstance(getattr(estimator, name), (bool, np.bool_)):
            raise ValueError(f"{name}={getattr(estimator, name)!r} must be True or False.")
    return Lighting(bool(estimator.gain), bool(estimator.offset))


def check_prior(estimator: Any) -> None:
    """Refuse a prior that is none, before there are images."""
    if isinstance(estimator.prior, str) and estimator.prior != LEARNED:
        raise ValueError(
            f"prior={estimator.prior!r} must be {LEARNED!r}, a dict such as "
            "{'theta': (0, 0.2)} or None."
        )


def prior_of(estimator: Any, family: AbstractTransformation) -> Prior | str | None:
    """The prior asked for, checked against the family on its bounds."""
    if isinstance(estimator.prior, str):
        check_prior(estimator)
        return LEARNED
    return as_prior(estimator.prior, family, Grid(*estimator.image_shape_).pixel)


def make_problem(
    estimator: Any, images: Pixels, weights: np.ndarray, amplitude: Amplitude
) -> Problem:
    """Put the images to learn from on the devices, and add the model's components."""
    grid, lighting = Grid(*estimator.image_shape_), lighting_of(estimator)
    observations = Observations.put(images.rows, grid, weights, images.counted, lighting=lighting)
    family = transformation_of(estimator)
    prior = prior_of(estimator, family)
    return Problem(
        observations,
        family,
        family_of(estimator),
        loss=amplitude.lowered_loss(as_loss(estimator.loss)),
        prior=prior if isinstance(prior, str) else amplitude.lowered_prior(prior),
    )


def common_terms(
    terms: Sequence[tuple[AbstractLoss, Prior | None]],
) -> tuple[AbstractLoss, list[Prior] | None]:
    """Loss and priors of classes that were learned one by one, at the median of their scales."""
    losses, priors = zip(*terms, strict=True)
    loss, known = losses[0], [prior for prior in priors if prior is not None]
    if loss.scale is not None:
        loss = loss.with_scale(float(np.median([own.scale for own in losses])))
    if len(known) < len(terms):
        return loss, None
    noise = [prior.noise for prior in known if prior.noise is not None]
    return loss, [prior.with_noise(np.median(noise) if noise else None) for prior in known]


def announce(estimator: Any, images: Observations) -> None:
    """Say what begins, where the estimator is verbose: the first atom may take its time."""
    if estimator.verbose:
        height, width = images.grid.shape
        text = f"learning from {len(images)} images of {height}×{width} pixels"
        print(f"{text} (code is compiled on first use)", file=sys.stderr, flush=True)


def make_settings(estimator: Any, n_atoms: int | str, tol: float, seed: int) -> Settings:
    """How a pattern is learned."""
    return Settings(
        n_atoms=MOST_CHOSEN if is_auto(n_atoms) else int(n_atoms),
        choose=is_auto(n_atoms),
        tol=tol,
        tangent_refinement=estimator.tangent_refinement,
        refit=estimator.refit,
        projection=estimator.projection,
        n_starts=int(estimator.n_starts),
        n_exchanges=int(estimator.n_exchanges),
        stop_on_increase=estimator.refit is None,
        seed=seed,
        solver=as_solver(estimator.solver, estimator.solver_options),
    )


def make_callback(estimator: Any) -> Callable[[Progress], object] | None:
    """Return the user's callback, which also prints where the estimator is verbose."""
    if not estimator.verbose:
        return estimator.callback

    def tell(progress: Progress) -> object:
        print(progress, file=sys.stderr, flush=True)
        return estimator.callback(progress) if estimator.callback is not None else None

    return tell
