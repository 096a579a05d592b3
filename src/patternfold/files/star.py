"""Particles that a STAR file of RELION lists, by starfile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.mrc import read_section
from patternfold.files.raw import Source, require_size

IMAGE, CLASS = "rlnImageName", "rlnClassNumber"
STACKS = {".mrc", ".mrcs"}
LARGEST = 2**28
"""Most bytes of a table."""

_LEVELS = 4  # folders above the table in which the paths may begin


def read_star(path: Path) -> Iterator[tuple[np.ndarray, str | None, str, Source]]:
    """Yield each particle with its class, where there are several, its name and its place.

    Names are as RELION writes them, ``000007@folder/stack.mrcs``, counted from 1, with the path
    from the folder of the project: that of the table, or one above it.
    """
    table = _table(path)
    classes = table[CLASS].astype(str) if CLASS in table else None
    several = classes is not None and classes.nunique() > 1
    total, places = 0, {}
    for row, name in enumerate(table[IMAGE].astype(str)):
        number, _, inside = name.rpartition("@")
        if inside not in places:
            places[inside] = _find(inside, path)
        source = Source(places[inside], int(number) - 1 if number else 0)
        section = read_section(source.path, source.page)
        total += section.size
        # A table may name one section a million times.
        require_size(total, max(places.values(), key=lambda place: place.stat().st_size))
        yield (
            section,
            str(classes.iloc[row]) if several and classes is not None else None,
            name,
            source,
        )


def read_places(path: Path) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """Return the stacks that a table names, and for each particle which one and its section."""
    names = _table(path)[IMAGE].astype(str)
    if not len(names):
        raise ValueError("it lists no particles")
    split = names.str.rpartition("@")
    inside, which = np.unique(split[2].to_numpy(str), return_inverse=True)
    sections = np.array([int(number) - 1 if number else 0 for number in split[0]])
    if sections.min() < 0:
        raise ValueError("it names section 0, and they are counted from 1")
    return [_find(name, path) for name in inside.tolist()], which, sections


def _table(path: Path) -> Any:
    """Return the table of the file that names images."""
    try:
        import starfile
    except ImportError as error:
        raise ImportError("Reading STAR needs starfile: pip install 'patternfold[cli]'.") from error
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes; split it")
    tables: dict[str, Any] = starfile.read(path, always_dict=True)  # pyright: ignore
    for table in tables.values():
        if IMAGE in getattr(table, "columns", ()):
            return table
    raise ValueError(f"none of its tables has a column {IMAGE}")


def _find(inside: str, table: Path) -> Path:
    """Find a stack from the table's folder, or one of those above: RELION's projects are so."""
    if Path(inside).suffix.lower() not in STACKS:
        raise ValueError(f"it names {inside}, which is no MRC stack")
    folders = [table.parent, *table.resolve().parents[1:_LEVELS]]
    for folder in folders:
        if (folder / inside).is_file():
            return folder / inside
    raise ValueError(f"it names {inside}, which is neither in {table.parent} nor in folders above")
