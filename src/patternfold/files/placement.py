"""Where a picture lies on the canvas, and how it is brought there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

COVERED = 0.45
"""Share of a pixel of the canvas that must come from pixels that count: sides are rounded
to whole pixels, so that the last one of a picture is made up to half or more."""


@dataclass(frozen=True)
class Placement:
    """The map from a picture to its prepared image: canvas = scale · picture + (left, top).

    Both are in pixel-edge coordinates, where pixel k covers [k, k + 1], of the picture as it is
    shown, its orientation applied.
    """

    scale: float
    left: float
    top: float


def place_centred(shape: tuple[int, int], canvas: tuple[int, int], scale: float) -> Placement:
    """Lay a picture of a shape, magnified by ``scale``, in the middle of the canvas."""
    height, width = (_extent(n, scale) for n in shape)
    return Placement(scale, (canvas[1] - width) // 2, (canvas[0] - height) // 2)


def largest_scale(shape: tuple[int, int], canvas: tuple[int, int]) -> float:
    """Return the magnification at which a picture just fits."""
    return min(canvas[0] / shape[0], canvas[1] / shape[1])


def fits(shape: tuple[int, int], canvas: tuple[int, int], scale: float) -> bool:
    """Tell whether a magnified picture lies on the canvas as a whole."""
    return all(_extent(n, scale) <= room for n, room in zip(shape, canvas, strict=True))


def canvas_of(shape: tuple[int, int], scale: float) -> tuple[int, int]:
    """Return the pixels that a picture of a shape takes when magnified, at least 2 a side."""
    return max(2, _extent(shape[0], scale)), max(2, _extent(shape[1], scale))


def _extent(n: int, scale: float) -> int:
    return max(1, round(n * scale))


def resample(
    pixels: np.ndarray, counts: np.ndarray, placement: Placement, canvas: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Bring a picture to the canvas.

    Parameters
    ----------
    pixels : array of shape (h, w)
        Values; where they do not count they may be anything.
    counts : bool array of shape (h, w)
        Pixels that count.

    Returns
    -------
    image : array of shape (H, W), float32
        Means over the pixels that count, 0 where there are none.
    mask : bool array of shape (H, W)
        True where the image is made of pixels that count.
    """
    # Large pictures are copied as rarely as may be.
    whole = counts.all()
    values = (pixels if whole else np.where(counts, pixels, 0)).astype(np.float32, copy=False)
    height, width = shape = _extents(pixels.shape, placement.scale)
    if whole:
        weights = _share_covered(pixels.shape, placement.scale, shape)
    else:
        weights = _magnify(counts.astype(np.float32), placement.scale, shape)
    values = _magnify(values, placement.scale, shape)
    covered = weights >= COVERED
    means = np.divide(values, weights, out=np.zeros_like(values), where=weights > 0.01)
    image, mask = np.zeros(canvas, np.float32), np.zeros(canvas, bool)
    rows, own_rows = _overlap(int(placement.top), height, canvas[0])
    columns, own_columns = _overlap(int(placement.left), width, canvas[1])
    image[rows, columns] = np.where(covered, means, 0)[own_rows, own_columns]
    mask[rows, columns] = covered[own_rows, own_columns]
    return image, mask


def _overlap(begin: int, extent: int, room: int) -> tuple[slice, slice]:
    """Return the part of the canvas that a picture from ``begin`` covers, and of the picture."""
    first, last = max(0, begin), min(room, begin + extent)
    return slice(first, last), slice(first - begin, last - begin)


def _extents(shape: tuple[int, ...], scale: float) -> tuple[int, int]:
    return _extent(shape[0], scale), _extent(shape[1], scale)


def _share_covered(old: tuple[int, ...], scale: float, shape: tuple[int, int]) -> np.ndarray:
    """Magnify a picture of ones, which is the product of its sides."""
    down, across = (
        _resize(np.ones((1, n), np.float32), (1, new), (1.0, new / scale))[0]
        for n, new in zip(old, shape, strict=True)
    )
    return down[:, None] * across


def _magnify(pixels: np.ndarray, scale: float, shape: tuple[int, int]) -> np.ndarray:
    """Resample by a scale that is exact on both axes; beyond the picture there is nothing."""
    if scale == 1:
        return pixels
    return _resize(pixels, shape, (shape[0] / scale, shape[1] / scale))


def _resize(pixels: np.ndarray, shape: tuple[int, int], extent: tuple[float, float]) -> np.ndarray:
    """Resample so many rows and columns, which may be more than there are."""
    from PIL import Image

    height, width = extent
    # A side of less than half a pixel of the canvas gets one all the same, and no padding.
    ends = zip(extent, pixels.shape, strict=True)
    missing = [max(0, math.ceil(n) - old) if n < 2 * old + 1 else 0 for n, old in ends]
    padded = np.pad(pixels, [(0, m) for m in missing]) if any(missing) else pixels
    picture = Image.fromarray(np.ascontiguousarray(padded))
    box = (0.0, 0.0, min(width, padded.shape[1]), min(height, padded.shape[0]))
    return np.asarray(picture.resize((shape[1], shape[0]), Image.Resampling.BILINEAR, box))
