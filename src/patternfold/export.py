"""Patterns for other programs: `patternfold.show.export` by its public name."""

from patternfold.show.export import export_pattern, pattern_to_csv, pattern_to_png, pattern_to_svg

__all__ = ["export_pattern", "pattern_to_csv", "pattern_to_png", "pattern_to_svg"]
