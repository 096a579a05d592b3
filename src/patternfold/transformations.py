"""Transformations: `patternfold.model.transformations` by its public name."""

from patternfold.model.transformations import (
    TRANSFORMATIONS,
    AbstractAffineTransformation,
    AbstractTransformation,
    Affine,
    CustomTransformation,
    RotationTranslation,
    RotationTranslationScaling,
    Scaling,
    Similarity,
    Translation,
    as_transformation,
)

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
