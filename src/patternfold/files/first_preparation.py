"""Preparation as 0.1 did it, for the model files that it wrote: their patterns were learned so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from patternfold.files.placement import Placement, largest_scale
from patternfold.files.raw import Picture


def prepare_first(
    pictures: Sequence[Picture],
    shape: tuple[int, int],
    white: float | None,
    subtract_background: bool,
) -> tuple[np.ndarray, tuple[Placement, ...]]:
    """Invert about ``white`` unless it is None, subtract the border's median, fit into ``shape``.

    Each picture is magnified by itself, and the rest of its canvas filled with its border's value.
    """
    pixels = [picture.pixels for picture in pictures]
    if white is not None:
        pixels = [max(white, float(p.max())) - p for p in pixels]
    if subtract_background:
        pixels = [np.maximum(p - border_median(p), 0) for p in pixels]
    placements = tuple(_place(p.shape, shape) for p in pixels)
    fitted = [_fit(p, shape, at) for p, at in zip(pixels, placements, strict=True)]
    return np.stack(fitted).astype(np.float32), placements


def first_white(pictures: Sequence[Picture]) -> float:
    """Return the value of white, for blank pictures 1."""
    known = [p.white if p.white is not None else float(p.pixels.max()) for p in pictures]
    return max(known) if max(known) > 0 else 1.0


def first_is_light(pictures: Sequence[Picture]) -> bool:
    """Tell whether the borders are nearer to the lightest than to the darkest value."""
    pixels = [picture.pixels for picture in pictures]
    low, high = min(p.min() for p in pixels), max(p.max() for p in pixels)
    if low < 0 or high <= low:  # measurements around zero, or blank
        return False
    border = np.median([border_median(p) for p in pixels])
    return bool((border - low) / (high - low) > 0.55)


def border_median(pixels: np.ndarray) -> float:
    """Median of the outermost pixels."""
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    return float(np.median(np.concatenate(edges)))


def _extent(old: tuple[int, ...], shape: tuple[int, int]) -> tuple[int, int]:
    scale = largest_scale((old[0], old[1]), shape)
    height, width = (min(n, max(1, round(o * scale))) for n, o in zip(shape, old, strict=True))
    return height, width


def _place(old: tuple[int, ...], shape: tuple[int, int]) -> Placement:
    height, width = _extent(old, shape)
    scale = largest_scale((old[0], old[1]), shape)
    return Placement(scale, (shape[1] - width) // 2, (shape[0] - height) // 2)


def _fit(pixels: np.ndarray, shape: tuple[int, int], at: Placement) -> np.ndarray:
    if pixels.shape == shape:
        return pixels
    from PIL import Image

    height, width = _extent(pixels.shape, shape)
    picture = Image.fromarray(np.ascontiguousarray(pixels, np.float32))
    resized = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
    canvas = np.full(shape, border_median(pixels), np.float32)
    top, left = int(at.top), int(at.left)
    canvas[top : top + height, left : left + width] = resized
    return canvas
