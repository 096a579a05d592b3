"""One file of any known kind, as grey pictures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from patternfold.files.arrays import read_arrays
from patternfold.files.mrc import read_mrc
from patternfold.files.pillow import read_pages
from patternfold.files.raw import ImageFileError, Picture, Source, grey, white_of

PICTURES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".pgm", ".ppm", ".pnm", ".bmp", ".gif"}
STACKS = {".mrc", ".mrcs"}
ARRAYS = {".npy", ".npz"}
KNOWN = PICTURES | STACKS | ARRAYS


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
            found = [
                (grey(values), own or label, values.shape, values.dtype)
                for values, own in _read(path)
            ]
    except ImportError:
        raise
    except Exception as error:  # decoders raise whatever a damaged table leads them to
        raise ImageFileError(f"{path} can't be read: {_reason(error)}.") from error
    single = len(found) == 1
    return [
        Picture(
            page.pixels,
            name if single else f"{name}[{i}]",
            own,
            page.traits,
            white_of(dtype),
            page.counts,
            Source(path, i, shape, dtype),
        )
        for i, (page, own, shape, dtype) in enumerate(found)
    ]


def read_originals(sources: Sequence[Source]) -> Iterator[np.ndarray]:
    """Yield pictures as their files hold them: colour, transparency, and kind of numbers.

    Arrays have shape (H, W) or (H, W, channels), orientation applied. Files are opened once for a
    run of pages in order.
    """
    path, pages, at = None, iter(()), 0
    for source in sources:
        if source.path != path or source.page < at:
            path, pages, at = source.path, _read(source.path), 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = next(islice(pages, source.page - at, None))[0]
        except Exception as error:
            raise ImageFileError(f"{path} can't be read: {_reason(error)}.") from error
        at = source.page + 1
        yield values


def _read(path: Path) -> Iterator[tuple[np.ndarray, str | None]]:
    """Yield the numbers of each picture, and its label if the file has one."""
    ending = path.suffix.lower()
    if ending in ARRAYS:
        yield from read_arrays(path)
    elif ending in STACKS:
        for section in read_mrc(path):
            yield section, None
    elif ending in PICTURES:
        for page in read_pages(path):
            yield page, None
    else:
        raise ValueError(f"files ending in {ending!r} are not known; known: {sorted(KNOWN)}")


def _reason(error: Exception) -> str:
    """What an error says; some say nothing but their kind."""
    return (str(error) or type(error).__name__).rstrip(".")
