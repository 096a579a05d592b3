"""Geometric transformations a(λ, x, y), by name or as objects."""

from __future__ import annotations

from typing import Any

from patternfold._validation import lookup
from patternfold.model.transformations.affine import Affine
from patternfold.model.transformations.base import (
    AbstractAffineTransformation,
    AbstractTransformation,
)
from patternfold.model.transformations.bend import Bend
from patternfold.model.transformations.custom import CustomTransformation
from patternfold.model.transformations.elastic import Elastic
from patternfold.model.transformations.projective import Projective
from patternfold.model.transformations.rotation_translation import RotationTranslation
from patternfold.model.transformations.rotation_translation_scaling import (
    RotationTranslationScaling,
)
from patternfold.model.transformations.scaling import Scaling
from patternfold.model.transformations.shear import Shear
from patternfold.model.transformations.similarity import Similarity
from patternfold.model.transformations.smooth import AbstractSmoothTransformation
from patternfold.model.transformations.stroke_width import StrokeWidth
from patternfold.model.transformations.sum import Sum, sum_of
from patternfold.model.transformations.translation import Translation

TRANSFORMATIONS: dict[str, type[AbstractTransformation]] = {
    "translation": Translation,
    "scaling": Scaling,
    "rotation-translation": RotationTranslation,
    "similarity": Similarity,
    "rotation-translation-scaling": RotationTranslationScaling,
    "affine": Affine,
    "shear": Shear,
    "bend": Bend,
    "projective": Projective,
    "elastic": Elastic,
    "stroke-width": StrokeWidth,
}
"""Families by name: files, pages and the command line know those that stand here, and their sums,
such as ``"similarity+bend"``."""

__all__ = [
    "TRANSFORMATIONS",
    "AbstractAffineTransformation",
    "AbstractSmoothTransformation",
    "AbstractTransformation",
    "Affine",
    "Bend",
    "CustomTransformation",
    "Elastic",
    "Projective",
    "RotationTranslation",
    "RotationTranslationScaling",
    "Scaling",
    "Shear",
    "Similarity",
    "StrokeWidth",
    "Sum",
    "Translation",
    "as_transformation",
    "sum_of",
]


def as_transformation(transformation: str | AbstractTransformation) -> AbstractTransformation:
    """Return a transformation from its name, or that of a sum of families, or the object itself.

    Examples
    --------
    >>> as_transformation("similarity").parameters.names
    ('theta', 'tx', 'ty', 's')
    >>> as_transformation("rotation-translation+bend").parameters.names
    ('theta', 'tx', 'ty', 'bend')
    """
    if isinstance(transformation, AbstractTransformation):
        return transformation
    if not isinstance(transformation, str):
        raise TypeError(
            f"transformation={transformation!r} must be a name or a transformation object; "
            "wrap a function of (lam, x, y) in CustomTransformation."
        )
    kinds: list[Any] = [
        lookup("transformation", name.strip(), TRANSFORMATIONS)
        for name in transformation.split("+")
    ]
    return sum_of([kind() for kind in kinds])
