"""Bounds of the command line, as the estimators take them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from patternfold.cli.console import Failure
from patternfold.model.units import Bound, read, scaled_pixels

Bounds = dict[str, tuple[Bound, Bound]]


def check_bounds(options: argparse.Namespace) -> None:
    """Refuse bounds that the family can't have, before any work is done."""
    if options.bound:
        from patternfold.model.transformations import as_transformation

        # How wide a pixel is will be known later; here it only stands for one.
        as_transformation(options.transformation).with_bounds(_given(options), pixel=1e-3)


def bounds_of(options: argparse.Namespace, found: Any) -> Bounds | None:
    """Return the bounds for prepared images: what is in pixels of the pictures is scaled."""
    given = _given(options)
    if not any(read(v).unit == "px" for pair in given.values() for v in pair):
        return given or None
    scale = _common_scale([placement.scale for placement in found.placements])
    return {name: scaled_pixels(pair, scale) for name, pair in given.items()}


def _given(options: argparse.Namespace) -> Bounds:
    return {name: (low, high) for name, low, high in options.bound}


def _common_scale(scales: Sequence[float]) -> float:
    if max(scales) > 1.001 * min(scales):
        raise Failure(
            "--bound in pixels needs pictures of one scale, but these were each brought to another "
            f"size ({min(scales):.3g} to {max(scales):.3g} times theirs); give half sides of the "
            "prepared pictures, for example tx=-0.2:0.2."
        )
    return scales[0]
