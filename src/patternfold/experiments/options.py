"""Options of the manifolds, as all experiments hand them on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternfold.model.transformations import AbstractTransformation, as_transformation

Options = Mapping[str, Any]
"""``transformation``, ``bounds`` and others of the manifold learners."""


def family_of(options: Options) -> AbstractTransformation:
    """Return the transformation with its box Λ."""
    family = as_transformation(options.get("transformation", "rotation-translation-scaling"))
    return family.with_bounds(options.get("bounds", {}))
