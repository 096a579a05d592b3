"""Projection on manifolds: `patternfold.learning.project` by its public name."""

from patternfold.learning.project import STATUS, Projection, align, project, warp

__all__ = ["STATUS", "Projection", "align", "project", "warp"]
