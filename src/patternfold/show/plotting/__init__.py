"""Pictures in scikit-learn's manner: displays that hold their data and can be plotted again."""

from patternfold.show.plotting.alignment import AlignmentDisplay
from patternfold.show.plotting.contact_sheet import ContactSheetDisplay, contact_sheet
from patternfold.show.plotting.error_path import ErrorPathDisplay
from patternfold.show.plotting.manifold import ManifoldDisplay
from patternfold.show.plotting.pattern import PatternDisplay

__all__ = [
    "AlignmentDisplay",
    "ContactSheetDisplay",
    "ErrorPathDisplay",
    "ManifoldDisplay",
    "PatternDisplay",
    "contact_sheet",
]
