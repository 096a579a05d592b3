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


def picture_names(sources: Sequence[str], reserved: Sequence[str] = ()) -> list[str]:
    """Return a PNG's name for each source: ``cat/stack.tif[3]`` becomes ``cat/stack_3.png``.

    Where that name is taken, by another source, a folder or ``reserved``, the old ending is added,
    then a number. Names that differ only in case are the same on some systems.
    """
    folders = {str(parent) for source in sources for parent in PurePosixPath(source).parents}
    taken = {name.casefold() for name in (*reserved, *folders)}
    names = []
    for source in sources:
        name = next(name for name in _candidates(source) if name.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names


def _candidates(source: str) -> Iterator[str]:
    paged = _PAGE.fullmatch(source)
    path, page = (paged[1], f"_{paged[2]}") if paged else (source, "")
    place = PurePosixPath(path)
    stem, ending = _short(place.stem), _short(place.suffix.removeprefix("."))
    yield str(place.parent / f"{stem}{page}.png")
    yield str(place.parent / f"{_short(f'{stem}_{ending}')}{page}.png")
    for number in count(2):
        yield str(place.parent / f"{stem}{page}_{number}.png")


def _short(name: str) -> str:
    return os.fsencode(name)[:_LONGEST].decode("utf-8", "ignore")
