"""One file of any known kind, as grey pictures."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock

import numpy as np

from patternfold.files.arrays import read_arrays
from patternfold.files.mrc import read_mrc
from patternfold.files.pillow import read_pages
from patternfold.files.raw import ImageFileError, Picture, Source, grey, white_of
from patternfold.files.star import read_star
from patternfold.files.tiff import read_tiff

PICTURES = {".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pnm", ".bmp", ".gif"}
TIFFS = {".tif", ".tiff"}
STACKS = {".mrc", ".mrcs"}
ARRAYS = {".npy", ".npz"}
TABLES = {".star"}
"""Lists of images in other files: read when named, but not when they lie in a folder."""

_silence, _silent = Lock(), list[bool]()

KNOWN = PICTURES | TIFFS | STACKS | ARRAYS


@dataclass(frozen=True)
class Page:
    """One picture as a file holds it."""

    values: np.ndarray
    """Shape (H, W) or (H, W, channels)."""
    label: str | None = None
    """Its class, if the file says it."""
    name: str | None = None
    """Its name, if the file gives it one."""
    source: Source | None = None
    """Where it is, if not in this file."""


def read_file(path: Path, name: str | None = None, label: str | None = None) -> list[Picture]:
    """Read all pictures of a file: its pages, sections or rows.

    Raises
    ------
    ImageFileError
        If the file is damaged, or not what its ending says.
    """
    name = path.name if name is None else name
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")  # of decoders and NumPy on odd headers
            pictures = [
                _picture(page, page.source or Source(path, i), page.label or label)
                for i, page in enumerate(_read(path))
            ]
    except ImportError:
        raise
    except Exception as error:  # decoders raise whatever a damaged table leads them to
        raise ImageFileError(f"{path} can't be read: {_reason(error)}.") from error
    single = len(pictures) == 1
    return [
        replace(picture, name=picture.name or (name if single else f"{name}[{i}]"))
        for i, picture in enumerate(pictures)
    ]


def _picture(page: Page, source: Source, label: str | None) -> Picture:
    turned = grey(page.values)
    white = white_of(page.values.dtype)
    name = page.name or ""
    source = replace(source, shape=page.values.shape, dtype=page.values.dtype)
    return Picture(turned.pixels, name, label, turned.traits, white, turned.counts, source)


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
            with warnings.catch_warnings(), _quiet():
                warnings.simplefilter("ignore")
                page = next(islice(pages, source.page - at, None))
        except Exception as error:
            raise ImageFileError(f"{path} can't be read: {_reason(error)}.") from error
        at = source.page + 1
        yield page.values


def _read(path: Path) -> Iterator[Page]:
    """Yield the pictures of a file."""
    ending = path.suffix.lower()
    if path.exists() and not path.is_file():  # a pipe or device might never end
        raise ValueError("it is no ordinary file")
    if ending in ARRAYS:
        yield from (Page(values, label) for values, label in read_arrays(path))
    elif ending in STACKS:
        yield from map(Page, read_mrc(path))
    elif ending in TIFFS:
        yield from map(Page, read_tiff(path))
    elif ending in PICTURES:
        yield from map(Page, read_pages(path))
    elif ending in TABLES:
        yield from (Page(*found) for found in read_star(path))
    else:
        known = sorted(KNOWN | TABLES)
        raise ValueError(f"files ending in {ending!r} are not known; known: {known}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep tifffile from logging what it finds odd: what matters, it raises.

    Several threads may read at a time: the last of them lets it speak again.
    """
    logger = logging.getLogger("tifffile")
    with _silence:
        _silent.append(logger.disabled)
        logger.disabled = True
    try:
        yield
    finally:
        with _silence:
            before = _silent.pop()  # the first is the last to go
            if not _silent:
                logger.disabled = before


def _reason(error: Exception) -> str:
    """What an error says; some say nothing but their kind."""
    return (str(error) or type(error).__name__).rstrip(".")
