"""scikit-learn estimators."""

from patternfold.estimators.pats import PATS

__all__ = ["PATS"]
