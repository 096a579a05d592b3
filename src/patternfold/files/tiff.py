"""TIFF pictures and stacks, as cameras, microscopes and ImageJ write them, by tifffile."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.orientation import as_shown
from patternfold.files.pillow import read_pages, require_sides
from patternfold.files.raw import require_size

_ORIENTATION = 274  # the tag
_UNPACKED = 1  # the code of no compression
_MOST_CHANNELS = 4  # colour and transparency
_GREY_INVERTED, _GREY, _RGB, _PALETTE = range(4)  # codes of what numbers mean


def read_tiff(path: Path) -> Iterator[np.ndarray]:
    """Read a TIFF plane by plane: (H, W), or (H, W, channels) with colour and transparency.

    Pages that only repeat others in small are left out. Numbers that mean neither grey nor RGB nor
    a palette are left to pillow.
    """
    with _tifffile().TiffFile(path, _multifile=False) as file:
        require_straight(file)
        series = _main(file.series)
        meanings = {int(part.keyframe.photometric) for part in series}
        if meanings <= {_GREY_INVERTED, _GREY, _RGB, _PALETTE}:
            require_size(sum(_count(part, path) for part in series), path)
            for part in series:
                yield from _planes_of(part, path)
            return
    yield from read_pages(path)


def require_straight(file: Any) -> None:
    """Refuse pages that follow one another in a circle, round which tifffile goes for ever."""
    handle, tiff, seen = file.filehandle, file.tiff, set[int]()
    handle.seek(8 if tiff.is_bigtiff else 4)  # behind the mark and the version
    while True:
        word = handle.read(tiff.offsetsize)
        offset = struct.unpack(tiff.offsetformat, word)[0] if len(word) == tiff.offsetsize else 0
        if not 0 < offset < handle.size:
            return
        if offset in seen:
            raise ValueError("its pages follow one another in a circle")
        seen.add(offset)
        handle.seek(offset)
        word = handle.read(tiff.tagnosize)
        if len(word) < tiff.tagnosize:
            return
        count = struct.unpack(tiff.tagnoformat, word)[0]
        place = offset + tiff.tagnosize + count * tiff.tagsize
        if place > handle.size:
            return
        handle.seek(place)


def _tifffile() -> Any:
    try:
        import tifffile
    except ImportError as error:
        raise ImportError("Reading TIFF needs tifffile: pip install 'patternfold[cli]'.") from error
    return tifffile


def _main(series: Any) -> list[Any]:
    """Return what the file shows, without thumbnails and masks."""
    shown = [part for part in series if not (part.keyframe.is_reduced or part.keyframe.is_mask)]
    return shown or list(series)


def _count(series: Any, path: Path) -> int:
    """Pixels of all pages, of which none is decoded; refused if a header can't be true."""
    page = series.keyframe
    require_sides(page.imagewidth, page.imagelength)
    samples = max(1, page.samplesperpixel)
    bits = max(1, page.bitspersample) * samples
    pixels = math.prod(series.shape) // samples
    room = 8 * path.stat().st_size // bits
    if page.compression == _UNPACKED and page.imagewidth * page.imagelength > room:
        size = f"{page.imagewidth} × {page.imagelength}"
        raise ValueError(f"its header says {size} pixels, but the file ends earlier")
    return pixels * math.ceil(samples / _MOST_CHANNELS)


def _planes_of(series: Any, path: Path) -> Iterator[np.ndarray]:
    page = series.keyframe
    pages = [own for own in series.pages if own is not None]
    planes = math.prod(series.shape) // max(1, math.prod(page.shape))
    # One header may stand for many planes that follow one another in the file.
    alone = len(series.pages) == 1 and planes > 1
    if alone and series.nbytes > path.stat().st_size:
        raise ValueError(f"its header says {planes} planes, but the file ends earlier")
    parts = [(series.asarray, series.axes)] if alone else [(p.asarray, page.axes) for p in pages]
    for decode, axes in parts:
        for plane in _planes(decode(), axes, page):
            tag = page.tags.get(_ORIENTATION)
            yield as_shown(plane, 1 if tag is None else int(tag.value))


def _planes(values: np.ndarray, axes: str, page: Any) -> Iterator[np.ndarray]:
    """Cut an array with named axes into planes, channels last."""
    if "Y" not in axes or "X" not in axes:
        raise ValueError(f"it has axes {axes}, and no picture among them")
    order = [axes.index(name) for name in "YXS" if name in axes]
    values = np.moveaxis(values, order, range(-len(order), 0))
    planes = values.reshape(-1, *values.shape[values.ndim - len(order) :])
    for plane in planes:
        yield from _meant(plane, page)


def _meant(plane: np.ndarray, page: Any) -> Iterator[np.ndarray]:
    """Give numbers their meaning: palettes, white as 0, extra channels."""
    meaning = int(page.photometric)
    if meaning == _PALETTE and page.colormap is not None and plane.ndim == 2:
        colours = np.asarray(page.colormap)  # 16 bits a channel
        yield colours[:, np.minimum(plane, colours.shape[1] - 1)].transpose(1, 2, 0)
    elif plane.ndim == 2:
        yield _from_white(plane) if meaning == _GREY_INVERTED else plane
    elif meaning == _RGB:
        clear = any(int(extra) in (1, 2) for extra in page.extrasamples)
        yield plane[..., : 4 if clear else 3]
    elif plane.shape[2] == 2 and any(int(extra) in (1, 2) for extra in page.extrasamples):
        yield plane
    else:  # channels of a microscope, each a picture
        for channel in range(plane.shape[2]):
            yield plane[..., channel]


def _from_white(plane: np.ndarray) -> np.ndarray:
    """Invert numbers that mean darkness."""
    if plane.dtype.kind == "b":
        return ~plane
    if plane.dtype.kind in "iu":
        return np.iinfo(plane.dtype).max - plane
    return plane.max() - plane
