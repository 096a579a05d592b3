"""Checks of user input: every message names the argument, its value and the remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MOST_PIXELS = 2**22
"""Pixels of an image that a model may have: 2048 × 2048."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a question for the listed name that is nearest, or nothing if none is near."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.4)
    return f" Did you mean {near[0]!r}?" if near else ""


def near_path(path: Path) -> str:
    """Return a question for what is called nearly as a path that does not exist."""
    try:
        found = [item.name for item in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, found, n=1, cutoff=0.75)
    return f" Did you mean {str(path.parent / near[0])!r}?" if near else ""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """Build the error for a name that is not listed, with the nearest listed one."""
    known = sorted(known)
    hint, listed = did_you_mean(name, known), ", ".join(map(repr, known))
    return ValueError(f"{kind}={name!r} is not known.{hint} Known: {listed}.")


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]`` or raise an error that suggests the near match."""
    if name not in table:
        raise unknown_name(kind, name, table)
    return table[name]


def as_floats(name: str, value: Any, finite: bool = True) -> np.ndarray:
    """Return ``value`` as a float array (float32 and float64 are kept) without NaN or infinity.

    With ``finite=False`` nobody looks for these; who computes with the array will.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        if array.dtype not in (np.float32, np.float64):
            # Small integers (pixels) are exact in float32; everything else deserves float64.
            small = array.dtype.kind in "bu" or array.dtype in (np.int8, np.int16, np.float16)
            array = array.astype(np.float32 if small else np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers; got {type(value).__name__} ({error})."
        ) from error
    if finite:
        require_finite(name, array)
    return array


def require_finite(name: str, array: np.ndarray) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        kind = "NaN" if np.isnan(array[where]) else "infinity"
        raise ValueError(
            f"{name} contains {kind} at index {where}; replace such values, "
            "for example with numpy.nan_to_num, or leave out that row."
        )


def as_parameters(name: str, value: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return parameter vectors as an (N, d) array; a single vector becomes one row."""
    array = as_floats(name, value)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] != len(names):
        raise ValueError(
            f"{name} has shape {np.shape(value)}; expected (N, {len(names)}), "
            f"rows of ({', '.join(names)})."
        )
    return array


def require_few_pixels(name: str, shape: tuple[int, int]) -> None:
    """Refuse images that no computer has the room or the patience for."""
    if math.prod(shape) > MOST_PIXELS:
        raise ValueError(
            f"{name}={shape} has {math.prod(shape)} pixels, and at most {MOST_PIXELS} are allowed; "
            "resize the images, 64 × 64 is often enough (--size 64)."
        )


def image_shape_of(n_pixels: int) -> tuple[int, int]:
    """Guess the shape of flattened images: a square where possible, else a single row."""
    side = math.isqrt(n_pixels)
    return (side, side) if side * side == n_pixels else (1, n_pixels)


def as_images(
    images: Any,
    image_shape: tuple[int, int] | None = None,
    name: str = "images",
    finite: bool = True,
    small: bool = False,
) -> tuple[np.ndarray, tuple[int, int]]:
    """Return images as flat rows (N, n) and their shape (H, W).

    They are floats, or, where ``small`` says so, numbers of 8 and 16 bits as they are.

    Accepts (N, H, W), or (N, H*W) rows with ``image_shape``; without it, rows are taken as
    square images where their length is a square number and as single rows of pixels otherwise.
    """
    kept = small and getattr(images, "dtype", None) in (np.uint8, np.uint16, np.int8, np.int16)
    array = np.asarray(images) if kept else as_floats(name, images, finite)
    if array.ndim not in (2, 3):
        raise ValueError(
            f"{name} has shape {array.shape}; expected (N, H, W), or (N, H*W) with image_shape. "
            f"For a single image pass {name}[None]."
        )
    n_pixels = math.prod(array.shape[1:])
    if n_pixels == 0:
        raise ValueError(f"{name} has shape {array.shape}: images without pixels.")
    if image_shape is not None:
        shape = _as_image_shape(image_shape)
    else:
        shape = image_shape_of(n_pixels) if array.ndim == 2 else array.shape[1:]
    if array.ndim == 3 and shape != array.shape[1:]:
        raise ValueError(
            f"image_shape={shape} but {name} holds images of shape {array.shape[1:]}; "
            "resize them, or leave image_shape out."
        )
    if math.prod(shape) != n_pixels:
        raise ValueError(
            f"image_shape={shape} has {math.prod(shape)} pixels but {name} has {n_pixels} features."
        )
    height, width = shape
    return array.reshape(len(array), n_pixels), (height, width)


def _as_image_shape(image_shape: Any) -> tuple[int, ...]:
    """Return (H, W) as two positive integers."""
    pair = np.asarray(image_shape)
    if pair.shape != (2,) or pair.dtype.kind not in "iu" or (pair < 1).any():
        raise ValueError(f"image_shape={image_shape!r} must be two positive integers (H, W).")
    return tuple(int(v) for v in pair)
