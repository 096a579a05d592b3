"""The manifold of a pattern: `patternfold.model.manifold` by its public name."""

from patternfold.model.manifold import field, render, tangent_distance, tangents

__all__ = ["field", "render", "tangent_distance", "tangents"]
