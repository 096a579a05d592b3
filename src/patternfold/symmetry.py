"""Symmetries of patterns, and poses that they make look alike, by their public name."""

from patternfold.model.equivalent import equivalent_poses, fold
from patternfold.model.symmetry import Symmetry, symmetry_of

__all__ = ["Symmetry", "equivalent_poses", "fold", "symmetry_of"]
