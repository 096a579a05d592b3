"""scikit-learn estimators."""

from patternfold.estimators.aligned_views import AlignedViews
from patternfold.estimators.jpats import JPATS
from patternfold.estimators.mixture import PatternMixture
from patternfold.estimators.pats import PATS
from patternfold.estimators.views_classifier import AlignedViewsClassifier

__all__ = ["JPATS", "PATS", "AlignedViews", "AlignedViewsClassifier", "PatternMixture"]
