"""Stacks of pictures: multi-page TIFF and OME-TIFF, and folders with a file for each picture."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from patternfold.files.find import Found, find_files
from patternfold.files.formats import read_file, read_originals
from patternfold.files.raw import Source
from patternfold.files.stacks.base import FileStack
from patternfold.files.tiff import require_straight
from patternfold.learning.stream.stack import Stack, StackError

READERS = 8
"""Files of a folder that are read at a time: discs and decoders wait for one another."""


class TiffStack(FileStack):
    """The pages of a TIFF's first series: mapped where they lie one after the other."""

    def open(self) -> Any:
        """Open the file."""
        try:
            import tifffile
        except ImportError as error:
            raise ImportError("TIFF needs tifffile: pip install 'patternfold[cli]'.") from error
        with _complaints() as complaints:
            file = tifffile.TiffFile(self.path, _multifile=False)
            try:
                require_straight(file)
            except ValueError as error:
                file.close()
                raise StackError(f"{self.name} is damaged: {error}.") from error
            series = file.series[0]
        if complaints:
            file.close()
            raise StackError(
                f"{self.name} is damaged: {complaints[0]}. Restore the file from a copy."
            )
        if series.ndim > 3 and "S" not in series.axes:
            file.close()
            raise StackError(
                f"{self.name} has axes {series.axes} of shape {series.shape}; write the images as "
                "one stack (N, H, W)."
            )
        if series.dataoffset is not None and series.dtype.isnative:
            file.close()
            return tifffile.memmap(self.path, mode="r")
        return _Pages(file, series)


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What tifffile says of pages that it can't find, and otherwise leaves out."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())
    logger = logging.getLogger("tifffile")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


class _Pages:
    """Pages that are decoded as they are needed."""

    def __init__(self, file: Any, series: Any):
        self.file, self.shape, self.dtype = file, series.shape, series.dtype
        self._lock = Lock()

    def __del__(self) -> None:
        self.file.close()

    def __getitem__(self, rows: slice) -> np.ndarray:
        begin, end, _ = rows.indices(self.shape[0])
        with self._lock:
            found = self.file.asarray(series=0, key=slice(begin, end))
        return found.reshape(end - begin, *self.shape[1:])


class FolderStack(Stack):
    """A folder of files, one picture each, of one size; read in parallel.

    Grey pictures of 8 and 16 bits stay as they are; colour is turned grey, from 0 to 1.
    """

    def __init__(self, path: str | Path):
        self.name = str(path)
        files, notes = find_files(path)
        self.files: list[Found] = files
        self.notes = tuple(notes)
        first = _picture(files[0].path)
        self.shape = (len(files), first.shape[0], first.shape[1])
        self.dtype = first.dtype

    def read(self, begin: int, end: int) -> np.ndarray:
        """Read some files, several at a time."""
        with ThreadPoolExecutor(READERS) as pool:
            found = pool.map(self._read, self.files[begin:end])
            return np.stack(list(found))

    def _read(self, file: Found) -> np.ndarray:
        picture = _picture(file.path)
        if picture.shape != self.shape[1:]:
            raise StackError(
                f"{file.path} has {picture.shape} pixels, and {self.files[0].path} has "
                f"{self.shape[1:]}. Bring all pictures to one size, for example with "
                "patternfold.files.read_images."
            )
        if picture.dtype != self.dtype:
            raise StackError(
                f"{file.path} holds {picture.dtype}, and {self.files[0].path} holds {self.dtype}. "
                "Save all pictures with the same kind of numbers."
            )
        return picture


def _picture(path: Path) -> np.ndarray:
    """The one picture of a file."""
    values = next(iter(read_originals([Source(path)])))
    if values.ndim == 2:
        return values
    pictures = read_file(path)
    if len(pictures) != 1:
        raise StackError(f"{path} holds {len(pictures)} pictures; name the file itself.")
    return pictures[0].pixels
