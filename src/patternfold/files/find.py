"""Files to read: folders, single files, patterns with ``*``, or several of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patternfold._validation import near_path
from patternfold.files.formats import KNOWN
from patternfold.files.raw import ImageFileError, few

Where = str | Path | Sequence[str | Path]
"""One place, or several."""


@dataclass(frozen=True)
class Found:
    """A file, with the name it goes by and the class it belongs to."""

    path: Path
    name: str
    label: str | None = None


def find_files(where: Where, skip_unreadable: bool = False) -> tuple[list[Found], list[str]]:
    """Return the files, in the order given and by name in folders, and what is to be said.

    In a folder, the sub-folders are classes; of several folders, each is one.
    """
    places = [place for one in _as_list(where) for place in _expand(one)]
    if len(places) == 1 and places[0].is_file():
        return [Found(places[0], as_text(places[0].name))], []
    single = places[0] if len(places) == 1 else None
    base = _common(places) if single is None else single
    found, others, notes = [], [], []
    for place in places:
        if place.is_file():
            found.append(_name(place, base))
            continue
        files, more, said = _list(place, skip_unreadable)
        found += [_name(file, base) for file in files]
        others += [_name(file, base).name for file in more]
        notes += said
    if not found:
        known = ", ".join(sorted(ending.removeprefix(".") for ending in KNOWN))
        raise ImageFileError(f"{where_text(where)} holds no images; known endings: {known}.")
    if others:
        notes.append(f"{len(others)} other file(s) ignored: {few(others)}")
    return _once(found), notes


def where_text(where: Where) -> str:
    """Return places as people say them."""
    return few([str(place) for place in _as_list(where)])


def _as_list(where: Where) -> list[str | Path]:
    return [where] if isinstance(where, (str, Path)) else list(where)


def _expand(place: str | Path) -> list[Path]:
    """Return a place that exists, or those that a pattern matches."""
    if Path(place).exists():
        return [Path(place)]
    if not glob.has_magic(os.fspath(place)):
        raise ImageFileError(f"{place} does not exist.{near_path(Path(place))}")
    matched = sorted(glob.glob(os.fspath(place), recursive=True))
    files = [Path(match) for match in matched if Path(match).suffix.lower() in KNOWN]
    # "photos/*" matches other files too; without pictures among them, folders may be meant.
    files = files or [Path(match) for match in matched if Path(match).is_dir()]
    if not files:
        raise ImageFileError(f"{place} matches no pictures.")
    return files


def _common(places: Sequence[Path]) -> Path:
    """Return the folder that all are in, from which names are counted."""
    return Path(os.path.commonpath([os.path.abspath(place.parent) for place in places]))


def _name(file: Path, base: Path) -> Found:
    name = as_text(Path(os.path.relpath(file, base)).as_posix())
    return Found(file, name, name.split("/")[0] if "/" in name else None)


def _once(files: Sequence[Found]) -> list[Found]:
    """Leave out files that were named twice."""
    return list({os.path.abspath(file.path): file for file in files}.values())


def _list(folder: Path, skip_unreadable: bool) -> tuple[list[Path], list[Path], list[str]]:
    """Return image files, others, and what to say; hidden ones don't count."""
    files, others, linked, closed = [], [], [], []

    def inside(path: str | Path) -> str:
        return as_text(Path(path).relative_to(folder).as_posix())

    for place, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked += [inside(Path(place, name)) for name in folders if Path(place, name).is_symlink()]
        for file in (Path(place, name) for name in names if not name.startswith(".")):
            if file.suffix.lower() in KNOWN and (file.is_file() or file.is_symlink()):
                files.append(file)
            elif file.is_file():
                others.append(file)
    if closed and not skip_unreadable:
        raise ImageFileError(
            f"{closed[0].filename} can't be opened: {closed[0].strerror}. Give yourself the "
            "permission, or leave out all such folders with --skip-unreadable."
        )
    notes = [f"{len(linked)} linked sub-folder(s) not followed: {few(sorted(linked))}"]
    notes = notes if linked else []
    if closed:
        names = sorted(inside(error.filename) for error in closed)
        notes.append(f"{len(closed)} sub-folder(s) that can't be opened left out: {few(names)}")
    return sorted(files), sorted(others), notes


def as_text(name: str) -> str:
    """Return a file's name with escape sequences where it isn't UTF-8: any file can hold it."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
