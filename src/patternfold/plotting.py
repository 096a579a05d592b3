"""Displays: `patternfold.show.plotting` by its public name."""

from patternfold.show.plotting import (
    AlignmentDisplay,
    ContactSheetDisplay,
    ErrorPathDisplay,
    ManifoldDisplay,
    PatternDisplay,
)

__all__ = [
    "AlignmentDisplay",
    "ContactSheetDisplay",
    "ErrorPathDisplay",
    "ManifoldDisplay",
    "PatternDisplay",
]
