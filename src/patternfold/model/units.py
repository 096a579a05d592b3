"""Bounds in degrees and pixels: one place where ``-30deg`` and ``5px`` are read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

ANGLE, LENGTH = "angle", "length"
"""What a parameter may measure: radians, or half the longer side of the image."""

_UNITS = {"deg": ANGLE, "°": ANGLE, "rad": ANGLE, "px": LENGTH}

_NUMBER = re.compile(r"\s*([-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-z°]*)\s*")

Bound = float | str
"""A number in the parameter's own unit, or a text with a unit."""


class Quantity(NamedTuple):
    """A number and its unit, which is empty where there is none."""

    value: float
    unit: str

    def __str__(self) -> str:
        """Write it as `read` reads it."""
        return f"{self.value!r}{self.unit}"


def read(value: Any) -> Quantity:
    """Read a number, or a text such as ``-30deg``, ``0.5rad`` or ``5px``.

    Examples
    --------
    >>> read("-30deg")
    Quantity(value=-30.0, unit='deg')
    """
    if not isinstance(value, str):
        return Quantity(float(value), "")
    found = _NUMBER.fullmatch(value)
    if found is None or found[2] not in ("", *_UNITS):
        raise ValueError(f"{value!r} is no number, nor one with a unit: deg, rad or px")
    return Quantity(float(found[1].replace("−", "-")), found[2])


def plain_bounds(
    bounds: Mapping[str, Any],
    measures: Mapping[str, str],
    pixel: float | None = None,
    argument: str = "bounds",
    form: str = "(lower, upper)",
) -> dict[str, tuple[float, float]]:
    """Return bounds in the parameters' own units: radians, half sides of the image.

    Parameters
    ----------
    bounds : dict
        Pairs of numbers or texts, by the parameter's name.
    measures : dict
        Which parameters are angles or lengths.
    pixel : float, optional
        Width of a pixel in half sides; without it, pixels are refused.
    argument, form : str
        What the pairs are called in errors, and what they hold.

    Raises
    ------
    ValueError
        If a unit does not suit the parameter, or if a bare angle is beyond a full turn, as degrees
        are that someone forgot to name.

    Examples
    --------
    >>> plain_bounds({"tx": ("-4px", "4px")}, {"tx": LENGTH}, pixel=0.125)
    {'tx': (-0.5, 0.5)}
    """
    return {
        name: _plain_pair(f"{argument}[{name!r}]", name, pair, measures.get(name), pixel, form)
        for name, pair in bounds.items()
    }


def scaled_pixels(pair: tuple[Bound, Bound], factor: float) -> tuple[Bound, Bound]:
    """Return the pair with what is given in pixels multiplied, as when images are resized."""
    low, high = (
        str(Quantity(quantity.value * factor, "px")) if quantity.unit == "px" else value
        for value, quantity in ((value, read(value)) for value in pair)
    )
    return low, high


def _plain_pair(
    place: str, name: str, pair: Any, measure: str | None, pixel: float | None, form: str
) -> Any:
    try:
        if isinstance(pair, str):
            raise TypeError("one text")  # "12" is no pair of digits
        low, high = pair
        quantities = read(low), read(high)
    except (TypeError, ValueError) as error:
        hint = f" ({error})" if isinstance(pair, (tuple, list)) and len(pair) == 2 else ""
        raise ValueError(
            f"{place}={pair!r} must be a pair {form} of numbers, or of texts such as '-30deg' or "
            f"'5px'{hint}."
        ) from error
    if measure == ANGLE and any(q.unit == "" and abs(q.value) > 2 * math.pi for q in quantities):
        degrees = ":".join(f"{q.value:g}deg" for q in quantities)
        raise ValueError(
            f"{place}={pair!r} are angles beyond a full turn, 2π radians; write {degrees} if they "
            "are degrees."
        )
    return tuple(_plain(place, name, q, measure, pixel) for q in quantities)


def _plain(
    place: str, name: str, quantity: Quantity, measure: str | None, pixel: float | None
) -> float:
    value, unit = quantity
    if unit == "":
        return value
    if _UNITS[unit] != measure:
        suits = {ANGLE: "an angle, in rad or deg", LENGTH: "a length, in px or half sides"}
        raise ValueError(
            f"{place} has the unit {unit!r}, but {name} is "
            f"{suits.get(measure or '', 'a plain number')}."
        )
    if unit == "px":
        if pixel is None:
            raise ValueError(
                f"{place} is in pixels, but the size of the images is not known here; give half "
                "sides of the image, or pass it to the estimator."
            )
        return value * pixel
    return value if unit == "rad" else math.radians(value)
