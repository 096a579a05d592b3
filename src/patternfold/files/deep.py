"""Colour pictures of more than eight bits in PNG, of which pillow would keep but eight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def is_deep(image: Any) -> bool:
    """Tell whether an opened picture is a PNG with several channels of 16 bits."""
    if image.format != "PNG" or image.mode not in ("RGB", "RGBA", "LA"):
        return False
    return any(";16" in str(tile[-1]) for tile in image.tile)


def read_deep(path: Path) -> np.ndarray:
    """Return such a picture, of shape (H, W, channels), as it is stored."""
    try:
        import imagecodecs
    except ImportError as error:
        raise ImportError(
            "Reading colour pictures of 16 bits needs imagecodecs: pip install 'patternfold[cli]'."
        ) from error
    return imagecodecs.png_decode(path.read_bytes())
