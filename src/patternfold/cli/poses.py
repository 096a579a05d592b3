"""Poses as a table for people and other programs: degrees, pixels, matrices."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold.files.full_size import FullSize
from patternfold.model.matrices import keeps_shapes, matrices, read_matrices

MATRIX = ("m11", "m12", "m13", "m21", "m22", "m23")


def confidence_of(poses: Any) -> np.ndarray:
    """Return 1 − d²/d₂² by the next best pose: 0 where it fits as well, 1 where there is none."""
    first, second = (np.asarray(d, np.float64) for d in (poses.distances, poses.second_distances))
    known = np.isfinite(second)
    ratio = np.divide(first, second, out=np.ones_like(first), where=known & (second > 0))
    return np.where(known, np.clip(1 - ratio**2, 0, 1), 1.0)


def pose_columns(full: FullSize, poses: Any) -> dict[str, np.ndarray]:
    """Return the columns of the table, one number for each picture, NaN where there is none.

    The angle is the pattern's in the picture, counter-clockwise as seen; shifts are from the
    picture's middle to the pattern's origin in it, in its pixels, y downward. Families that are not
    affine have no angle, scale and matrix.
    """
    family = full.transformation
    shifts = full.origins()
    return {
        **(_affine_columns(full, shifts) if family.is_affine else _shift_columns(shifts)),
        "distance": poses.distances,
        "gain": poses.gain,
        "offset": poses.offset,
        "confidence": confidence_of(poses),
        **({} if poses.n_modes is None else {"n_modes": poses.n_modes}),
        **({"second_angle_deg": _second_angles(full, poses.second)} if family.is_affine else {}),
        **dict(zip(family.parameters.names, poses.parameters.T, strict=True)),
        **_std_columns(poses),
    }


def pose_table(files: Sequence[str], sources: Sequence[str], columns: dict[str, np.ndarray]) -> str:
    """Return the table as CSV; what is not known is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["file", "source", *columns])
    for file, source, *numbers in zip(files, sources, *columns.values(), strict=True):
        # Adding 0 turns a negative zero into a plain one.
        cells = ["" if np.isnan(number) else f"{number + 0.0:.10g}" for number in numbers]
        writer.writerow([file, source, *cells])
    return text.getvalue()


def _std_columns(poses: Any) -> dict[str, np.ndarray]:
    if poses.std is None:
        return {}
    return {f"std_{name}": std for name, std in zip(poses.names, poses.std.T, strict=True)}


def _shift_columns(shifts: np.ndarray) -> dict[str, np.ndarray]:
    return {"shift_x_px": shifts[:, 0], "shift_y_px": shifts[:, 1]}


def _affine_columns(full: FullSize, shifts: np.ndarray) -> dict[str, np.ndarray]:
    maps = full.matrices()
    turn = read_matrices(maps)
    two = {} if keeps_shapes(full.transformation) else {"scale_x": turn[2], "scale_y": turn[3]}
    return {
        "angle_deg": turn.angle,
        **_shift_columns(shifts),
        "scale": turn.scale,
        **two,
        **dict(zip(MATRIX, maps.reshape(len(maps), 6).T, strict=True)),
    }


def _second_angles(full: FullSize, second: np.ndarray) -> np.ndarray:
    angles = np.full(len(second), np.nan)
    known = np.isfinite(second).all(axis=1)
    if known.any():
        found = matrices(second[known], full.transformation, full.canvas)
        angles[known] = read_matrices(found).angle
    return angles
