"""Make pictures ready for learning: dark background, one size, comparable strength."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from patternfold._validation import lookup, require_few_pixels
from patternfold.files.raw import ImageFileError, Picture

BACKGROUNDS = {"auto": None, "dark": False, "light": True}
NORMALISATIONS = ("unit", "range", "none")
LARGEST_WHITE = 1e38  # of what float32 holds


@dataclass(frozen=True)
class Preparation:
    """What is done to pictures; patterns vanish far away, so a dark background is wanted.

    Parameters
    ----------
    size : (H, W), optional
        Size that all pictures are brought to, their aspect kept; needed when sizes differ.
    background : {"auto", "dark", "light"}
        With "light", pictures are inverted; "auto" looks at their borders.
    subtract_background : bool
        Subtract the median of each picture's border, and cut off what is below.
    normalise : {"unit", "range", "none"}
        Scale each picture to unit norm, or its greatest value to 1.
    white : float, optional
        The value about which pictures are inverted, unless they have greater ones; by default that
        of white where the files' kind of numbers has one, else the greatest of all pictures.
    """

    size: tuple[int, int] | None = None
    background: str = "auto"
    subtract_background: bool = False
    normalise: str = "unit"
    white: float | None = None

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

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"size": None if self.size is None else list(self.size)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Preparation:
        """Read what `as_dict` gave; anything else is an `ImageFileError`."""
        try:
            options: dict[str, Any] = dict(values)
            if options.get("size") is not None:
                options["size"] = tuple(options["size"])
            return cls(**options)
        except (TypeError, ValueError) as error:
            raise ImageFileError(f"the preparation {values} can't be used: {error}") from error


def prepare(
    pictures: Sequence[Picture], preparation: Preparation
) -> tuple[np.ndarray, Preparation, list[str]]:
    """Return images (N, H, W) in float32, the preparation with all choices made, and what to say.

    Applying the returned preparation to new pictures treats them as these.
    """
    notes = _traits(pictures)
    pixels = [picture.pixels for picture in pictures]
    light = BACKGROUNDS[preparation.background]
    if light is None:
        light = _border_is_light(pixels)
    white = preparation.white
    if light:
        white = _white(pictures) if white is None else white
        pixels = [max(white, float(p.max())) - p for p in pixels]
        how = "light background: " if preparation.background == "auto" else ""
        notes.append(f"{how}pictures inverted (--background dark keeps them)")
    if preparation.subtract_background:
        pixels = [np.maximum(p - _border(p), 0) for p in pixels]
        notes.append("background subtracted")
    else:
        notes += _hint_at_background(pixels)
    shape = preparation.size or _common_shape(pictures)
    pixels, said = _resize(pixels, shape)
    notes += said
    images, more = _normalise(np.stack(pixels).astype(np.float32), preparation.normalise)
    made = replace(preparation, size=shape, background="light" if light else "dark", white=white)
    return images, made, notes + more


def _traits(pictures: Sequence[Picture]) -> list[str]:
    count = Counter(trait for picture in pictures for trait in picture.traits)
    said = {
        "colour": "{} colour picture(s) turned grey",
        "transparent": "transparent parts of {} picture(s) set on white",
    }
    return [text.format(count[trait]) for trait, text in said.items() if count[trait]]


def _white(pictures: Sequence[Picture]) -> float:
    """Return the value of white, for blank pictures 1."""
    known = [p.white if p.white is not None else float(p.pixels.max()) for p in pictures]
    return max(known) if max(known) > 0 else 1.0


def _border(pixels: np.ndarray) -> float:
    """Median of the outermost pixels."""
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    return float(np.median(np.concatenate(edges)))


def _border_is_light(pixels: Sequence[np.ndarray]) -> bool:
    """Tell whether the borders are nearer to the lightest than to the darkest value."""
    low, high = min(p.min() for p in pixels), max(p.max() for p in pixels)
    if low < 0 or high <= low:  # measurements around zero, or blank
        return False
    border = np.median([_border(p) for p in pixels])
    return bool((border - low) / (high - low) > 0.55)


def _hint_at_background(pixels: Sequence[np.ndarray]) -> list[str]:
    strength = float(np.median([p.max() for p in pixels]))
    border = float(np.median([_border(p) for p in pixels]))
    if strength > 0 and border > 0.1 * strength:
        share = f"{100 * border / strength:.0f} %"
        return [
            f"the background has {share} of the greatest value; "
            "--subtract-background may give a better pattern"
        ]
    return []


def _common_shape(pictures: Sequence[Picture]) -> tuple[int, int]:
    sizes = Counter(picture.pixels.shape for picture in pictures)
    if len(sizes) > 1:
        shown = ", ".join(_size(s) for s, _ in sizes.most_common(4))
        more = ", ..." if len(sizes) > 4 else ""
        raise ImageFileError(
            f"The pictures have {len(sizes)} sizes ({shown}{more}); bring them to one, "
            "for example with --size 64."
        )
    height, width = pictures[0].pixels.shape
    return height, width


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]}×{shape[0]}"


def _resize(
    pixels: Sequence[np.ndarray], shape: tuple[int, int]
) -> tuple[Sequence[np.ndarray], list[str]]:
    sizes = {p.shape for p in pixels}
    if sizes == {shape}:
        slow = f"images of {_size(shape)} take long; --size 64 is often enough"
        return pixels, [slow] if max(shape) > 128 else []
    what = f"{len(sizes)} sizes" if len(sizes) > 1 else _size(pixels[0].shape)
    note = f"pictures of {what} brought to {_size(shape)} pixels"
    return [_fit(p, shape) for p in pixels], [note]


def _fit(pixels: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Resize to fit into ``shape``, keep the aspect, and fill up with the border's value."""
    from PIL import Image

    scale = min(shape[0] / pixels.shape[0], shape[1] / pixels.shape[1])
    height, width = (
        min(n, max(1, round(old * scale))) for n, old in zip(shape, pixels.shape, strict=True)
    )
    picture = Image.fromarray(np.ascontiguousarray(pixels, np.float32))
    resized = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
    canvas = np.full(shape, _border(pixels), np.float32)
    top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
    canvas[top : top + height, left : left + width] = resized
    return canvas


def _normalise(images: np.ndarray, how: str) -> tuple[np.ndarray, list[str]]:
    if how == "none":
        return images, []
    if how == "unit":
        # Squares of large numbers are beyond float32.
        square = np.einsum("nhw,nhw->n", images, images, dtype=np.float64)
        size, text = np.sqrt(square), "each image scaled to unit norm"
    else:
        size, text = np.abs(images).max(axis=(1, 2)), "each image scaled to greatest value 1"
    blank = int((size == 0).sum())
    notes = [text] + ([f"{blank} blank image(s) left as they are"] if blank else [])
    scale = np.where(size > 0, size, 1)[:, None, None]
    return np.divide(images, scale, out=images, casting="same_kind"), notes
