"""Pictures as PNG bytes, with the standard library alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def encode_png(pixels: np.ndarray) -> bytes:
    """Return the PNG file of 8-bit pixels: grey of shape (H, W), or colour of shape (H, W, 3)."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)):
        raise ValueError(f"pixels of shape {pixels.shape}, {pixels.dtype}, are no 8-bit picture.")
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    header = struct.pack(">2L5B", width, height, 8, colour, 0, 0, 0)
    # Each line begins with the number of its filter, 0 for none.
    lines = np.pad(pixels.reshape(height, -1), [(0, 0), (1, 0)]).tobytes()
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
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
