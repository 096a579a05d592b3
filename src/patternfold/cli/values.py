"""Values of options, as they are written on the command line."""

from __future__ import annotations

import argparse
import math


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def count(text: str) -> int:
    """Read a whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def share(text: str) -> float:
    """Read a number from 0 to 0.9."""
    value = float(text)
    if not 0 <= value <= 0.9:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 0.9")
    return value


def size(text: str) -> tuple[int, int]:
    """Read ``64`` or ``80x60`` (width, height) as (height, width)."""
    parts = text.lower().replace("×", "x").split("x")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(2 <= n <= 4096 for n in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 64 or 80x60, up to 4096")
    return numbers[-1], numbers[0]


def bound(text: str) -> tuple[str, float, float]:
    """Read ``theta=-0.5:0.5``."""
    name, _, interval = text.partition("=")
    low, _, high = interval.partition(":")
    try:
        pair = float(low), float(high)
    except ValueError:
        pair = math.nan, math.nan
    if not name or not pair[0] < pair[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is no bound; write for example theta=-0.5:0.5")
    return name, *pair
