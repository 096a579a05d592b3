"""What is read from files, before it is made ready: grey pixels and where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
LARGEST = 2**27
"""Most pixels of a file, all its pages together, unless the file itself has as many bytes."""

LARGEST_ARRAY = 2**29
"""Most bytes that an array unpacks to, with the same exception."""

INFINITE = 1e30
"""From here on numbers are as good as infinite: differences and squares must stay within bounds."""

OPAQUE = 0.99
"""Alpha from which nothing shines through."""

_BLOCK = 2**20  # pixels that are turned grey at a time


class ImageFileError(ValueError):
    """A file or folder that gives no images; the message says why and what to do."""


@dataclass(frozen=True)
class Source:
    """Where a picture is found again with all its colours: see `read_originals`."""

    path: Path
    """The file."""
    page: int = 0
    """Which of its pages, sections or rows."""
    shape: tuple[int, ...] = ()
    """(H, W) or (H, W, channels)."""
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.uint8))
    """Of its numbers."""


@dataclass(frozen=True)
class Picture:
    """One picture in grey.

    Integers of 8 and 16 bits are scaled to [0, 1]; wider ones, which rarely use their range, and
    floats are kept.
    """

    pixels: np.ndarray
    name: str
    label: str | None = None
    traits: frozenset[str] = field(default_factory=frozenset)
    """What was met: "colour" was turned grey, "transparent" parts are set on white, those around a
    picture that is "cut out" do not count, nor do "gaps", which are NaN or infinite."""
    white: float | None = None
    """The value that stands for white, where the file's kind of numbers says so."""
    counts: np.ndarray | None = None
    """True where pixels count, or None where all do."""
    source: Source | None = None
    """The file it was read from."""


@dataclass(frozen=True)
class Grey:
    """The grey values of a picture."""

    pixels: np.ndarray
    """Shape (H, W), float32, finite."""
    counts: np.ndarray | None
    """True where pixels count, or None where all do."""
    traits: frozenset[str]
    """As in `Picture`."""


def grey(values: np.ndarray) -> Grey:
    """Turn numbers of any type, of shape (H, W) or (H, W, channels), into grey float32."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"its pixels are of type {values.dtype}, which are no numbers")
    if values.size == 0:
        raise ValueError("it has no pixels")
    pixels, traits = np.empty(values.shape[:2], np.float32), set()
    counts = np.ones(values.shape[:2], bool)
    rows = max(1, _BLOCK // values.shape[1])  # in blocks: large pictures fill the memory but once
    for begin in range(0, len(values), rows):
        block = slice(begin, begin + rows)
        pixels[block], counts[block], seen = _grey_block(values[block])
        traits |= seen
    if not counts.all() and is_convex(counts):
        traits = traits - {"transparent"} | {"cut out"}
    else:
        counts[:] = True
    if values.dtype.kind == "f" or values.dtype.itemsize > 2:
        return _without_gaps(pixels, counts, traits)
    return Grey(pixels, None if counts.all() else counts, frozenset(traits))


def _without_gaps(pixels: np.ndarray, counts: np.ndarray, traits: set[str]) -> Grey:
    """Fill what is NaN or infinite with the median, and do not count it."""
    finite = np.abs(pixels) < INFINITE
    if not finite.all():
        if not finite.any():
            raise ValueError("all of its pixels are NaN or infinite")
        pixels[~finite] = np.median(pixels[finite])
        counts &= finite
        traits = traits | {"gaps"}
    return Grey(pixels, None if counts.all() else counts, frozenset(traits))


def white_of(dtype: np.dtype) -> float | None:
    """Return what white is after `grey`: 1 for bytes; wider numbers mostly use a part of theirs."""
    return 1.0 if dtype in (np.bool_, np.uint8) else None


def _grey_block(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | bool, set[str]]:
    """Return grey pixels, set on white where they are transparent, and where they are opaque."""
    pixels, traits = _as_floats(values), set()
    if pixels.ndim == 2:
        return pixels, True, traits
    channels, opaque = pixels.shape[2], True
    if channels in (2, 4):
        alpha = pixels[..., -1:]
        if (alpha < 1).any():
            pixels = pixels[..., :-1] * alpha + (1 - alpha)
            opaque = alpha[..., 0] >= OPAQUE
            traits.add("transparent")
    if channels < 3:
        return pixels[..., 0], opaque, traits
    return pixels[..., :3] @ LUMINANCE, opaque, traits | {"colour"}


def is_convex(inside: np.ndarray) -> bool:
    """Tell whether a region is convex, as a photograph that was turned or cut to a disc is.

    The outline of a thing that was cut out is no accident, and mostly not convex.
    """
    from scipy.spatial import ConvexHull

    rows = np.flatnonzero(inside.any(axis=1))
    if not len(rows):
        return False
    first = inside[rows].argmax(axis=1)
    end = inside.shape[1] - inside[rows, ::-1].argmax(axis=1)
    corners = [np.column_stack([y, x]) for y in (rows, rows + 1) for x in (first, end)]
    hull = ConvexHull(np.concatenate(corners).astype(float))
    # The staircase of pixels along the outline leaves about half a pixel per step.
    return bool(hull.volume - inside.sum() <= 0.01 * hull.volume + 0.5 * hull.area)


def _as_floats(values: np.ndarray) -> np.ndarray:
    """Return float32; integers of up to 16 bits are divided by the greatest value of their type."""
    if values.dtype.kind in "iu" and values.dtype.itemsize <= 2:
        return values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite: refused
        return values.astype(np.float32)


def require_size(n_pixels: int, path: Path) -> None:
    """Refuse a file of too many pixels before they are unpacked."""
    if n_pixels > max(LARGEST, path.stat().st_size):
        raise ValueError(f"it has {n_pixels} pixels, more than {LARGEST}; cut or shrink it first")


def require_bytes(n_bytes: int, path: Path) -> None:
    """Refuse an array of too many bytes before it is unpacked."""
    if n_bytes > max(LARGEST_ARRAY, path.stat().st_size):
        raise ValueError(f"it unpacks to {n_bytes} bytes, more than {LARGEST_ARRAY}; split it")


def few(names: Sequence[str]) -> str:
    """Return the first names, for a remark."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
