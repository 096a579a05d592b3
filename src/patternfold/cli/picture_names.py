"""Names of the pictures that ``align`` writes: one for each, whatever those it reads are called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import PurePosixPath

_PAGE = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)
_LONGEST = 240
"""Bytes of a name without its number and ending."""


def picture_names(
    sources: Sequence[str], reserved: Sequence[str] = (), endings: Sequence[str] = ()
) -> list[str]:
    """Return a file's name for each source: ``cat/stack.tif[3]`` becomes ``cat/stack_3.png``.

    Where that name is taken, by another source, a folder or ``reserved``, the old ending is added,
    then a number. Names that differ only in case are the same on some systems. Files are PNG unless
    there are other ``endings``, one for each.
    """
    folders = {str(parent) for source in sources for parent in PurePosixPath(source).parents}
    taken = {name.casefold() for name in (*reserved, *folders)}
    names = []
    for source, ending in zip(sources, endings or [".png"] * len(sources), strict=True):
        name = next(name for name in _candidates(source, ending) if name.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names


def ending_of_source(source: str) -> str:
    """Return the ending of a source's file."""
    paged = _PAGE.fullmatch(source)
    return PurePosixPath(paged[1] if paged else source).suffix


def _candidates(source: str, new: str) -> Iterator[str]:
    paged = _PAGE.fullmatch(source)
    path, page = (paged[1], f"_{paged[2]}") if paged else (source, "")
    place = PurePosixPath(path)
    stem, ending = _short(place.stem), _short(place.suffix.removeprefix("."))
    yield str(place.parent / f"{stem}{page}{new}")
    yield str(place.parent / f"{_short(f'{stem}_{ending}')}{page}{new}")
    for number in count(2):
        yield str(place.parent / f"{stem}{page}_{number}{new}")


def _short(name: str) -> str:
    return os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
