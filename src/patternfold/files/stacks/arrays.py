"""Stacks in ``.npy`` files, memory maps, zarr and HDF5, and as Dask arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy

from patternfold.files.stacks.base import FileStack, SliceableStack
from patternfold.learning.stream.stack import StackError

INSIDE = "::"
"""Between a file and the name of an array in it: ``plankton.h5::images``."""


class NpyStack(FileStack):
    """An ``.npy`` file, mapped into memory."""

    def open(self) -> Any:
        """Map the file."""
        return npy.open_memmap(self.path, mode="r")


class MappedStack(FileStack):
    """A NumPy memory map: other processes map the same file."""

    def __init__(self, array: np.memmap):
        self._how = (str(array.filename), array.dtype, array.offset, array.shape)
        columns = array.flags.f_contiguous and not array.flags.c_contiguous
        self._order: Literal["F", "C"] = "F" if columns else "C"
        super().__init__(self._how[0])

    def open(self) -> Any:
        """Map the file."""
        file, dtype, offset, shape = self._how
        return np.memmap(file, dtype, "r", offset, shape, self._order)


class ZarrStack(FileStack):
    """A zarr array, or the only such array of a group."""

    def __init__(self, path: str | Path):
        file, _, self._inside = str(path).partition(INSIDE)
        super().__init__(file, str(path))

    def open(self) -> Any:
        """Open the array and check that nothing of it is missing."""
        zarr = _needed("zarr", "zarr", "zarr")
        found = zarr.open(self.path, mode="r", path=self._inside or None)
        if not hasattr(found, "shape"):
            images = {name: array for name, array in found.arrays() if array.ndim == 3}
            found = _only(self.name, images)
        require_chunks(self.name, found)
        return found


class Hdf5Stack(FileStack):
    """A dataset of an HDF5 file; by default the only one of shape (N, H, W)."""

    def __init__(self, path: str | Path):
        file, _, self._inside = str(path).partition(INSIDE)
        super().__init__(file, str(path))

    def open(self) -> Any:
        """Open the dataset and check that nothing of it is missing."""
        file = _needed("h5py", "h5py", "cluster").File(self.path, "r")
        if self._inside:
            found = file[self._inside]
        else:
            images: dict[str, Any] = {}
            file.visititems(lambda name, item: _collect(images, name, item))
            found = _only(self.name, images)
        if found.chunks is not None:
            counts = (-(-n // c) for n, c in zip(found.shape, found.chunks, strict=True))
            missing = math.prod(counts) - found.id.get_num_chunks()
            if missing > 0:
                raise StackError(_missing(self.name, missing, ""))
        return found


class DaskStack(SliceableStack):
    """A Dask array: blocks are computed as they are needed, where Dask computes them."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """Compute a slice."""
        return np.asarray(self._array[begin:end].compute())

    def lazy(self, begin: int, end: int) -> Any:
        """Return a slice, to be computed where its blocks are."""
        return self._array[begin:end]


def require_chunks(name: str, array: Any) -> None:
    """Refuse a zarr array of which chunks are missing: they would be read as blank images."""
    missing = array.nchunks - array.nchunks_initialized
    if missing > 0:
        raise StackError(_missing(name, missing, _first_missing(array)))


def _first_missing(array: Any) -> str:
    """Where the first missing chunk should be, if the array lies in a folder."""
    root = getattr(array.store, "root", None)
    if root is None:
        return ""
    stored = array.shards or array.chunks
    sides = [-(-n // c) for n, c in zip(array.shape, stored, strict=True)]
    for place in np.ndindex(*sides):
        file = Path(root, array.path, array.metadata.encode_chunk_key(place))
        if not file.exists():
            return f" (the first is {file})"
    return ""


def _missing(name: str, count: int, where: str) -> str:
    return (
        f"{name} lacks {count} chunk(s){where}, whose images would be blank. Copy them again; if "
        "they are meant to be blank, write them all the same (zarr: write_empty_chunks)."
    )


def _collect(images: dict[str, Any], name: str, item: Any) -> None:
    if getattr(item, "ndim", 0) == 3:
        images[name] = item


def _only(name: str, images: dict[str, Any]) -> Any:
    if len(images) != 1:
        known = ", ".join(sorted(images)) or "none"
        raise StackError(
            f"{name} has {len(images)} arrays of shape (N, H, W): {known}. Name one: "
            f"{name}{INSIDE}NAME."
        )
    return next(iter(images.values()))


def _needed(module: str, package: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"This needs {package}: pip install 'patternfold[{extra}]'.") from error
