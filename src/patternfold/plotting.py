"""Displays: `patternfold.show.plotting` by its public name."""

from patternfold.show.plotting import (
    AlignmentDisplay,
    ErrorPathDisplay,
    ManifoldDisplay,
    PatternDisplay,
)

__all__ = ["AlignmentDisplay", "ErrorPathDisplay", "ManifoldDisplay", "PatternDisplay"]
