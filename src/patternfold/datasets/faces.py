"""Faces of one person at a time: with varied expressions, and under varied light."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from patternfold.datasets.stored import read_stored

FREY_FILE = "frey_faces.npz"
YALE_FILE = "yaleb_3subjects_48x42.npz"
FREY_ORIGIN = "the Frey face set, 1965 video frames of one person (frey_rawface.mat)"
YALE_ORIGIN = (
    "the cropped Extended Yale Face Database B, subjects seen from the front under 64 lights, "
    "reduced to 48×42 pixels"
)


def load_frey_faces(data: str | Path | None = None) -> np.ndarray:
    """Load the Frey faces, one person with varied expressions, shape (1965, 28, 20), uint8.

    Parameters
    ----------
    data : path, optional
        Folder with ``frey_faces.npz`` (array ``x``); by default the variable PATTERNFOLD_DATA.
    """
    (pictures,) = read_stored(FREY_FILE, ("x",), FREY_ORIGIN, data)
    return pictures


def load_yale_faces(
    data: str | Path | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Load faces under 64 lights: pictures (N, 48, 42), subjects (N,), and the lights (N, 2).

    Pictures that the data base marks as bad are left out. Lights are azimuth and elevation in
    degrees.

    Parameters
    ----------
    data : path, optional
        Folder with ``yaleb_3subjects_48x42.npz`` (arrays ``x``, ``subject``, ``azimuth``,
        ``elevation``, ``bad``); by default the variable PATTERNFOLD_DATA.
    """
    names = ("x", "subject", "azimuth", "elevation", "bad")
    pictures, subject, azimuth, elevation, bad = read_stored(YALE_FILE, names, YALE_ORIGIN, data)
    lights = np.column_stack([azimuth, elevation])
    return pictures[~bad], subject[~bad].astype(np.int64), lights[~bad]
