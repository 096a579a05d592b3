"""Bounds of the command line, as the estimators take them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from patternfold.cli.console import Console, Failure
from patternfold.model.units import Bound, read, scaled_pixels

Bounds = dict[str, tuple[Bound, Bound]]

LEARNED = "learned"
"""The prior that the pictures tell."""

PICTURES, PAPER = ("similarity", "auto"), ("rotation-translation-scaling", 20)
"""Family and number of atoms by default: for pictures, and for the published algorithm."""


def choose_defaults(options: argparse.Namespace) -> None:
    """Choose what was left open, and with --paper no light of the images' own."""
    paper = getattr(options, "paper", False)
    family, atoms = PAPER if paper else PICTURES
    options.transformation = options.transformation or family
    options.atoms = options.atoms or atoms
    if paper:
        options.gain = options.offset = False


def check_bounds(options: argparse.Namespace) -> None:
    """Refuse bounds and priors that the family can't have, before any work is done."""
    choose_defaults(options)
    if options.bound or getattr(options, "prior", []):
        from patternfold.model.prior import as_prior
        from patternfold.model.transformations import as_transformation

        # How wide a pixel is will be known later; here it only stands for one.
        family = as_transformation(options.transformation)
        family = family.with_bounds(given_bounds(options), pixel=1e-3)
        prior = prior_of(options)
        as_prior(None if isinstance(prior, str) else prior, family, pixel=1e-3)


def prior_of(options: argparse.Namespace, found: Any = None) -> Bounds | str | None:
    """Return the prior for prepared images: what is in pixels of the pictures is scaled."""
    asked = getattr(options, "prior", [])
    if LEARNED in asked:
        if len(asked) > 1:
            raise Failure(f"--prior {LEARNED} stands alone; leave out the others.")
        return LEARNED
    given = {name: (mean, std) for name, mean, std in asked}
    return (given if found is None else _in_prepared_pixels(given, found)) or None


def bounds_of(options: argparse.Namespace, found: Any) -> Bounds | None:
    """Return the bounds for prepared images: what is in pixels of the pictures is scaled.

    Scales that are not given are bounded by what the images show, but for the published algorithm.
    """
    given = _in_prepared_pixels(given_bounds(options), found)
    if not getattr(options, "paper", False):
        given = _scales(options, found) | given
    return given or None


def _in_prepared_pixels(given: Bounds, found: Any) -> Bounds:
    if not any(read(v).unit == "px" for pair in given.values() for v in pair):
        return given
    scale = _common_scale([placement.scale for placement in found.placements])
    return {name: scaled_pixels(pair, scale) for name, pair in given.items()}


def _scales(options: argparse.Namespace, found: Any) -> Bounds:
    from patternfold.cli.scales import scale_bounds
    from patternfold.model.transformations import as_transformation

    classes = None if options.command == "learn" else found.labels
    names = as_transformation(options.transformation).parameters.names
    return dict(scale_bounds(found.images, found.mask, classes, names))


def tell_bounds(bounds: Bounds | None, options: argparse.Namespace, console: Console) -> None:
    """Say which bounds were chosen."""
    given = given_bounds(options)
    for name, (low, high) in (bounds or {}).items():
        if name not in given:
            text = f"  {name} from {low} to {high}, by the sizes of what the pictures show"
            console.say(f"{text}; --bound {name}=LOW:HIGH sets others")


def given_bounds(options: argparse.Namespace) -> Bounds:
    """Return the bounds as they were given."""
    return {name: (low, high) for name, low, high in options.bound}


def _common_scale(scales: Sequence[float]) -> float:
    if max(scales) > 1.001 * min(scales):
        raise Failure(
            "--bound in pixels needs pictures of one scale, but these were each brought to another "
            f"size ({min(scales):.3g} to {max(scales):.3g} times theirs); give half sides of the "
            "prepared pictures, for example tx=-0.2:0.2."
        )
    return scales[0]
