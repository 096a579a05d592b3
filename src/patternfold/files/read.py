"""Folders and files as a set of images with names and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternfold.files.find import Found, Where, find_files, where_text
from patternfold.files.formats import read_file
from patternfold.files.placement import Placement
from patternfold.files.preparation import Preparation
from patternfold.files.prepare import prepare
from patternfold.files.raw import ImageFileError, Picture, Source, few

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
    path: Where, preparation: Preparation | None = None, *, skip_unreadable: bool = False
) -> ImageSet:
    """Read images from a folder, whose sub-folders are classes, or from files.

    Parameters
    ----------
    path : path or sequence of paths
        A folder of PNG, JPEG, TIFF, PGM, BMP, GIF, MRC, ``.npy`` or ``.npz`` files, one of these,
        a STAR file that lists particles, a pattern such as ``"*.tif"``, or several of them.
    preparation : Preparation, optional
        What to do to the pictures.
    skip_unreadable : bool, default=False
        Leave out files that can't be read, instead of refusing all.

    Raises
    ------
    ImageFileError
        If there are no images, or they can't be used together.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/stack.npy", np.random.default_rng(0).random((5, 24, 16)))
    ...     found = read_images(folder, Preparation(size=(12, 12)))
    >>> found.images.shape, found.names[0]
    ((5, 12, 12), 'stack.npy[0]')
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


def read_pictures(path: Where, *, skip_unreadable: bool = False) -> tuple[list[Picture], list[str]]:
    """Read pictures as they are, and return them with what is to be said about the files."""
    files, notes = find_files(path, skip_unreadable)
    pictures, broken = _read_files(files, skip_unreadable)
    if broken:
        notes.append(f"{len(broken)} unreadable file(s) left out: {few(broken)}")
    if not pictures:
        raise ImageFileError(f"{where_text(path)} holds no images.")
    return pictures, notes


def _read_files(files: Sequence[Found], skip_unreadable: bool) -> tuple[list[Picture], list[str]]:
    """Return the pictures, and the names of files that can't be read."""
    pictures, broken, total = [], [], 0
    room = max(MOST_PIXELS, sum(f.path.stat().st_size for f in files if f.path.exists()))
    for file in files:
        try:
            more = read_file(file.path, file.name, file.label)
        except ImageFileError as error:
            if not skip_unreadable:
                hint = "Remove the file, or leave out all such files with --skip-unreadable."
                raise ImageFileError(f"{error} {hint}" if len(files) > 1 else str(error)) from error
            broken.append(file.name)
            continue
        pictures += more
        total += sum(picture.pixels.size for picture in more)
        if total > room and len(files) > 1:
            raise ImageFileError(
                f"the files have more than {room} pixels up to {file.name}, which would fill the "
                "memory; shrink the pictures with another program, or give fewer at a time."
            )
    return pictures, broken
