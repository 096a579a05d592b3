"""Which stack a file, or an array of another library, is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._validation import near_path
from patternfold.files.stacks.arrays import (
    INSIDE,
    DaskStack,
    Hdf5Stack,
    MappedStack,
    NpyStack,
    ZarrStack,
    require_chunks,
)
from patternfold.files.stacks.base import FileStack, SliceableStack
from patternfold.files.stacks.particles import MrcStack, StarStack
from patternfold.files.stacks.pictures import FolderStack, TiffStack
from patternfold.learning.stream.stack import Stack, StackError

KINDS: dict[str, type[FileStack]] = {
    ".npy": NpyStack,
    ".zarr": ZarrStack,
    ".h5": Hdf5Stack,
    ".hdf5": Hdf5Stack,
    ".tif": TiffStack,
    ".tiff": TiffStack,
    ".mrc": MrcStack,
    ".mrcs": MrcStack,
    ".star": StarStack,
}
"""By the end of the file's name; folders hold a file for each picture."""

RESIDENT = 2**28
"""Bytes up to which a memory map is read into memory as other arrays are: it is what scikit-learn's
parallel workers are given, too."""


def open_stack(images: Any) -> Stack:
    """Open images without reading them.

    Parameters
    ----------
    images : path, array or Stack
        An ``.npy``, zarr, HDF5, TIFF, MRC or STAR file (an array inside one is named
        ``file.h5::name``), a folder with a file for each picture, or anything with ``shape``
        (N, H, W), ``dtype`` and slices, such as a NumPy memory map, a zarr array, an h5py dataset
        or a Dask array.

    Returns
    -------
    Stack
        Which estimators take in place of an array.

    Raises
    ------
    StackError
        If the file is damaged, lacks a part, or holds no images of one size.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold.files import open_stack
    >>> open_stack(np.zeros((3, 8, 6), np.uint8))
    SliceableStack(an array of numpy: 3 images of 8×6)
    """
    if isinstance(images, Stack):
        return images
    if isinstance(images, str | os.PathLike):
        return _open_path(str(images))
    if isinstance(images, np.memmap) and images.filename is not None and images.base is not None:
        whole = images.size * images.itemsize + images.offset
        plain = images.flags.c_contiguous or images.flags.f_contiguous
        if plain and not isinstance(images.base, np.memmap) and whole <= _size(images.filename):
            return MappedStack(images)
        return SliceableStack(images, str(images.filename))
    return _open_array(images)


def _open_array(images: Any) -> Stack:
    """A stack of another library's array."""
    library = _library(images)
    if library == "dask":
        return DaskStack(images, "a Dask array")
    if library == "h5py":
        return Hdf5Stack(f"{images.file.filename}{INSIDE}{images.name}")
    if library == "zarr":
        require_chunks(str(images.store_path), images)
        return SliceableStack(images, str(images.store_path))
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        raise TypeError(f"images must be a path or have a shape and a dtype; got {images!r}.")
    return SliceableStack(images)


def as_stack(images: Any) -> Stack | None:
    """Return the stack that is to be read block by block, None for arrays in memory."""
    if isinstance(images, Stack | str | os.PathLike):
        return open_stack(images)
    mapped = isinstance(images, np.memmap) and images.ndim == 3 and images.nbytes > RESIDENT
    lazy = _library(images) in ("dask", "h5py", "zarr") and len(getattr(images, "shape", ())) == 3
    return open_stack(images) if mapped or lazy else None


def _open_path(name: str) -> Stack:
    file, _, inside = name.partition(INSIDE)
    path = Path(file)
    if not path.exists():
        raise StackError(f"{file} does not exist.{near_path(path)}")
    kind = KINDS.get(path.suffix.lower())
    if kind is None and path.is_dir():
        zarr = any((path / own).exists() for own in ("zarr.json", ".zarray", ".zgroup"))
        return ZarrStack(name) if zarr else FolderStack(path)
    if kind is None:
        raise StackError(
            f"{file} is no stack that is known; known endings: {', '.join(KINDS)}, or a folder."
        )
    if inside and kind not in (ZarrStack, Hdf5Stack):
        raise StackError(f"{name}: only zarr and HDF5 files hold arrays by name.")
    return kind(name)


def _library(images: Any) -> str:
    return type(images).__module__.split(".")[0]


def _size(file: Any) -> int:
    return os.stat(file).st_size
