"""The canvas that pictures of any sizes are brought to, and the place of each on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternfold.files.placement import (
    Placement,
    canvas_of,
    fits,
    largest_scale,
    place_centred,
)

LONGEST = 512
"""Longer side of the canvas where all pictures are of one size: learning begins coarse anyway."""

USUAL = 128
"""Longer side where sizes differ: enough for angles of a fraction of a degree, and quick."""

SMALLEST = 48
"""Longer side of the smallest picture that the canvas grows for, ..."""

GROWN = 256
"""... up to this size; below about 30 pixels, things have hardly a direction."""

MOST_PIXELS = 2**27
"""Of all images together, half a gigabyte; above it the canvas shrinks."""

ALIKE = 4.0
"""Ratio of sizes from which they are hardly those of the things: --fit-each is suggested."""

_MARGIN = 1.6  # of what a thing takes: some background around it ties it down
_MOST = 0.9  # share of pictures whose things the canvas is made for
_WORTH = 0.75  # of the largest picture: a smaller canvas is worth cutting pictures for

Shape = tuple[int, int]


@dataclass(frozen=True)
class Extent:
    """Where a picture's things lie, in its pixels."""

    x: float
    y: float
    reach: float
    """How far they go from there, along x or y."""


@dataclass(frozen=True)
class Layout:
    """A canvas and the place of each picture on it."""

    canvas: Shape
    scale: float | None
    """The magnification of all pictures, or None where each has its own."""
    placements: tuple[Placement, ...]
    notes: tuple[str, ...]


def lay_out(
    shapes: Sequence[Shape],
    canvas: Shape | None = None,
    scale: float | None = None,
    fit_each: bool = False,
    things: Sequence[Extent | None] | None = None,
) -> Layout:
    """Choose what is not given: a canvas, one magnification for all, and the places.

    Parameters
    ----------
    shapes : sequence of (h, w)
        Sizes of the pictures.
    canvas : (H, W), optional
        Size of the images.
    scale : float, optional
        Magnification, that of the pictures learned from.
    fit_each : bool
        Magnify each picture by itself, to fill the canvas.
    things : sequence of Extent or None, optional
        What the pictures show; those larger than the canvas are then cut to it.
    """
    things = things or [None] * len(shapes)
    window = _largest(shapes) if fit_each else _window(shapes, things)
    cut = [(min(h, window[0]), min(w, window[1])) for h, w in shapes]
    mixed = len(set(shapes)) > 1
    if fit_each:
        canvas = canvas or canvas_of(window, _usual_scale(cut, mixed))
        each = [place_centred(s, canvas, largest_scale(s, canvas)) for s in shapes]
        return Layout(canvas, None, tuple(each), _notes(shapes, canvas, None))
    if scale is None:
        scale = _usual_scale(cut, mixed) if canvas is None else largest_scale(window, canvas)
    canvas = canvas or canvas_of(window, scale)
    placements = tuple(
        _place(shape, canvas, scale, thing) for shape, thing in zip(shapes, things, strict=True)
    )
    notes = (*_notes(shapes, canvas, scale), *_say_cut(shapes, placements, canvas, scale))
    return Layout(canvas, scale, placements, notes)


def _largest(shapes: Sequence[Shape]) -> Shape:
    return max(h for h, _ in shapes), max(w for _, w in shapes)


def _window(shapes: Sequence[Shape], things: Sequence[Extent | None]) -> Shape:
    """Part of a picture that the canvas shows: all of the largest, or where the things are."""
    largest = _largest(shapes)
    known = [thing.reach for thing in things if thing is not None]
    if len(set(shapes)) == 1 or len(known) < 0.5 * len(shapes):
        return largest
    needed = math.ceil(2 * _MARGIN * float(np.quantile(known, _MOST)))
    if needed > _WORTH * max(largest):
        return largest
    return min(needed, largest[0]), min(needed, largest[1])


def _place(shape: Shape, canvas: Shape, scale: float, thing: Extent | None) -> Placement:
    """Lay a picture in the middle; if it is too large, cut it around its things, or shrink it."""
    if fits(shape, canvas, scale):
        return place_centred(shape, canvas, scale)
    if thing is None:
        return place_centred(shape, canvas, largest_scale(shape, canvas))
    wanted = min(canvas) / (2 * thing.reach)
    own = max(min(scale, wanted), min(scale, largest_scale(shape, canvas)))
    middle = place_centred(shape, canvas, own)
    height, width = canvas_of(shape, own)
    left = _cut(canvas[1], width, own * thing.x) if width > canvas[1] else middle.left
    top = _cut(canvas[0], height, own * thing.y) if height > canvas[0] else middle.top
    return Placement(own, left, top)


def _cut(room: int, extent: int, middle: float) -> int:
    """Where a side begins that is longer than its room: ``middle`` comes to the middle of it."""
    return min(0, max(room - extent, round(room / 2 - middle)))


def _usual_scale(shapes: Sequence[Shape], mixed: bool) -> float:
    longest = max(max(shape) for shape in shapes)
    if not mixed:
        wanted = LONGEST / longest
    else:
        shortest = min(max(shape) for shape in shapes)
        wanted = min(max(USUAL / longest, SMALLEST / shortest), GROWN / longest)
    height, width = _largest(shapes)
    room = (MOST_PIXELS / (len(shapes) * height * width)) ** 0.5
    return min(1.0, wanted, max(room, 64 / longest))


def _say_cut(
    shapes: Sequence[Shape], placements: Sequence[Placement], canvas: Shape, scale: float
) -> list[str]:
    cut = shrunk = 0
    for shape, placement in zip(shapes, placements, strict=True):
        cut += not fits(shape, canvas, placement.scale)
        shrunk += placement.scale < 0.999 * scale
    notes = [f"{cut} picture(s) cut to where something is seen"] if cut else []
    if shrunk:
        notes.append(f"{shrunk} picture(s) shrunk, since they show larger things than the canvas")
    return notes


def _notes(shapes: Sequence[Shape], canvas: Shape, scale: float | None) -> tuple[str, ...]:
    sizes = set(shapes)
    if sizes == {canvas} and scale in (None, 1):
        return ()
    if len(sizes) > 1:
        small, large = (f(shapes, key=math.prod) for f in (min, max))
        what = f"pictures of {len(sizes)} sizes, {size_text(small)} to {size_text(large)},"
    else:
        small = large = shapes[0]
        what = f"pictures of {size_text(small)}"
    if scale is None:
        how = "each magnified by itself"
    elif scale == 1:
        how = "not magnified"
    else:
        how = (
            f"all at {scale:.0%} of their size" if scale < 2 else f"all magnified {scale:.3g} times"
        )
    notes = [f"{what} laid on {size_text(canvas)} pixels, {how} (--size chooses)"]
    if scale is not None and fits(large, canvas, scale) and max(large) > ALIKE * max(small):
        notes.append(
            "sizes differ much; if that is not how the things differ, --fit-each may do better"
        )
    return tuple(notes)


def size_text(shape: Sequence[int]) -> str:
    """Return width and height, as people say sizes."""
    return f"{shape[1]}×{shape[0]}"
