"""Colour pictures of more than eight bits, of which pillow would keep but eight."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_ORIENTATION = 0x0112

_TURNS = {
    2: lambda v: v[:, ::-1],
    3: lambda v: v[::-1, ::-1],
    4: lambda v: v[::-1],
    5: lambda v: np.swapaxes(v, 0, 1),
    6: lambda v: np.rot90(v, -1),
    7: lambda v: np.swapaxes(v[::-1, ::-1], 0, 1),
    8: lambda v: np.rot90(v),
}
"""How a stored picture is brought to how it is shown, by the number of its orientation."""


def is_deep(image: Any) -> bool:
    """Tell whether an opened picture has several channels of 16 bits, or of floats in colour."""
    if image.format not in ("PNG", "TIFF") or image.mode not in ("RGB", "RGBA", "LA"):
        return False
    return any(";16" in str(tile[-1]) for tile in image.tile)


def read_deep(path: Path, kind: str, orientation: int) -> Iterator[np.ndarray]:
    """Yield the pages of such a picture, of shape (H, W, channels), as they are shown."""
    if kind == "PNG":
        yield oriented(_needs("imagecodecs").png_decode(path.read_bytes()), orientation)
        return
    with _needs("tifffile").TiffFile(path) as file:
        for page in file.pages:
            values = page.asarray()
            if page.planarconfig == 2 and values.ndim == 3:  # channel after channel
                values = np.moveaxis(values, 0, 2)
            tag = page.tags.get(_ORIENTATION)
            yield oriented(values, 1 if tag is None else int(tag.value))


def oriented(values: np.ndarray, orientation: int) -> np.ndarray:
    """Return a picture as it is shown."""
    return np.ascontiguousarray(_TURNS[orientation](values)) if orientation in _TURNS else values


def _needs(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Reading colour pictures of 16 bits needs {module}: pip install 'patternfold[cli]'."
        ) from error
