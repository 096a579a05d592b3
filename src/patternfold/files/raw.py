"""What is read from files, before it is made ready: grey pixels and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
LARGEST = 2**27
"""Most pixels of a picture."""


class ImageFileError(ValueError):
    """A file or folder that gives no images; the message says why and what to do."""


@dataclass(frozen=True)
class Picture:
    """One picture in grey. Integers of a file are scaled to [0, 1]; floats are kept."""

    pixels: np.ndarray
    name: str
    label: str | None = None
    traits: frozenset[str] = field(default_factory=frozenset)
    """What was done: "colour" was turned grey, "transparent" parts were set on white."""


def grey(values: np.ndarray) -> tuple[np.ndarray, frozenset[str]]:
    """Turn numbers of any type, of shape (H, W) or (H, W, channels), into grey floats."""
    pixels = _as_unit(values)
    if pixels.ndim == 2:
        return _finite(pixels), frozenset()
    channels, traits = pixels.shape[2], set()
    if channels in (2, 4):
        alpha = pixels[..., -1:]
        if (alpha < 1).any():
            pixels = np.concatenate([pixels[..., :-1] * alpha + (1 - alpha), alpha], axis=2)
            traits.add("transparent")
    if channels >= 3:
        traits.add("colour")
        pixels = pixels[..., :3] @ LUMINANCE
    else:
        pixels = pixels[..., 0]
    return _finite(pixels), frozenset(traits)


def _as_unit(values: np.ndarray) -> np.ndarray:
    """Return float32; integers are divided by the greatest value of their type."""
    if values.dtype.kind == "b":
        return values.astype(np.float32)
    if values.dtype.kind in "iu":
        return (values / np.float64(np.iinfo(values.dtype).max)).astype(np.float32)
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    raise ValueError(f"its pixels are of type {values.dtype}, which are no numbers")


def _finite(pixels: np.ndarray) -> np.ndarray:
    if pixels.size == 0:
        raise ValueError("it has no pixels")
    if not np.isfinite(pixels).all():
        raise ValueError("some of its pixels are NaN or infinite")
    return pixels


def require_size(shape: tuple[Any, ...]) -> None:
    """Refuse pictures that are too large, before they are unpacked."""
    if float(np.prod([float(n) for n in shape])) > LARGEST:
        raise ValueError(f"its size {' × '.join(str(n) for n in shape)} is beyond {LARGEST} pixels")
