"""What kinds of numbers pictures are made of, and how those of several kinds stand together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WRITABLE = {np.dtype(np.bool_): np.dtype(np.uint8), np.dtype(np.float16): np.dtype(np.float32)}


@dataclass(frozen=True)
class Kind:
    """Numbers of a picture's pixels."""

    dtype: np.dtype
    channels: int
    """1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha."""

    @classmethod
    def of(cls, values: np.ndarray) -> Kind:
        """Return that of a picture of shape (H, W) or (H, W, channels)."""
        return cls.named(values.dtype, values.shape)

    @classmethod
    def named(cls, dtype: np.dtype, shape: Sequence[int]) -> Kind:
        """Return that of a picture of this dtype and shape, see `writable`."""
        return cls(_WRITABLE.get(dtype, dtype), shape[2] if len(shape) == 3 else 1)

    @property
    def has_alpha(self) -> bool:
        """Whether the last channel is transparency."""
        return self.channels in (2, 4)

    @property
    def is_picture(self) -> bool:
        """Whether PNG files can hold it: whole numbers of 8 or 16 bits from black to white."""
        return self.dtype in (np.uint8, np.uint16)

    @property
    def white(self) -> float:
        """The greatest value of small whole numbers, by which they are turned to [0, 1]; else 1."""
        small = self.dtype.kind in "iu" and self.dtype.itemsize <= 2
        return float(np.iinfo(self.dtype).max) if small else 1.0


def writable(values: np.ndarray) -> np.ndarray:
    """Return a picture in numbers that files can hold: bits become black and white."""
    known = values.astype(_WRITABLE.get(values.dtype, values.dtype), copy=False)
    return 255 * known if values.dtype == np.bool_ else known


def common_kind(kinds: Sequence[Kind]) -> Kind:
    """Return the kind that can hold all of these: the deepest numbers, colour, transparency."""
    colour = 3 if any(kind.channels > 2 for kind in kinds) else 1
    dtypes = {kind.dtype for kind in kinds}
    if len(dtypes) == 1:
        (dtype,) = dtypes
    elif all(kind.is_picture for kind in kinds):
        dtype = np.dtype(np.uint16)
    else:
        dtype = np.dtype(np.float32)
    return Kind(dtype, colour + any(kind.has_alpha for kind in kinds))


def converted(values: np.ndarray, kind: Kind) -> np.ndarray:
    """Return a picture as another kind, with black and white where they were.

    The shape is (H, W), or (H, W, channels) where there are several.
    """
    own = Kind.of(values)
    pixels = values.reshape(*values.shape[:2], own.channels)
    colour = pixels[..., : own.channels - own.has_alpha]
    if kind.channels > 2 > own.channels - own.has_alpha:
        colour = np.repeat(colour, 3, axis=2)
    parts = [_with_dtype(colour, own, kind)]
    if kind.has_alpha:
        alpha = pixels[..., -1:] if own.has_alpha else np.full_like(pixels[..., :1], own.white)
        parts.append(_with_dtype(alpha, own, kind))
    result = np.concatenate(parts, axis=2)
    return result if kind.channels > 1 else result[..., 0]


def _with_dtype(values: np.ndarray, own: Kind, kind: Kind) -> np.ndarray:
    if own.dtype == kind.dtype:
        return values
    scaled = values.astype(np.float64) * (kind.white / own.white)
    return (np.rint(scaled) if kind.dtype.kind in "iu" else scaled).astype(kind.dtype)
