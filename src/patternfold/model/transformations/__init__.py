"""Geometric transformations a(λ, x, y), by name or as objects."""

from __future__ import annotations

from typing import Any

from patternfold._validation import lookup
from patternfold.model.transformations.affine import Affine
from patternfold.model.transformations.base import (
    AbstractAffineTransformation,
    AbstractTransformation,
)
from patternfold.model.transformations.custom import CustomTransformation
from patternfold.model.transformations.rotation_translation import RotationTranslation
from patternfold.model.transformations.rotation_translation_scaling import (
    RotationTranslationScaling,
)
from patternfold.model.transformations.scaling import Scaling
from patternfold.model.transformations.similarity import Similarity
from patternfold.model.transformations.translation import Translation

TRANSFORMATIONS: dict[str, type[AbstractTransformation]] = {
    "translation": Translation,
    "scaling": Scaling,
    "rotation-translation": RotationTranslation,
    "similarity": Similarity,
    "rotation-translation-scaling": RotationTranslationScaling,
    "affine": Affine,
}
"""Families by name: files, pages and the command line know those that stand here."""

__all__ = [
    "TRANSFORMATIONS",
    "AbstractAffineTransformation",
    "AbstractTransformation",
    "Affine",
    "CustomTransformation",
    "RotationTranslation",
    "RotationTranslationScaling",
    "Scaling",
    "Similarity",
    "Translation",
    "as_transformation",
]


def as_transformation(transformation: str | AbstractTransformation) -> AbstractTransformation:
    """Return a transformation from its name, or the object itself."""
    if isinstance(transformation, AbstractTransformation):
        return transformation
    if not isinstance(transformation, str):
        raise TypeError(
            f"transformation={transformation!r} must be a name or a transformation object; "
            "wrap a function of (lam, x, y) in CustomTransformation."
        )
    kind: Any = lookup("transformation", transformation, TRANSFORMATIONS)
    return kind()
