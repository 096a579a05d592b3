"""Values of options, as they are written on the command line."""

from __future__ import annotations

import argparse

from patternfold.model.units import Bound, read


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def atoms(text: str) -> int | str:
    """Read a number of atoms, or ``auto``."""
    return text if text == "auto" else positive(text)


def atoms_text(number: int | str) -> str:
    """Say how many atoms are learned."""
    return "as many atoms as help" if number == "auto" else f"{number} atoms"


def count(text: str) -> int:
    """Read a whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def count_or_auto(text: str) -> int | str:
    """Read a whole number of at least 0, or ``auto``."""
    return text if text == "auto" else count(text)


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


def prior(text: str) -> tuple[str, Bound, Bound] | str:
    """Read ``theta=0deg:10deg`` or ``s=1:0.1``, mean and standard deviation; or ``learned``."""
    if text == "learned":
        return text
    name, _, pair = text.partition("=")
    try:
        mean, std = (read(part) for part in pair.split(":"))
    except ValueError:
        mean = std = read(0)
    if not name or not std.value > 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no prior; write for example theta=0deg:10deg, s=1:0.1 or learned"
        )
    mean, std = (str(q) if q.unit else q.value for q in (mean, std))
    return name, mean, std


def bound(text: str) -> tuple[str, Bound, Bound]:
    """Read ``theta=-30deg:30deg``, ``tx=-5px:5px`` or bare numbers, ``s=0.8:1.2``."""
    name, _, interval = text.partition("=")
    try:
        low, high = (read(part) for part in interval.split(":"))
    except ValueError:
        low = high = read(0)
    if not name or (low.unit == high.unit and not low.value < high.value):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no bound; write for example theta=-30deg:30deg, tx=-5px:5px or s=0.8:1.2"
        )
    low, high = (str(q) if q.unit else q.value for q in (low, high))
    return name, low, high
