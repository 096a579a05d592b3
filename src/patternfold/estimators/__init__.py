"""scikit-learn estimators."""

from patternfold.estimators.aligned_views import AlignedViews, AlignedViewsClassifier
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.mixture import PatternMixture
from patternfold.estimators.pats import PATS

__all__ = ["JPATS", "PATS", "AlignedViews", "AlignedViewsClassifier", "PatternMixture"]
