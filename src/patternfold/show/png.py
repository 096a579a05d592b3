"""Pictures as PNG bytes, with the standard library alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np

_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Of PNG, by the number of channels: grey, grey and alpha, colour, colour and alpha."""


def encode_png(pixels: np.ndarray, level: int = 9) -> bytes:
    """Return the PNG file of 8-bit or 16-bit pixels.

    Grey ones have shape (H, W); others (H, W, channels), of which the second or fourth is alpha.
    """
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.dtype not in (np.uint8, np.uint16) or pixels.ndim not in (2, 3) or channels > 4:
        raise ValueError(
            f"pixels of shape {pixels.shape}, {pixels.dtype}, are no picture of 8 or 16 bits."
        )
    height, width = pixels.shape[:2]
    depth = 8 * pixels.dtype.itemsize
    header = struct.pack(">2L5B", width, height, depth, _COLOUR_TYPES[channels], 0, 0, 0)
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    # Each line begins with the number of its filter, 0 for none.
    lines = np.pad(rows, [(0, 0), (1, 0)]).tobytes()
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, level)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">L", len(content)) + name + content + struct.pack(">L", check)


def to_grey(values: np.ndarray, low: float | None = None, high: float | None = None) -> np.ndarray:
    """Map values to 8-bit grey levels, from ``low`` (black) to ``high`` (white).

    By default 0, or the least value if it is negative, is black and the greatest is white.
    """
    low = min(0.0, float(values.min())) if low is None else low
    high = float(values.max()) if high is None else high
    unit = (np.asarray(values, np.float64) - low) / (high - low if high > low else 1.0)
    return np.round(255 * np.clip(unit, 0, 1)).astype(np.uint8)
