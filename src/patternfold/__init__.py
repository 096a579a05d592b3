"""Learn patterns from unaligned images: pattern transformation manifolds.

Names are imported when they are first used, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from patternfold._version import __version__

if TYPE_CHECKING:
    from patternfold.estimators import (
        JPATS,
        PATS,
        AlignedViews,
        AlignedViewsClassifier,
        PatternMixture,
    )
    from patternfold.estimators.streams_out import stream
    from patternfold.files.stacks import open_stack
    from patternfold.learning.effort import Effort
    from patternfold.learning.project import Projection, align, project, warp
    from patternfold.model.box import Box
    from patternfold.model.dictionaries import AtomDictionary, CustomDictionary
    from patternfold.model.grid import Grid
    from patternfold.model.losses import Huber, Squared, StudentT
    from patternfold.model.matrices import matrices
    from patternfold.model.mothers import CustomMother, Gaussian, InverseMultiquadric
    from patternfold.model.pattern import Pattern
    from patternfold.model.prior import Prior
    from patternfold.model.transformations import (
        Affine,
        Bend,
        CustomTransformation,
        Elastic,
        Projective,
        RotationTranslation,
        RotationTranslationScaling,
        Scaling,
        Shear,
        Similarity,
        StrokeWidth,
        Translation,
    )
    from patternfold.persistence import load

__all__ = [
    "JPATS",
    "PATS",
    "Affine",
    "AlignedViews",
    "AlignedViewsClassifier",
    "AtomDictionary",
    "Bend",
    "Box",
    "CustomDictionary",
    "CustomMother",
    "CustomTransformation",
    "Effort",
    "Elastic",
    "Gaussian",
    "Grid",
    "Huber",
    "InverseMultiquadric",
    "Pattern",
    "PatternMixture",
    "Prior",
    "Projection",
    "Projective",
    "RotationTranslation",
    "RotationTranslationScaling",
    "Scaling",
    "Shear",
    "Similarity",
    "Squared",
    "StrokeWidth",
    "StudentT",
    "Translation",
    "__version__",
    "align",
    "load",
    "matrices",
    "open_stack",
    "project",
    "stream",
    "warp",
]

_HOMES = {
    "estimators": ("JPATS", "PATS", "AlignedViews", "AlignedViewsClassifier", "PatternMixture"),
    "estimators.streams_out": ("stream",),
    "files.stacks": ("open_stack",),
    "learning.effort": ("Effort",),
    "learning.project": ("Projection", "align", "project", "warp"),
    "model.box": ("Box",),
    "model.dictionaries": ("AtomDictionary", "CustomDictionary"),
    "model.grid": ("Grid",),
    "model.losses": ("Huber", "Squared", "StudentT"),
    "model.matrices": ("matrices",),
    "model.mothers": ("CustomMother", "Gaussian", "InverseMultiquadric"),
    "model.pattern": ("Pattern",),
    "model.prior": ("Prior",),
    "model.transformations": (
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
        "Translation",
    ),
    "persistence": ("load",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {
    "baselines",
    "datasets",
    "dc",
    "dictionaries",
    "estimators",
    "experiments",
    "export",
    "files",
    "losses",
    "manifold",
    "mothers",
    "persistence",
    "plotting",
    "projection",
    "report",
    "solvers",
    "symmetry",
    "testing",
    "transformations",
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
