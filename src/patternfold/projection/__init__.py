"""Projection on the manifold, and alignment."""

from patternfold.projection.align import align, warp
from patternfold.projection.project import STATUS, Projection, project

__all__ = ["STATUS", "Projection", "align", "project", "warp"]
