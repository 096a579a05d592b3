"""Learn patterns from unaligned images: pattern transformation manifolds.

Names are imported when they are first used, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from patternfold._version import __version__

if TYPE_CHECKING:
    from patternfold.box import Box
    from patternfold.dictionary import AtomDictionary, CustomDictionary
    from patternfold.estimators import JPATS, PATS, AlignedViews, AlignedViewsClassifier
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
    "JPATS",
    "PATS",
    "Affine",
    "AlignedViews",
    "AlignedViewsClassifier",
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

_HOMES = {
    "box": ("Box",),
    "dictionary": ("AtomDictionary", "CustomDictionary"),
    "estimators": ("JPATS", "PATS", "AlignedViews", "AlignedViewsClassifier"),
    "grid": ("Grid",),
    "mothers": ("CustomMother", "Gaussian", "InverseMultiquadric"),
    "pattern": ("Pattern",),
    "persistence": ("load",),
    "projection": ("Projection", "align", "project", "warp"),
    "transformations": (
        "Affine",
        "CustomTransformation",
        "RotationTranslation",
        "RotationTranslationScaling",
        "Scaling",
        "Similarity",
        "Translation",
    ),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {
    *_HOMES,
    "baselines",
    "datasets",
    "experiments",
    "files",
    "manifold",
    "plotting",
    "report",
    "testing",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a public module, when it is first asked for."""
    if name in _MODULE_OF:
        value = getattr(import_module(f"patternfold.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"patternfold.{name}")
    raise AttributeError(f"module 'patternfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*__all__, *_MODULES})
