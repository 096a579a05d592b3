"""Make pictures ready for learning: a background of 0, one canvas, comparable strength."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from patternfold.files.background import Backdrop, find_backdrop
from patternfold.files.borders import find_inside
from patternfold.files.first_preparation import first_is_light, first_white, prepare_first
from patternfold.files.placement import Placement, resample
from patternfold.files.preparation import BACKGROUNDS, FIRST, Preparation
from patternfold.files.raw import Picture
from patternfold.files.sizes import Layout, lay_out

_DECIDED = 0.3
"""Polarity from which a picture's things are clearly lighter, or below minus this darker."""

_BLANK = 0.1
"""Of what usually stands out in a picture: one with less than this share of it is blank."""


@dataclass(frozen=True)
class Prepared:
    """Pictures that are ready."""

    images: np.ndarray
    """Shape (N, H, W), float32; 0 where nothing counts."""
    mask: np.ndarray | None
    """Shape (N, H, W), True where pixels count; None where all do."""
    placements: tuple[Placement, ...]
    """Where each picture lies on its image."""
    preparation: Preparation
    """With all choices made: it treats new pictures as these."""
    notes: tuple[str, ...]
    """What was done, in words."""
    remarks: tuple[str, ...] = ()
    """What looks wrong, in words, with the pictures' names."""


def prepare(pictures: Sequence[Picture], preparation: Preparation) -> Prepared:
    """Make pictures ready, each by what it shows itself: frame, background and strength."""
    shapes = [(p.pixels.shape[0], p.pixels.shape[1]) for p in pictures]
    first = preparation.version == FIRST
    fit_each = preparation.fit_each or first
    layout = lay_out(shapes, preparation.size, preparation.scale, fit_each)
    if first:
        return _prepare_first(pictures, preparation, layout)
    counts, framed = _counting(pictures, preparation.background != "none")
    notes = [*_traits(pictures), *_say(framed, "bars or frames around {} picture(s) do not count")]
    images, light, said, remarks = _on_zero(pictures, counts, preparation)
    images, mask = _lay(images, counts, layout)
    if preparation.subtract_background:
        np.maximum(images, 0, out=images)
        said.append("what is darker than the background cut off")
    more = _normalise(images, preparation.normalise)
    background = preparation.background
    made = replace(
        preparation,
        size=layout.canvas,
        scale=layout.scale,
        background="none" if background == "none" else "light" if light else "dark",
    )
    everything = (*notes, *said, *layout.notes, *more)
    return Prepared(images, mask, layout.placements, made, everything, tuple(remarks))


def _counting(
    pictures: Sequence[Picture], look_for_frames: bool
) -> tuple[list[np.ndarray | None], int]:
    """Return which pixels of each picture count, None for all, and how many have frames."""
    counts, framed = [], 0
    for picture in pictures:
        own, shape = picture.counts, picture.pixels.shape
        inside = find_inside(picture.pixels, own).counts(shape) if look_for_frames else True
        if not np.all(inside):
            framed += 1
            own = inside if own is None else own & inside
        counts.append(own)
    return counts, framed


def _on_zero(
    pictures: Sequence[Picture], counts: Sequence[np.ndarray | None], preparation: Preparation
) -> tuple[list[np.ndarray], bool, list[str], list[str]]:
    """Remove backgrounds, invert what is darker, and tell about it."""
    if preparation.background == "none":
        return [p.pixels for p in pictures], False, [], []
    backdrops = [find_backdrop(p.pixels, own) for p, own in zip(pictures, counts, strict=True)]
    light = BACKGROUNDS[preparation.background]
    notes = []
    if light is None:
        light = are_darker(backdrops)
    if light:
        notes.append("things darker than their background: inverted (--background dark keeps them)")
    uneven = sum(b.surface is not None for b in backdrops)
    notes += _say(uneven, "uneven background of {} picture(s) evened out")
    images = []
    for picture, backdrop in zip(pictures, backdrops, strict=True):
        flat = backdrop.remove(picture.pixels)
        images.append(-flat if light else flat)
    return images, light, notes, _remarks(pictures, backdrops, light)


def are_darker(backdrops: Sequence[Backdrop]) -> bool:
    """Tell whether most pictures show things darker than their background."""
    return bool(np.mean([b.polarity for b in backdrops]) < -0.1)


def _remarks(pictures: Sequence[Picture], backdrops: Sequence[Backdrop], light: bool) -> list[str]:
    """Name the pictures that show nothing, or things of the opposite polarity."""
    usual = float(np.median([b.share for b in backdrops]))
    blank = [b.share == 0 or b.share < _BLANK * usual for b in backdrops]
    sign = -1 if light else 1
    # Against the tide: most pictures must be clear, one way, for another to be wrong.
    clear = np.median([sign * b.polarity for b in backdrops]) > _DECIDED
    wrong = [
        bool(clear) and not empty and sign * b.polarity < -_DECIDED
        for b, empty in zip(backdrops, blank, strict=True)
    ]
    names = [picture.name for picture in pictures]
    usually, here = ("darker", "lighter") if light else ("lighter", "darker")
    found = [
        (blank, "shows nothing but background"),
        (wrong, f"has things {here} than the background, where the others have {usually} ones"),
    ]
    return [
        f"{name} {text}"
        for marked, text in found
        for name, mark in zip(names, marked, strict=True)
        if mark
    ]


def _lay(
    pixels: Sequence[np.ndarray], counts: Sequence[np.ndarray | None], layout: Layout
) -> tuple[np.ndarray, np.ndarray | None]:
    shape = (len(pixels), *layout.canvas)
    images, mask = np.empty(shape, np.float32), np.empty(shape, bool)
    for i, (own, place) in enumerate(zip(counts, layout.placements, strict=True)):
        known = np.ones(pixels[i].shape, bool) if own is None else own
        images[i], mask[i] = resample(pixels[i], known, place, layout.canvas)
    return images, None if mask.all() else mask


def _prepare_first(
    pictures: Sequence[Picture], preparation: Preparation, layout: Layout
) -> Prepared:
    """Prepare as patternfold 0.1 did."""
    light = BACKGROUNDS[preparation.background]
    if light is None:
        light = first_is_light(pictures)
    white = preparation.white
    if light and white is None:
        white = first_white(pictures)
    images, placements = prepare_first(
        pictures, layout.canvas, white if light else None, preparation.subtract_background
    )
    more = _normalise(images, preparation.normalise)
    notes = [*_traits(pictures), "prepared as by patternfold 0.1", *layout.notes, *more]
    word = "light" if light else "dark"
    made = replace(preparation, size=layout.canvas, background=word, white=white)
    return Prepared(images, None, placements, made, tuple(notes))


def _traits(pictures: Sequence[Picture]) -> list[str]:
    count = Counter(trait for picture in pictures for trait in picture.traits)
    said = {
        "colour": "{} colour picture(s) turned grey",
        "transparent": "transparent parts of {} picture(s) set on white",
        "cut out": "transparent parts around {} picture(s) do not count",
        "gaps": "pixels of {} picture(s) that are no numbers do not count",
    }
    return [note for trait, text in said.items() for note in _say(count[trait], text)]


def _say(count: int, text: str) -> list[str]:
    return [text.format(count)] if count else []


def _normalise(images: np.ndarray, how: str) -> list[str]:
    """Scale images in place; what does not count is 0 in them."""
    if how == "none":
        return []
    if how == "unit":
        # Squares of large numbers are beyond float32.
        square = np.einsum("nhw,nhw->n", images, images, dtype=np.float64)
        size, text = np.sqrt(square), "each image scaled to unit norm"
    else:
        size, text = np.abs(images).max(axis=(1, 2)), "each image scaled to greatest value 1"
    notes = [text, *_say(int((size == 0).sum()), "{} blank image(s) left as they are")]
    scale = np.where(size > 0, size, 1)[:, None, None]
    np.divide(images, scale, out=images, casting="same_kind")
    return notes
