"""How long steps of the full runs take on one core, so that the longest begin first."""

from __future__ import annotations

SECONDS: dict[str, dict[str, float]] = {
    "digits-classification": {
        "JPATS": 450,
        "JPATS-printed": 260,
        "PATS": 250,
        "PATS-global": 170,
        "ours": 200,
        "views": 180,
        "SMP": 60,
        "SAS": 60,
    },
    "microbiology-classification": {
        "JPATS": 130,
        "PATS": 80,
        "views": 90,
        "registration": 90,
        "ours": 80,
    },
    "noise-classification": {"JPATS": 110, "ours": 80},
    "solvers": {"JPATS-cutting-plane": 260, "JPATS": 50, "": 120},
    "digits-approximation": {"": 60},
    "faces-approximation": {"": 60},
    "occlusion-outliers": {"": 30},
    "noise-approximation": {"": 25},
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
