"""Pictures in scikit-learn's manner: displays that hold their data and can be plotted again."""

from patternfold.plotting.alignment import AlignmentDisplay
from patternfold.plotting.error_path import ErrorPathDisplay
from patternfold.plotting.manifold import ManifoldDisplay
from patternfold.plotting.pattern import PatternDisplay

__all__ = ["AlignmentDisplay", "ErrorPathDisplay", "ManifoldDisplay", "PatternDisplay"]
