"""The canvas that pictures of any sizes are brought to, and the place of each on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from patternfold.files.placement import Placement, canvas_of, largest_scale, place_centred

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

Shape = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """A canvas and the place of each picture on it."""

    canvas: Shape
    scale: float | None
    """The magnification of all pictures, or None where each has its own."""
    placements: tuple[Placement, ...]
    notes: tuple[str, ...]


def lay_out(
    shapes: Sequence[Shape], canvas: Shape | None, scale: float | None, fit_each: bool
) -> Layout:
    """Choose what is not given: a canvas, one magnification for all, and places in the middle.

    Parameters
    ----------
    shapes : sequence of (h, w)
        Sizes of the pictures.
    canvas : (H, W), optional
        Size of the images.
    scale : float, optional
        Magnification, that of the pictures learned from; what is too large for the canvas then is
        shrunk to fit.
    fit_each : bool
        Magnify each picture by itself, to fill the canvas.
    """
    largest = (max(h for h, _ in shapes), max(w for _, w in shapes))
    if fit_each:
        canvas = canvas or canvas_of(largest, _usual_scale(shapes))
        scales = [largest_scale(shape, canvas) for shape in shapes]
        return _layout(shapes, canvas, None, scales)
    if scale is None:
        scale = _usual_scale(shapes) if canvas is None else largest_scale(largest, canvas)
    canvas = canvas or canvas_of(largest, scale)
    scales = [min(scale, _roomy(shape, canvas)) for shape in shapes]
    return _layout(shapes, canvas, scale, scales)


def _roomy(shape: Shape, canvas: Shape) -> float:
    """Largest magnification, with the half pixel that rounding allows."""
    return min((n + 0.49) / old for n, old in zip(canvas, shape, strict=True))


def _usual_scale(shapes: Sequence[Shape]) -> float:
    longest = max(max(shape) for shape in shapes)
    if len(set(shapes)) == 1:
        wanted = LONGEST / longest
    else:
        shortest = min(max(shape) for shape in shapes)
        wanted = min(max(USUAL / longest, SMALLEST / shortest), GROWN / longest)
    height = max(h for h, _ in shapes)
    width = max(w for _, w in shapes)
    room = (MOST_PIXELS / (len(shapes) * height * width)) ** 0.5
    return min(1.0, wanted, max(room, 64 / longest))


def _layout(
    shapes: Sequence[Shape], canvas: Shape, scale: float | None, scales: Sequence[float]
) -> Layout:
    placements = [place_centred(s, canvas, own) for s, own in zip(shapes, scales, strict=True)]
    notes = _notes(shapes, canvas, scale)
    shrunk = sum(scale is not None and own < 0.999 * scale for own in scales)
    if shrunk:
        notes.append(f"{shrunk} picture(s) larger than the canvas shrunk to fit it")
    return Layout(canvas, scale, tuple(placements), tuple(notes))


def _notes(shapes: Sequence[Shape], canvas: Shape, scale: float | None) -> list[str]:
    sizes = Counter(shapes)
    if set(sizes) == {canvas}:
        return []
    if len(sizes) > 1:
        small, large = min(shapes, key=max), max(shapes, key=max)
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
    if scale is not None and max(large) > ALIKE * max(small):
        notes.append(
            "sizes differ much; if that is not how the things differ, --fit-each may do better"
        )
    return notes


def size_text(shape: Sequence[int]) -> str:
    """Return width and height, as people say sizes."""
    return f"{shape[1]}×{shape[0]}"
