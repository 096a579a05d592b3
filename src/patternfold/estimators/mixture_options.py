"""Options of `PatternMixture`: checked, and turned into what the learning loop takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.estimators.options import check_counts, family_of, lighting_of
from patternfold.learning.mixture.mixture import MixtureSettings
from patternfold.learning.mixture.parts import PartSettings
from patternfold.model.pattern import MOST_ATOMS

PER_PART, PER_ROOT = 25, 1.2
"""Images for each part where there are many, and parts for the root of their number where few."""

MOST_PER_GROUP, LEAST_PER_GROUP = 40, 2
"""Parts for each group."""

USUAL_GROUPS = 10
"""Groups that the number of parts is chosen for, where that of the groups is to be chosen."""


def check_mixture(estimator: Any) -> None:
    """Check all options."""
    for name in ("n_patterns", "n_parts"):
        value = getattr(estimator, name)
        number = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if value != "auto" and not (number and value >= 1):
            raise ValueError(f"{name}={value!r} must be an integer of at least 1, or 'auto'.")
    check_counts(estimator, {"n_atoms": 1, "max_iter": 1, "n_init": 1})
    if estimator.n_atoms > MOST_ATOMS:
        raise ValueError(f"n_atoms={estimator.n_atoms} must be at most {MOST_ATOMS}.")
    for name in ("flexible", "outliers"):
        if not isinstance(getattr(estimator, name), (bool, np.bool_)):
            raise ValueError(f"{name}={getattr(estimator, name)!r} must be True or False.")
    n_patterns, n_parts = estimator.n_patterns, estimator.n_parts
    if "auto" not in (n_patterns, n_parts) and n_parts < n_patterns:
        raise ValueError(
            f"n_parts={n_parts} must not be below n_patterns={n_patterns}: each pattern has at "
            "least one part."
        )
    lighting_of(estimator)
    family_of(estimator)


def mixture_settings(estimator: Any, n_images: int, seed: int) -> MixtureSettings:
    """How a mixture of so many images is learned."""
    n_groups = None if estimator.n_patterns == "auto" else int(estimator.n_patterns)
    n_parts = estimator.n_parts
    if n_parts == "auto":
        n_parts = parts_for(n_images, n_groups)
    n_iter = int(estimator.max_iter)
    parts = PartSettings(int(n_parts), n_iter, n_hard=-(-n_iter // 3), seed=seed)
    flexible, outliers = bool(estimator.flexible), bool(estimator.outliers)
    n_init, n_atoms = int(estimator.n_init), int(estimator.n_atoms)
    return MixtureSettings(parts, n_groups, n_init, n_atoms, flexible, outliers)


def parts_for(n_images: int, n_groups: int | None) -> int:
    """A number of parts that leaves enough images for each."""
    wanted = max(n_images / PER_PART, PER_ROOT * np.sqrt(n_images))
    groups = USUAL_GROUPS if n_groups is None else n_groups
    least = LEAST_PER_GROUP * groups if n_groups is not None else 1
    count = min(max(round(wanted), least), MOST_PER_GROUP * groups)
    return max(groups if n_groups is not None else 1, min(count, -(-n_images // 2)))
