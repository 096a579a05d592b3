"""Learn patterns from unaligned images: pattern transformation manifolds."""

from patternfold._version import __version__
from patternfold.box import Box
from patternfold.dictionary import AtomDictionary, CustomDictionary
from patternfold.estimators import PATS
from patternfold.grid import Grid
from patternfold.mothers import CustomMother, Gaussian, InverseMultiquadric
from patternfold.pattern import Pattern
from patternfold.persistence import load
from patternfold.projection import Projection, align, project, warp
from patternfold.transformations import (
    Affine,
    CustomTransformation,
    RotationTranslation,
    RotationTranslationScaling,
    Scaling,
    Similarity,
    Translation,
)

__all__ = [
    "PATS",
    "Affine",
    "AtomDictionary",
    "Box",
    "CustomDictionary",
    "CustomMother",
    "CustomTransformation",
    "Gaussian",
    "Grid",
    "InverseMultiquadric",
    "Pattern",
    "Projection",
    "RotationTranslation",
    "RotationTranslationScaling",
    "Scaling",
    "Similarity",
    "Translation",
    "__version__",
    "align",
    "load",
    "project",
    "warp",
]
