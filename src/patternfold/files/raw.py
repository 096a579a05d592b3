"""What is read from files, before it is made ready: grey pixels and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
LARGEST = 2**27
"""Most pixels of a file, all its pages together, unless the file itself has as many bytes."""

LARGEST_ARRAY = 2**29
"""Most bytes that an array unpacks to, with the same exception."""

_BLOCK = 2**20  # pixels that are turned grey at a time


class ImageFileError(ValueError):
    """A file or folder that gives no images; the message says why and what to do."""


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
    """What was done: "colour" was turned grey, "transparent" parts were set on white."""
    white: float | None = None
    """The value that stands for white, where the file's kind of numbers says so."""


def grey(values: np.ndarray) -> tuple[np.ndarray, frozenset[str]]:
    """Turn numbers of any type, of shape (H, W) or (H, W, channels), into grey float32."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"its pixels are of type {values.dtype}, which are no numbers")
    if values.size == 0:
        raise ValueError("it has no pixels")
    pixels, traits = np.empty(values.shape[:2], np.float32), set()
    rows = max(1, _BLOCK // values.shape[1])  # in blocks: large pictures fill the memory but once
    for begin in range(0, len(values), rows):
        pixels[begin : begin + rows], seen = _grey_block(values[begin : begin + rows])
        traits |= seen
    if not np.isfinite(pixels).all():
        raise ValueError("some of its pixels are NaN or infinite")
    return pixels, frozenset(traits)


def white_of(dtype: np.dtype) -> float | None:
    """Return what white is after `grey`: 1 for bytes; wider numbers mostly use a part of theirs."""
    return 1.0 if dtype in (np.bool_, np.uint8) else None


def _grey_block(values: np.ndarray) -> tuple[np.ndarray, set[str]]:
    pixels, traits = _as_floats(values), set()
    if pixels.ndim == 2:
        return pixels, traits
    channels = pixels.shape[2]
    if channels in (2, 4):
        alpha = pixels[..., -1:]
        if (alpha < 1).any():
            pixels = pixels[..., :-1] * alpha + (1 - alpha)
            traits.add("transparent")
    if channels < 3:
        return pixels[..., 0], traits
    return pixels[..., :3] @ LUMINANCE, traits | {"colour"}


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
