"""Original pictures resampled: colour, transparency and depth kept, on their own background."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage

from patternfold.files.background import find_backdrop
from patternfold.files.borders import find_inside
from patternfold.files.kinds import Kind
from patternfold.files.raw import grey

ORDERS = {"linear": 1, "cubic": 3}
_MARGIN = {0: 1, 1: 1, 3: 12}
"""Pixels of background around a picture: one to fade over, more where splines reach further."""


class Sampling(NamedTuple):
    """Where the pixels of the result come from: by a matrix, or point by point."""

    shape: tuple[int, int]
    matrix: np.ndarray | None = None
    """From (x, y) of the picture to (x, y) of the result, shape (2, 3)."""
    places: np.ndarray | None = None
    """Row and column in the picture of each pixel of the result, shape (2, H, W), where there is no
    matrix."""


class Ground(NamedTuple):
    """What a picture's things lie on."""

    level: np.ndarray
    """Of each channel but alpha."""
    counts: np.ndarray
    """True where the picture is neither bar nor frame, nor cut off, nor a gap, shape (h, w)."""


def ground_of(values: np.ndarray) -> Ground:
    """Find the background within bars and frames."""
    kind = Kind.of(values)
    seen = grey(values)
    counts = find_inside(seen.pixels, seen.counts).counts(seen.pixels.shape)
    counts &= np.isfinite(values.reshape(*counts.shape, -1)).all(axis=2)
    if seen.counts is not None:
        counts &= seen.counts
    channels = values.reshape(*counts.shape, kind.channels)[..., : kind.channels - kind.has_alpha]
    levels = [
        find_backdrop(np.where(counts, c, 0).astype(np.float64), counts).level
        for c in np.moveaxis(channels, 2, 0)
    ]
    return Ground(np.array(levels), counts)


def warp_original(
    values: np.ndarray, sampling: Sampling, fill: np.ndarray, interpolation: str = "linear"
) -> np.ndarray:
    """Return a picture of the same kind, resampled.

    Parameters
    ----------
    values : array of shape (h, w) or (h, w, channels)
        The picture.
    sampling : Sampling
        Where the result's pixels come from.
    fill : array
        Colour outside the picture; where it has transparency, outside is transparent.
    interpolation : {"linear", "cubic"}
        Between pixels.
    """
    kind, order = Kind.of(values), ORDERS[interpolation]
    work = np.float32 if kind.dtype.itemsize <= 2 or kind.dtype == np.float32 else np.float64
    pixels = values.reshape(*values.shape[:2], kind.channels)
    known = np.asarray(np.isfinite(pixels).all(axis=2))
    if not known.all():
        pixels = np.where(known[..., None], pixels, 0)
    if kind.has_alpha:
        result = _with_alpha(pixels.astype(work), sampling, fill, order)
    else:
        layers = [
            _sampled(c, sampling, f, order, work)
            for c, f in zip(_layers(pixels), fill, strict=True)
        ]
        result = np.stack(layers, axis=2)
    if not known.all():  # gaps stay gaps
        result[_sampled(known.astype(np.uint8), sampling, 1, 0, work) < 0.5] = np.nan
    return _stored(result, kind).reshape(*sampling.shape, *values.shape[2:])


def warp_counts(counts: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Return the share of each pixel of the result that is made of pixels that count."""
    return _sampled(counts.astype(np.float32), sampling, 0, 1, np.float32)


def _layers(pixels: np.ndarray) -> Any:
    return np.moveaxis(pixels, 2, 0)


def _with_alpha(pixels: np.ndarray, sampling: Sampling, fill: np.ndarray, order: int) -> np.ndarray:
    """Weigh colours by their opacity: those that can't be seen must not shine through."""
    alpha = pixels[..., -1:]
    weighted = [
        _sampled(c, sampling, 0, order, pixels.dtype)
        for c in _layers(np.concatenate([pixels[..., :-1] * alpha, alpha], axis=2))
    ]
    opaque = weighted[-1]
    seen = opaque > 0
    colours = [
        np.where(seen, c / np.where(seen, opaque, 1), f)
        for c, f in zip(weighted[:-1], fill, strict=True)
    ]
    return np.stack([*colours, opaque], axis=2)


def _sampled(channel: np.ndarray, sampling: Sampling, fill: float, order: int, work: Any) -> Any:
    """Resample one channel on a margin of its background."""
    margin = _MARGIN[order]
    if order == 3:
        channel = channel.astype(np.float64)
    level = np.rint(fill) if channel.dtype.kind in "iu" else fill
    padded = np.pad(channel, margin, constant_values=channel.dtype.type(level))
    if order == 3:
        padded = ndimage.spline_filter(padded, order, output=np.float64)
    options: dict[str, Any] = {"output": work, "order": order, "mode": "nearest"}
    if sampling.matrix is None:
        places = np.asarray(sampling.places) + margin
        return ndimage.map_coordinates(padded, places, prefilter=False, **options)
    inverse = np.linalg.inv(np.vstack([sampling.matrix, [0.0, 0.0, 1.0]]))
    linear, offset = inverse[1::-1, 1::-1], inverse[1::-1, 2] + margin
    options |= {"offset": offset, "output_shape": sampling.shape, "prefilter": False}
    return ndimage.affine_transform(padded, linear, **options)


def _stored(result: np.ndarray, kind: Kind) -> np.ndarray:
    """Round to the kind's numbers."""
    if kind.dtype.kind not in "iu":
        return result.astype(kind.dtype)
    limits = np.iinfo(kind.dtype)
    return np.clip(np.rint(result), limits.min, limits.max).astype(kind.dtype)
