"""Pictures that pillow decodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.deep import is_deep, read_deep
from patternfold.files.orientation import as_shown
from patternfold.files.raw import require_size

FORMATS = ("PNG", "JPEG", "TIFF", "PPM", "BMP", "GIF")
"""What pillow may take a file for, whatever its name; others start programs, as EPS does."""

LONGEST = 2**16
"""Most pixels along a side."""

_UNPACKED = {("TIFF", "raw"), ("BMP", 0), ("PPM", None)}
"""Formats and packings that leave every pixel in the file; pillow fills up what is missing."""

_MOST_PER_BYTE = 8  # pixels, of one bit each

_MOST_PACKED = {"PNG": 8 * 1032, "GIF": 2731, "JPEG": 512}
"""Most pixels a byte, of formats with one packing: bits packed to 1/1032 by deflate, 4096 pixels in
12 bits by LZW, 64 pixels in one bit. Beyond, pillow would fill up what the file does not have."""

_SMALL = 2**22
"""Pixels that may be missing: cut files are told by what decodes them."""

_STRETCHED = {"L;2": 85, "L;4": 17}
"""By what pillow multiplies grey of 2 and 4 bits, but not the value declared transparent."""

_ORIENTATION = 0x0112


def read_pages(path: Path) -> Iterator[np.ndarray]:
    """Read a picture page by page: (H, W), or (H, W, channels) with colour and transparency."""
    image_module, operations = _pillow()
    try:
        with image_module.open(path, formats=FORMATS) as image:
            require_size(_count_pixels(image, path), path)
            if is_deep(image):
                image.seek(0)
                yield as_shown(read_deep(path), image.getexif().get(_ORIENTATION, 1))
                return
            for page in range(getattr(image, "n_frames", 1)):
                image.seek(page)
                clear = _transparent_value(image)
                turned = image.getexif().get(_ORIENTATION, 1) != 1
                yield _channels(operations.exif_transpose(image) if turned else image, clear)
    except image_module.UnidentifiedImageError as error:
        raise ValueError("its content is not that of a picture") from error
    except image_module.DecompressionBombError as error:
        raise ValueError(f"it is too large ({error})") from error


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError(
            "Reading pictures needs pillow: pip install 'patternfold[cli]'."
        ) from error
    return Image, ImageOps


def _count_pixels(image: Any, path: Path) -> int:
    """Pixels of all pages, of which none is decoded."""
    pages = getattr(image, "n_frames", 1)
    if image.format != "TIFF":  # others have pages of one size, and going to one may decode it
        return pages * _count_page(image, path)
    total = 0
    for page in range(pages):
        image.seek(page)
        total += _count_page(image, path)
    return total


def _count_page(image: Any, path: Path) -> int:
    """Pixels of a page; refused if its header can't be true."""
    width, height = image.size
    require_sides(width, height)
    size = path.stat().st_size
    most = _MOST_PACKED.get(image.format)
    room = width * height if most is None else max(_SMALL, most * size)
    if (image.format, image.info.get("compression")) in _UNPACKED:
        room = _MOST_PER_BYTE * size
    if width * height > room:
        raise ValueError(f"its header says {width} × {height} pixels, but the file ends earlier")
    return width * height


def require_sides(width: int, height: int) -> None:
    """Refuse a picture with an absurd side."""
    if max(width, height) > LONGEST:
        raise ValueError(f"its size {width} × {height} has a side beyond {LONGEST} pixels")


def _transparent_value(image: Any) -> Any:
    """Return what a page that is not yet decoded declares transparent, as its pixels will be."""
    clear, kind = image.info.get("transparency"), image.tile[0][3] if image.tile else None
    if image.format == "PNG" and isinstance(clear, int) and isinstance(kind, str):
        return clear * _STRETCHED.get(kind, 1)
    return clear


def _channels(image: Any, clear: Any) -> np.ndarray:
    """Return the numbers of a picture, with colour and transparency as channels."""
    if image.mode == "1":
        image = image.convert("L")
    if image.mode in ("L", "RGB") or image.mode.startswith("I;16"):
        return _with_transparency(np.asarray(image), clear)
    if image.mode == "I":  # 16-bit files are read as 32-bit numbers
        values = np.asarray(image)
        small = 0 <= values.min() and values.max() < 2**16
        return values.astype(np.uint16) if small else values
    if image.mode in ("F", "RGBA", "LA"):
        return np.asarray(image)
    transparent = "transparency" in image.info or image.mode in ("PA", "La", "RGBa")
    return np.asarray(image.convert("RGBA" if transparent else "RGB"))


def _with_transparency(values: np.ndarray, clear: Any) -> np.ndarray:
    """Append a channel that is 0 where the picture has the one value declared transparent."""
    colour = values.reshape(*values.shape[:2], -1)
    if not isinstance(clear, (int, tuple)) or np.size(clear) != colour.shape[2]:
        return values
    hidden = (colour == np.asarray(clear)).all(axis=2)
    alpha = np.where(hidden, 0, np.iinfo(values.dtype).max).astype(values.dtype)
    return np.concatenate([colour, alpha[..., None]], axis=2)
