"""A folder, or one file, as a set of images with names and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from patternfold.files.formats import KNOWN, read_file
from patternfold.files.prepare import Preparation, prepare
from patternfold.files.raw import ImageFileError, Picture


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
    images, made, more = prepare(pictures, preparation or Preparation())
    labels = tuple(p.label for p in pictures if p.label is not None)
    complete = labels if len(labels) == len(pictures) else None
    return ImageSet(images, tuple(p.name for p in pictures), complete, made, (*notes, *more))


def read_pictures(
    path: str | Path, *, skip_unreadable: bool = False
) -> tuple[list[Picture], list[str]]:
    """Read pictures as they are, and return them with what is to be said about the files."""
    path = Path(path)
    if not path.exists():
        raise ImageFileError(f"{path} does not exist.")
    if path.is_file():
        pictures, notes = read_file(path), []
    else:
        pictures, notes = _read_folder(path, skip_unreadable)
    if not pictures:
        raise ImageFileError(f"{path} holds no images.")
    return pictures, notes


def _read_folder(folder: Path, skip_unreadable: bool) -> tuple[list[Picture], list[str]]:
    files, others = _list(folder)
    if not files:
        known = ", ".join(sorted(ending.removeprefix(".") for ending in KNOWN))
        raise ImageFileError(f"{folder} holds no images; known endings: {known}.")
    pictures, broken = [], []
    for file in files:
        name = file.relative_to(folder).as_posix()
        label = name.split("/")[0] if "/" in name else None
        try:
            pictures += read_file(file, name, label)
        except ImageFileError as error:
            if not skip_unreadable:
                hint = "Remove the file, or leave out all such files with --skip-unreadable."
                raise ImageFileError(f"{error} {hint}") from error
            broken.append(name)
    notes = []
    if others:
        notes.append(f"{len(others)} other file(s) ignored: {_few(others)}")
    if broken:
        notes.append(f"{len(broken)} unreadable file(s) left out: {_few(broken)}")
    return pictures, notes


def _list(folder: Path) -> tuple[list[Path], list[str]]:
    """Return image files and the names of others; hidden ones don't count."""
    files, others = [], []
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder)
        if not file.is_file() or any(part.startswith(".") for part in relative.parts):
            continue
        if file.suffix.lower() in KNOWN:
            files.append(file)
        else:
            others.append(relative.as_posix())
    return files, others


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
