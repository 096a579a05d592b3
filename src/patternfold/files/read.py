"""A folder, or one file, as a set of images with names and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from patternfold.files.formats import KNOWN, read_file
from patternfold.files.placement import Placement
from patternfold.files.preparation import Preparation
from patternfold.files.prepare import prepare
from patternfold.files.raw import ImageFileError, Picture, Source

MOST_PIXELS = 2**29
"""Of all pictures of a folder, unless its files have as many bytes."""


@dataclass(frozen=True)
class ImageSet:
    """Images ready for learning."""

    images: np.ndarray
    """Shape (N, H, W), float32."""
    names: tuple[str, ...]
    """File names, with the page in brackets."""
    labels: tuple[str, ...] | None
    """Sub-folders or stored labels, if every image has one."""
    preparation: Preparation
    """What was done, to do the same to new images."""
    notes: tuple[str, ...]
    """What was done, in words."""
    mask: np.ndarray | None = None
    """Shape (N, H, W), True where pixels count; None where all do. Padding does not, nor do bars,
    frames, transparent parts and NaN."""
    placements: tuple[Placement, ...] = ()
    """Where each picture lies on its image."""
    sources: tuple[Source | None, ...] = ()
    """The file of each picture."""
    remarks: tuple[str, ...] = ()
    """What looks wrong, in words, with the pictures' names."""

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)


def read_images(
    path: str | Path, preparation: Preparation | None = None, *, skip_unreadable: bool = False
) -> ImageSet:
    """Read images from a folder, whose sub-folders are classes, or from one file.

    Parameters
    ----------
    path : path
        A folder of PNG, JPEG, TIFF, PGM, BMP, GIF, MRC, ``.npy`` or ``.npz`` files, or one of them.
    preparation : Preparation, optional
        What to do to the pictures.
    skip_unreadable : bool, default=False
        Leave out files that can't be read, instead of refusing all.

    Raises
    ------
    ImageFileError
        If there are no images, or they can't be used together.
    """
    pictures, notes = read_pictures(path, skip_unreadable=skip_unreadable)
    return prepare_pictures(pictures, preparation, notes)


def prepare_pictures(
    pictures: Sequence[Picture],
    preparation: Preparation | None = None,
    notes: Sequence[str] = (),
) -> ImageSet:
    """Make pictures ready; ``notes`` are what was said about them before."""
    made = prepare(pictures, preparation or Preparation())
    labels = tuple(p.label for p in pictures if p.label is not None)
    return ImageSet(
        made.images,
        tuple(p.name for p in pictures),
        labels if len(labels) == len(pictures) else None,
        made.preparation,
        (*notes, *made.notes),
        made.mask,
        made.placements,
        tuple(p.source for p in pictures),
        made.remarks,
    )


def read_pictures(
    path: str | Path, *, skip_unreadable: bool = False
) -> tuple[list[Picture], list[str]]:
    """Read pictures as they are, and return them with what is to be said about the files."""
    path = Path(path)
    if not path.exists():
        raise ImageFileError(f"{path} does not exist.")
    if path.is_file():
        pictures, notes = read_file(path, _as_text(path.name)), []
    else:
        pictures, notes = _read_folder(path, skip_unreadable)
    if not pictures:
        raise ImageFileError(f"{path} holds no images.")
    return pictures, notes


def _read_folder(folder: Path, skip_unreadable: bool) -> tuple[list[Picture], list[str]]:
    files, others, notes = _list(folder, skip_unreadable)
    if not files:
        known = ", ".join(sorted(ending.removeprefix(".") for ending in KNOWN))
        raise ImageFileError(f"{folder} holds no images; known endings: {known}.")
    pictures, broken = [], []
    room = max(MOST_PIXELS, sum(file.stat().st_size for file in files if file.exists()))
    for file in files:
        name = _as_text(file.relative_to(folder).as_posix())
        label = name.split("/")[0] if "/" in name else None
        try:
            pictures += read_file(file, name, label)
        except ImageFileError as error:
            if not skip_unreadable:
                hint = "Remove the file, or leave out all such files with --skip-unreadable."
                raise ImageFileError(f"{error} {hint}") from error
            broken.append(name)
        if sum(picture.pixels.size for picture in pictures) > room:
            raise ImageFileError(
                f"{folder} has more than {room} pixels up to {name}, which would fill the memory; "
                "shrink the pictures with another program, or give fewer at a time."
            )
    if others:
        notes.append(f"{len(others)} other file(s) ignored: {_few(others)}")
    if broken:
        notes.append(f"{len(broken)} unreadable file(s) left out: {_few(broken)}")
    return pictures, notes


def _list(folder: Path, skip_unreadable: bool) -> tuple[list[Path], list[str], list[str]]:
    """Return image files, the names of others, and what to say; hidden ones don't count."""
    files, others, linked, closed = [], [], [], []

    def inside(path: str | Path) -> str:
        return _as_text(Path(path).relative_to(folder).as_posix())

    for place, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked += [inside(Path(place, name)) for name in folders if Path(place, name).is_symlink()]
        for file in (Path(place, name) for name in names if not name.startswith(".")):
            if file.suffix.lower() in KNOWN and (file.is_file() or file.is_symlink()):
                files.append(file)
            elif file.is_file():
                others.append(inside(file))
    if closed and not skip_unreadable:
        raise ImageFileError(
            f"{closed[0].filename} can't be opened: {closed[0].strerror}. Give yourself the "
            "permission, or leave out all such folders with --skip-unreadable."
        )
    notes = [f"{len(linked)} linked sub-folder(s) not followed: {_few(sorted(linked))}"]
    notes = notes if linked else []
    if closed:
        names = sorted(inside(error.filename) for error in closed)
        notes.append(f"{len(closed)} sub-folder(s) that can't be opened left out: {_few(names)}")
    return sorted(files), sorted(others), notes


def _as_text(name: str) -> str:
    """Return a file's name with escape sequences where it isn't UTF-8: any file can hold it."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
