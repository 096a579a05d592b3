"""What the approximation experiments share: errors of patterns, and steps that learn them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold import PATS, Pattern, project
from patternfold.baselines import (
    LocallyLinearApproximation,
    MatchingPursuit,
    SimultaneousMatchingPursuit,
)
from patternfold.experiments.base import Values
from patternfold.experiments.options import family_of
from patternfold.model.transformations import AbstractTransformation, as_transformation

Family = str | AbstractTransformation

PURSUITS = {"MP": MatchingPursuit, "SMP": SimultaneousMatchingPursuit}


def normalised_error(pattern: Pattern, images: np.ndarray, transformation: Family) -> float:
    """Mean squared distance of the images to M(p) over their mean squared norm."""
    found = project(pattern, images, transformation, effort="normal")
    squares = found.distances.astype(np.float64) ** 2
    return float(squares.sum() / (images.astype(np.float64) ** 2).sum())


def errors_of_first_atoms(
    pattern: Pattern,
    images: np.ndarray,
    transformation: Family,
    counts: Sequence[int],
) -> np.ndarray:
    """Error of the pattern of the first k atoms, for each k of ``counts``."""
    atoms = [min(k, pattern.n_atoms) for k in counts]
    known = {
        k: normalised_error(pattern.take(slice(k)), images, transformation) for k in set(atoms)
    }
    return np.array([known[k] for k in atoms])


def learn_published(
    images: np.ndarray, n_atoms: int, counts: Sequence[int], options: dict[str, Any]
) -> Values:
    """Step: the published algorithm; nothing is revisited, so its first k atoms are those of k."""
    model = PATS.paper(n_atoms, random_state=0, **options).fit(images)
    family = family_of(options)
    errors = errors_of_first_atoms(model.pattern_, images, family, counts)
    return _described(model, errors)


def learn_ours(
    images: np.ndarray, n_atoms: int, counts: Sequence[int], options: dict[str, Any]
) -> Values:
    """Step: our default, with the error after each atom on its way."""
    model = PATS(n_atoms, random_state=0, **options).fit(images)
    path = model.error_path_
    return _described(model, np.array([path[min(k, len(path)) - 1] for k in counts]))


def pursue(
    method: str,
    aligned: np.ndarray,
    images: np.ndarray,
    n_atoms: int,
    counts: Sequence[int],
    options: dict[str, Any],
) -> Values:
    """Step: matching pursuit on aligned images, and how near its manifold is to the images."""
    mother = options.get("mother", "gaussian")
    model = PURSUITS[method](n_atoms, mother=mother).fit(aligned)
    errors = errors_of_first_atoms(model.pattern_, images, family_of(options), counts)
    return {"coef": model.pattern_.coef, "gamma": model.pattern_.gamma, "errors": errors}


def locally_linear(images: np.ndarray, transformation: str) -> Values:
    """Step: error of the planes through d + 1 neighbours."""
    n_neighbors = as_transformation(transformation).parameters.dim + 1
    return {"error": LocallyLinearApproximation(n_neighbors).fit(images).error_}


def pattern_of(values: Values, mother: str = "gaussian") -> Pattern:
    """Return the pattern that a step found."""
    return Pattern(values["coef"], values["gamma"], mother)


def ellipse(shape: tuple[int, ...]) -> np.ndarray:
    """1 inside the largest ellipse of an image, falling to 0 over two pixels at its rim."""
    rows, columns = (np.linspace(-1, 1, n) for n in shape)
    radius = np.hypot(rows[:, None], columns[None, :])
    return np.clip((1 - radius) * min(shape) / 4, 0, 1).astype(np.float32)


def early_end(values: Values, n_atoms: int) -> str:
    """Say so if the published algorithm ended before its last atom."""
    found = len(values["path"])
    if found >= n_atoms:
        return ""
    return (
        f"The published algorithm ended after {found} of {n_atoms} atoms, as it does when an atom "
        "that was improved on Ê raises E."
    )


def spread_about_centroid(aligned: np.ndarray) -> float:
    """Mean squared distance of images to their centroid over their mean squared norm."""
    away = aligned - aligned.mean(axis=0)
    return float((away**2).sum() / (aligned**2).sum())


def _described(model: PATS, errors: np.ndarray) -> Values:
    return {
        "coef": model.pattern_.coef,
        "gamma": model.pattern_.gamma,
        "path": model.error_path_,
        "errors": errors,
        "stopped": model.stop_reason_,
    }
