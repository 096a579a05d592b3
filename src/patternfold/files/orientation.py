"""How a camera was held: pictures as they are shown."""

from __future__ import annotations

import numpy as np


def as_shown(values: np.ndarray, orientation: int) -> np.ndarray:
    """Turn and mirror stored rows and columns, by the code 1 to 8 of EXIF and TIFF."""
    if orientation in (5, 6, 7, 8):  # stored row by row of what is seen column by column
        values = np.swapaxes(values, 0, 1)
    if orientation in (2, 3, 6, 7):
        values = values[:, ::-1]
    if orientation in (3, 4, 7, 8):
        values = values[::-1]
    return values
