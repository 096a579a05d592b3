"""Arrays in ``.npy`` and ``.npz`` files, whose sizes are checked before they are unpacked."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from patternfold.files.raw import require_bytes

IMAGES = ("x", "X", "images", "data", "arr_0")
LABELS = ("y", "labels", "target")


def read_arrays(path: Path) -> Iterator[tuple[np.ndarray, str | None]]:
    """Read (H, W), (N, H, W) or (N, H, W, channels) numbers, with labels from an ``.npz``."""
    if path.suffix.lower() == ".npy":
        values, labels = npy.open_memmap(path, mode="r"), None
    else:
        values, labels = _read_members(path)
    if values.ndim == 2:
        values = values[None]
    if values.ndim not in (3, 4) or (values.ndim == 4 and values.shape[3] not in (1, 2, 3, 4)):
        raise ValueError(
            f"its array has shape {values.shape}; expected (N, H, W), or (N, H, W, channels)"
        )
    if labels is not None and labels.shape != (len(values),):
        raise ValueError(f"it has {len(values)} images but labels of shape {labels.shape}")
    for i, page in enumerate(values):
        yield np.asarray(page), None if labels is None else str(labels[i])


def _read_members(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    with zipfile.ZipFile(path) as file:
        names = [name.removesuffix(".npy") for name in file.namelist()]
        image_name, label_name = (_first(names, known) for known in (IMAGES, LABELS))
        if image_name is None:
            raise ValueError(f"it has arrays {names[:10]}, but none of {list(IMAGES)}")
        images = _read_member(file, image_name, path)
        labels = None if label_name is None else _read_member(file, label_name, path)
        if labels is not None and "class_names" in names and labels.dtype.kind in "iu":
            labels = _read_member(file, "class_names", path)[labels]
    return images, labels


def _first(names: Sequence[str], known: Sequence[str]) -> str | None:
    return next((name for name in known if name in names), None)


def _read_member(file: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    with file.open(f"{name}.npy") as member:
        shape, dtype = _header(member)
        require_bytes(math.prod(shape) * dtype.itemsize, path)
    with file.open(f"{name}.npy") as member:
        return npy.read_array(member, allow_pickle=False)


def _header(member: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its arrays are of version {version}, which is not known")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype
