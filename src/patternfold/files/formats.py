"""One file of any known kind, as grey pictures."""

from __future__ import annotations

import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.mrc import read_mrc
from patternfold.files.raw import ImageFileError, Picture, grey, require_size

PICTURES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".pgm", ".ppm", ".pnm", ".bmp", ".gif"}
STACKS = {".mrc", ".mrcs"}
ARRAYS = {".npy", ".npz"}
KNOWN = PICTURES | STACKS | ARRAYS

_IMAGES = ("x", "X", "images", "data", "arr_0")
_LABELS = ("y", "labels", "target")
_ERRORS = (
    OSError,
    SyntaxError,  # what pillow raises for some damaged files
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    struct.error,
    tokenize.TokenError,  # what NumPy raises for some damaged headers
    zlib.error,
    zipfile.BadZipFile,
)


def read_file(path: Path, name: str | None = None, label: str | None = None) -> list[Picture]:
    """Read all pictures of a file: its pages, sections or rows.

    Raises
    ------
    ImageFileError
        If the file is damaged, or not what its ending says.
    """
    name = path.name if name is None else name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pillow and NumPy on odd headers
            found = [(pixels, traits, own or label) for pixels, traits, own in _read(path)]
    except ImportError:
        raise
    except _ERRORS as error:
        raise ImageFileError(f"{path} can't be read: {error}.") from error
    single = len(found) == 1
    return [
        Picture(pixels, name if single else f"{name}[{i}]", own, traits)
        for i, (pixels, traits, own) in enumerate(found)
    ]


Found = Iterator[tuple[np.ndarray, frozenset[str], str | None]]


def _read(path: Path) -> Found:
    ending = path.suffix.lower()
    if ending in ARRAYS:
        yield from _read_array(path)
    elif ending in STACKS:
        for section in read_mrc(path):
            yield *grey(section), None
    elif ending in PICTURES:
        yield from _read_picture(path)
    else:
        raise ValueError(f"files ending in {ending!r} are not known; known: {sorted(KNOWN)}")


def _read_picture(path: Path) -> Found:
    """Read a picture, page by page, with pillow."""
    image_module, operations = _pillow()
    try:
        with image_module.open(path) as image:
            for page in range(getattr(image, "n_frames", 1)):
                image.seek(page)
                require_size(image.size)
                yield *grey(_channels(operations.exif_transpose(image))), None
    except image_module.UnidentifiedImageError as error:
        raise ValueError("its content is not that of a picture") from error
    except image_module.DecompressionBombError as error:
        raise ValueError(f"it is too large ({error})") from error


def _channels(image: Any) -> np.ndarray:
    """Return the numbers of a picture, with colour and transparency as channels."""
    if image.mode in ("L", "F") or image.mode.startswith("I;16"):
        return np.asarray(image)
    if image.mode == "I":  # 16-bit files are read as 32-bit numbers
        values = np.asarray(image)
        small = 0 <= values.min() and values.max() < 2**16
        return values.astype(np.uint16) if small else values
    if image.mode in ("1", "RGB", "RGBA", "LA"):
        return np.asarray(image.convert("L") if image.mode == "1" else image)
    transparent = "transparency" in image.info or image.mode in ("PA", "La", "RGBa")
    return np.asarray(image.convert("RGBA" if transparent else "RGB"))


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError(
            "Reading pictures needs pillow: pip install 'patternfold[cli]'."
        ) from error
    return Image, ImageOps


def _read_array(path: Path) -> Found:
    """Read (H, W), (N, H, W) or (N, H, W, channels) numbers, with labels from an ``.npz``."""
    if path.suffix.lower() == ".npy":
        yield from _pages(np.load(path, mmap_mode="r", allow_pickle=False), None)
        return
    with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
        images = next((file[name] for name in _IMAGES if name in file), None)
        if images is None:
            raise ValueError(f"it has arrays {file.files}, but none of {list(_IMAGES)}")
        labels = next((file[name] for name in _LABELS if name in file), None)
        if labels is not None and "class_names" in file and labels.dtype.kind in "iu":
            labels = file["class_names"][labels]
    yield from _pages(images, labels)


def _pages(values: np.ndarray, labels: np.ndarray | None) -> Found:
    if values.ndim == 2:
        values = values[None]
    if values.ndim not in (3, 4) or (values.ndim == 4 and values.shape[3] not in (1, 2, 3, 4)):
        raise ValueError(
            f"its array has shape {values.shape}; expected (N, H, W), or (N, H, W, channels)"
        )
    if labels is not None and labels.shape != (len(values),):
        raise ValueError(f"it has {len(values)} images but labels of shape {labels.shape}")
    require_size(values.shape[1:3])
    for i, page in enumerate(values):
        yield *grey(np.asarray(page)), None if labels is None else str(labels[i])
