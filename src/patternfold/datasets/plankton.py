"""Plankton of several species, seen from above: any rotation is as likely as another."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from patternfold.datasets.stored import read_stored

PLANKTON_FILE = "plankton_ndsb12_64.npz"
PLANKTON_ORIGIN = "twelve classes of the National Data Science Bowl's plankton images, 64×64 pixels"


def load_plankton(
    data: str | Path | None = None,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Load plankton pictures (N, 64, 64), uint8, their labels, and the names of the classes.

    Parameters
    ----------
    data : path, optional
        Folder with ``plankton_ndsb12_64.npz`` (arrays ``x``, ``y``, ``class_names``); by default
        the variable PATTERNFOLD_DATA.
    """
    names = ("x", "y", "class_names")
    pictures, labels, classes = read_stored(PLANKTON_FILE, names, PLANKTON_ORIGIN, data)
    return pictures, labels.astype(np.int64), [str(name) for name in classes]
