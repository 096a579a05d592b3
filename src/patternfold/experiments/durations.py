"""How long steps of the full runs take on one core, so that the longest begin first."""

from __future__ import annotations

SECONDS: dict[str, dict[str, float]] = {
    "digits-classification": {
        "JPATS": 100,
        "JPATS-printed": 70,
        "PATS": 75,
        "PATS-global": 70,
        "ours": 50,
        "views": 50,
        "SMP": 20,
        "SAS": 10,
    },
    "microbiology-classification": {
        "JPATS": 50,
        "PATS": 40,
        "views": 40,
        "registration": 40,
        "ours": 40,
    },
    "noise-classification": {"JPATS": 35, "ours": 27},
    "outlier-classification": {"": 15},
    "solvers": {"JPATS-cutting-plane": 240, "": 70, "JPATS-search": 30, "PATS-search": 20},
    "digits-approximation": {"": 40},
    "faces-approximation": {"": 40},
    "occlusion-outliers": {"": 30},
    "noise-approximation": {"published": 20, "ours": 14},
    "illumination": {"": 20},
    "complexity": {"": -1},
}
"""Rough seconds by experiment and beginning of a step's key. Times of complexity come last, where
they have least beside them."""

OTHER = 10.0
"""Seconds of a step that is not listed."""


def expected_seconds(experiment: str, key: str) -> float:
    """Return what the longest beginning of the key that is listed says."""
    known = SECONDS.get(experiment, {})
    begins = [begin for begin in known if not begin or f"{key}-".startswith(f"{begin}-")]
    return known[max(begins, key=len)] if begins else OTHER
