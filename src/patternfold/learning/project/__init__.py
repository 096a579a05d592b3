"""Projection on the manifold, and alignment."""

from patternfold.learning.project.align import align, warp
from patternfold.learning.project.project import STATUS, Projection, project

__all__ = ["STATUS", "Projection", "align", "project", "warp"]
