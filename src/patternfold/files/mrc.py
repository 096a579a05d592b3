"""MRC images and stacks, as electron microscopes write them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

HEADER = 1024
MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
"""Types of pixels by the header's mode; complex transforms (3, 4) are no images."""


def read_mrc(path: Path) -> np.ndarray:
    """Read an MRC file as an array of shape (N, H, W); integers are returned as floats.

    The numbers are measurements without a natural range, so unlike those of other formats they
    are not divided by the greatest value of their type.
    """
    with open(path, "rb") as file:
        header = file.read(HEADER)
        if len(header) < HEADER:
            raise ValueError("it is shorter than an MRC header")
        order = _byte_order(header)
        columns, rows, sections, mode = struct.unpack_from(f"{order}4i", header)
        (extended,) = struct.unpack_from(f"{order}i", header, 92)
        if mode not in MODES:
            raise ValueError(f"its MRC mode {mode} is not one of {sorted(MODES)}")
        dtype = np.dtype(order + MODES[mode])
        if min(columns, rows, sections) < 1 or extended < 0:
            raise ValueError(f"its header says {columns} × {rows} × {sections} pixels")
        needed = columns * rows * sections * dtype.itemsize
        if HEADER + extended + needed > path.stat().st_size:
            raise ValueError(
                f"its header says {columns} × {rows} × {sections} pixels, but the file ends earlier"
            )
        file.seek(HEADER + extended)
        values = np.frombuffer(file.read(needed), dtype)
    return values.reshape(sections, rows, columns).astype(np.float32)


def _byte_order(header: bytes) -> str:
    """Return "<" or ">": from the machine stamp, or from what makes a sensible mode."""
    if header[212:214] == b"\x11\x11":
        return ">"
    if header[212] == 0x44:
        return "<"
    (mode,) = struct.unpack_from("<i", header, 12)
    return "<" if mode in MODES else ">"
