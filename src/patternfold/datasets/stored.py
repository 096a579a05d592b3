"""Image sets in a folder that the user names: .npz files, read without executing code."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


class MissingData(FileNotFoundError):
    """An image set is not there; the message says which file it is and where it comes from."""


def data_folder(data: str | Path | None = None) -> Path | None:
    """Return the folder with image sets: ``data``, or the variable PATTERNFOLD_DATA, or None."""
    folder = data or os.environ.get("PATTERNFOLD_DATA")
    if folder is None:
        return None
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(
            f"data={str(path)!r} is not a folder; name the one that holds the image sets, or "
            "unset PATTERNFOLD_DATA."
        )
    return path


def read_stored(
    file: str, names: tuple[str, ...], origin: str, data: str | Path | None = None
) -> tuple[np.ndarray, ...]:
    """Read arrays of an image set, or say which file is missing and where it comes from."""
    folder = data_folder(data)
    path = None if folder is None else folder / file
    if path is None or not path.exists():
        place = "no folder with image sets is named" if folder is None else f"{path} is not there"
        raise MissingData(
            f"{place}. Put {file}, with the arrays {', '.join(names)}, made from {origin}, into a "
            "folder, and name it: set PATTERNFOLD_DATA, or give --data on the command line."
        )
    with np.load(path, allow_pickle=False) as stored:
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"{path} has no array {missing[0]!r}; expected {', '.join(names)}.")
        return tuple(stored[name] for name in names)
