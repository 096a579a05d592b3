"""What is done to pictures before a pattern is learned from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from patternfold._validation import lookup, require_few_pixels
from patternfold.files.raw import ImageFileError

BACKGROUNDS = {"auto": None, "dark": False, "light": True, "none": False}
NORMALISATIONS = ("unit", "range", "none")
LARGEST_WHITE = 1e38  # of what float32 holds
FIRST, CURRENT = 1, 2
"""Versions: as 0.1 did, whose model files have none, and as described below."""


@dataclass(frozen=True)
class Preparation:
    """What is done to pictures; patterns vanish far away, so backgrounds of 0 are wanted.

    Parameters
    ----------
    size : (H, W), optional
        Canvas that all pictures are laid on, their aspect kept; by default it is chosen.
    background : {"auto", "dark", "light", "none"}
        Each picture's own background level, or an uneven background, is subtracted. With "light",
        pictures are inverted as well, for things that are darker than it; "auto" finds out what
        most pictures have. With "none", pictures are taken as they are.
    subtract_background : bool
        Cut off what is darker than the background.
    normalise : {"unit", "range", "none"}
        Scale each picture to unit norm, or its greatest value to 1.
    white : float, optional
        In version 1: the value about which pictures are inverted.
    fit_each : bool
        Magnify each picture by itself to fill the canvas; by default all alike, so that what is
        larger stays larger.
    scale : float, optional
        The magnification of all pictures; by default it is chosen so that the largest fits.
    version : {1, 2}
        1 prepares as patternfold 0.1 did.
    """

    size: tuple[int, int] | None = None
    background: str = "auto"
    subtract_background: bool = False
    normalise: str = "unit"
    white: float | None = None
    fit_each: bool = False
    scale: float | None = None
    version: int = CURRENT

    def __post_init__(self) -> None:
        """Refuse unknown words and sizes."""
        lookup("background", self.background, BACKGROUNDS)
        lookup("normalise", self.normalise, dict.fromkeys(NORMALISATIONS))
        if self.size is not None:
            pair = tuple(int(v) for v in self.size)
            if len(pair) != 2 or not all(2 <= v <= 4096 for v in pair):
                raise ValueError(f"size={self.size} must be two numbers from 2 to 4096.")
            require_few_pixels("size", (pair[0], pair[1]))
            object.__setattr__(self, "size", pair)
        if self.white is not None and not abs(self.white) < LARGEST_WHITE:
            raise ValueError(f"white={self.white} must be a number within ±{LARGEST_WHITE:g}.")
        if self.scale is not None and not 1e-4 < self.scale < 1e4:
            raise ValueError(f"scale={self.scale} must be a number from 0.0001 to 10000.")
        if self.version not in (FIRST, CURRENT):
            raise ValueError(f"version={self.version} must be {FIRST} or {CURRENT}.")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"size": None if self.size is None else list(self.size)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Preparation:
        """Read what `as_dict` gave, in this version or in 0.1; else raise an `ImageFileError`."""
        try:
            options: dict[str, Any] = {"version": FIRST} | values
            if options.get("size") is not None:
                options["size"] = tuple(options["size"])
            return cls(**options)
        except (TypeError, ValueError) as error:
            raise ImageFileError(f"the preparation {values} can't be used: {error}") from error
